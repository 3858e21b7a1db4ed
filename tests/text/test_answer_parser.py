"""From ids to thinking and answer: a tag is its token, or letters where the vocabulary has no such token."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.tagged_models import KINDS, THINK, marks_in, tagged_model
from localrun_testing.vocabularies import (
    CONTROL,
    NORMAL,
    byte_level,
    sentencepiece,
    small_bpe,
    tokenizer_json,
)

from localrun.base.events import Token
from localrun.base.request import Request, Sampling
from localrun.engine.answer import AnswerStream
from localrun.text.model_text import ModelText
from localrun.text.reasoning import KNOWN_TAGS, ReasoningTags, reasoning_tags
from localrun.text.template import CHATML, ChatTemplate
from localrun.text.tokenizer import tokenizer_from_folder, tokenizer_from_gguf
from localrun.text.vocabulary import BYTE_TO_CHAR

ASK = Request(messages=({"role": "user", "content": "hi"},))
Said = dict[str, str]


def read(text: ModelText, ids: list[int], prompt: list[int]) -> Said:
    """What is streamed, joined; the whole answer must be the same."""
    answer = AnswerStream(text.parser(ASK, prompt), ())
    events = [*(event for i in ids for event in answer.push(i)), *answer.flush()]
    tokens = [event for event in events if isinstance(event, Token)]
    said = {c: "".join(token.text for token in tokens if token.channel == c) for c in ("answer", "thinking")}
    assert said == {"answer": answer.text("answer"), "thinking": answer.text("thinking")}
    return said


def atoms(text: ModelText, ids: list[int], is_mark: Any) -> list[tuple[str, bool]]:
    """Characters, and tokens that are marks, which are one atom each."""
    found: list[tuple[str, bool]] = []
    letters = b""
    for i in [*ids, None]:
        if i is not None and not is_mark(i):
            letters += b"" if i in text.tokenizer.control_ids else text.tokenizer.piece(i)
        else:
            found += [(char, False) for char in letters.decode(errors="replace")]
            found += [] if i is None else [(text.tokenizer.token_text(i), True)]
            letters = b""
    return found


def expected(text: ModelText, ids: list[int], inside: bool) -> Said:
    """The same by looking at every place of the whole answer for every tag, atom by atom."""
    assert text.tags is not None
    marks = {text.tokenizer.token_text(i): i for i in range(text.tokenizer.vocab_size)}
    tokens = {marks[mark] for mark in marks_in(text.tags) if mark in marks}

    @cache
    def spelled(tag: str) -> list[tuple[str, bool]]:
        parts = re.split(r"(<[^<>]+>|\[[^][]+\])", tag)
        return [a for p in parts for a in ([(p, True)] if marks.get(p) in tokens else [(char, False) for char in p])]

    tags = text.tags
    rest, said, fresh = atoms(text, ids, tokens.__contains__), {"answer": "", "thinking": ""}, inside
    while rest:
        found = next(
            (
                t
                for t in ([tags.close] if inside else [tags.open, *tags.hidden])
                if rest[: len(spelled(t))] == spelled(t)
            ),
            None,
        )
        if found is not None:
            rest, inside, fresh = rest[len(spelled(found)) :], found == tags.open, True
            continue
        char = rest.pop(0)[0]
        if not (fresh and char in "\r\n"):
            said["thinking" if inside else "answer"] += char
            fresh = False
    return said


BRACKETS = [tags for _, tags in KNOWN_TAGS if not tags.headers]


@cache  # made once, not for every example
def drawn_pieces(tags: ReasoningTags, kind: str) -> st.SearchStrategy[list[int | list[int]]]:
    """Marks and halves of them, letters of marks, and whole tags."""
    tokenizer = tagged_model(tags, kind).tokenizer
    spelled = [tokenizer.encode(tag, special=special) for tag in tags.texts for special in (True, False)]
    tokens, letters = st.integers(256, tokenizer.vocab_size - 1), st.sampled_from([*b"<>[]/think \nab\xc3\xa9"])
    return st.lists(st.one_of(tokens, letters, st.sampled_from(spelled)), max_size=20)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=400)
@given(tags=st.sampled_from(BRACKETS), data=st.data())
def test_channels_are_those_of_the_whole_answer(kind: str, tags: ReasoningTags, data: st.DataObject) -> None:
    text = tagged_model(tags, kind)
    drawn = data.draw(drawn_pieces(tags, kind))
    ids = [i for piece in drawn for i in (piece if isinstance(piece, list) else [piece])]
    ids = [i for i in ids if i not in text.tokenizer.eog_ids]
    inside = data.draw(st.booleans())
    prompt = text.tokenizer.encode("<|im_start|>assistant\n" + (tags.open if inside else ""), special=True)
    assert read(text, ids, prompt) == expected(text, ids, inside)


HARMONY = KNOWN_TAGS[0][1]
HARMONY_PARTS = (
    "analysis",
    "final",
    "commentary to=functions.f",
    " ",
    "x",
    "\n",
    "assistant",
    "<|end|>",
    "<|channel|>",
)


@pytest.mark.parametrize("kind", ["special", "not special"])
@given(data=st.data())
def test_no_word_of_a_channel_is_lost_or_made_of_letters(kind: str, data: st.DataObject) -> None:
    """Harmony: what follows a header's end is a message up to the next mark, whatever it spells."""
    text = tagged_model(HARMONY, kind)
    tokenizer = text.tokenizer
    headers = {"analysis": "thinking", "final": "answer"}
    ids: list[int] = []
    said: dict[str, list[str]] = {"answer": [], "thinking": []}
    for n in range(data.draw(st.integers(0, 4))):
        header = data.draw(st.sampled_from([*headers]))
        ids += tokenizer.encode("<|start|>assistant" if n else "", special=True)
        ids += tokenizer.encode(f"<|channel|>{header}<|message|>", special=True)
        letters = "".join(data.draw(st.lists(st.sampled_from(HARMONY_PARTS), min_size=1, max_size=6)))
        ids += letters.encode()  # letters, not tokens: the first 256 ids are bytes
        ids += tokenizer.encode("<|end|>", special=True)
        said[headers[header]].append(letters)
    prompt = tokenizer.encode("<|start|>assistant", special=True)
    assert read(text, ids, prompt) == {channel: "\n\n".join(texts) for channel, texts in said.items()}


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("Hello<|end|><|start|>assistant<|channel|>final<|message|>you", "Hello\n\nyou"),
        ("<|channel|>final<|end|>", "<|channel|>final"),
        ("<|channel|>final<|start|>assistant<|channel|>final<|message|>yes", "<|channel|>final\n\nyes"),
        ("a<|message|>b", "b"),
    ],
)
def test_a_header_without_a_message_is_shown(written: str, answer: str) -> None:
    text = tagged_model(HARMONY, "special")
    prompt = text.tokenizer.encode("<|start|>assistant", special=True)
    assert read(text, text.tokenizer.encode(written, special=True), prompt)["answer"] == answer


def test_a_tag_in_letters_is_text_wherever_it_stands() -> None:
    text = tagged_model(THINK, "not special")
    encode = text.tokenizer.encode
    o, c = (encode(tag, special=True) for tag in ("<think>", "</think>"))
    spelled = [list(tag.encode()) for tag in ("<think>", "</think>")]
    prompt = encode("<|im_start|>assistant\n", special=True)
    ids = [*o, *spelled[1], *encode("a"), *c, *spelled[0], *encode("b")]
    assert read(text, ids, prompt) == {"thinking": "</think>a", "answer": "<think>b"}
    opened = [*prompt, *o, *encode("\n")]
    assert read(text, [*encode("x"), *c, *encode("y")], opened) == {"thinking": "x", "answer": "y"}
    assert read(text, encode("x"), [*prompt, *spelled[0]]) == {"thinking": "", "answer": "x"}


def test_a_word_that_no_text_becomes_is_its_tag_too() -> None:
    """Old conversions have tags among the plain words: prompts spell them in letters, the model writes the token."""
    text = tagged_model(THINK, "letters")
    tokenizer = text.tokenizer
    assert tokenizer.encode("<think>", special=True) == list(b"<think>"), "this vocabulary has no such token"
    words = [BYTE_TO_CHAR[byte] for byte in range(256)] + ["<think>", "</think>", "<|im_start|>", "<|im_end|>"]
    types = [NORMAL] * 258 + [CONTROL] * 2
    keys = byte_level(tokens=words, token_type=types, merges=[], bos_token_id=None, eos_token_id=259)
    plain = ModelText(tokenizer_from_gguf(keys), ChatTemplate(CHATML), THINK, Sampling(), ())
    opened = plain.tokenizer.encode("<|im_start|>assistant\n<think>\n", special=True)
    assert read(plain, [*b"a</think>b", 257, *b"c"], opened) == {"thinking": "a</think>b", "answer": "c"}


def test_gemma_4_thinks_in_a_channel_that_its_prompt_may_open_or_leave_empty() -> None:
    tags = reasoning_tags("{{ '<|turn>model\n' }}{% if not enable_thinking %}{{ '<|channel>thought\n<channel|>' }}")
    assert tags is not None
    text = tagged_model(tags, "special")
    encode = text.tokenizer.encode
    opened = encode("<|im_start|>model\n<|channel>thought\n", special=True)
    assert read(text, encode("hm<channel|>Hello", special=True), opened) == {"thinking": "hm", "answer": "Hello"}
    left = encode("<|im_start|>model\n<|channel>thought\n<channel|>", special=True)
    assert read(text, encode("Hello", special=True), left) == {"thinking": "", "answer": "Hello"}
    written = encode("<|channel>thought\nhm<channel|>Hello", special=True)
    assert read(text, written, left) == {"thinking": "hm", "answer": "Hello"}


SPM = tokenizer_from_gguf(sentencepiece())
BARE = tokenizer_from_gguf(sentencepiece(add_space_prefix=False))
HELLO = next(i for i in range(SPM.vocab_size) if SPM.token_text(i) == "▁hello")
H = SPM.vocabulary.tokens.index("h")
SPACE = next(i for i in range(SPM.vocab_size) if SPM.token_text(i) == "▁")


RAW, CUT = Request(prompt="hi"), Request(messages=({"role": "assistant", "content": "oh"},), continues=True)
LED_BY_A_SPACE = {
    "once": (ASK, "", [HELLO, HELLO], "hello hello"),
    "one space": (ASK, "", [SPACE, HELLO], " hello"),
    "behind a thought": (ASK, "<think>hello</think>", [HELLO, HELLO], "hello hello"),
    "a raw prompt": (RAW, "", [HELLO], " hello"),
    "an answer that is gone on with": (CUT, "", [HELLO], " hello"),
}


@pytest.mark.parametrize("case", LED_BY_A_SPACE)
def test_the_space_before_every_text_is_not_of_the_answer(case: str) -> None:
    asked, thought, ids, answer = LED_BY_A_SPACE[case]
    for tokenizer in (SPM, BARE):
        text = ModelText(tokenizer, ChatTemplate(CHATML), THINK, Sampling(), ())
        stream = AnswerStream(text.parser(asked, [1]), ())
        for i in [*(3 + byte for byte in thought.encode()), *ids]:
            list(stream.push(i))
        list(stream.flush())
        written = b"".join(map(tokenizer.piece, ids)).decode()
        assert stream.text("answer") == (answer if tokenizer is SPM else written)


USER = "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %}"
TEMPLATES = {
    "no space": USER + "{{ m.content }}</s>{% endif %}{% endfor %}",
    "a space": USER + " {{ m.content }}</s>{% endif %}{% endfor %}",
}


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("answers", [([HELLO], [HELLO, HELLO]), ([HELLO], [H]), ([H], [HELLO])])
def test_the_answer_without_its_space_is_what_the_model_said(template: str, answers: tuple[list[int], ...]) -> None:
    """What was computed of a chat is kept whole, whether the template writes that space or not."""
    text = ModelText(SPM, ChatTemplate(TEMPLATES[template]), None, Sampling(), ())
    messages, known = list(ASK.messages), text.prepare(ASK).ids
    for ids in answers:
        parser = text.parser(ASK, known)
        said = "".join(piece[1] for i in ids for piece in parser.push(i) if isinstance(piece, tuple))
        known += ids
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "hello you"}]
        following = text.prepare(Request(messages=tuple(messages), known_ids=tuple(known)))
        begins_with_space = SPM.piece(ids[0]).startswith(b" ")
        if template == "no space" or begins_with_space:
            assert following.n_kept == len(known), following.note
        known = following.ids


PREPEND = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ],
}
STRIP = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}


def metaspace(scheme: str) -> dict[str, Any]:
    part = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
    return {"pre_tokenizer": part, "decoder": part}


BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
FOLDERS: dict[str, dict[str, Any]] = {
    "legacy": {"normalizer": PREPEND, "decoder": STRIP},
    "always": metaspace("always"),
    "first": metaspace("first"),
    "never": metaspace("never"),
    "bytes": {"pre_tokenizer": BYTES, "decoder": BYTES},
}


@pytest.mark.parametrize("name", FOLDERS)
def test_an_answer_begins_as_transformers_decodes_it(name: str, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    vocab = {"a": 0, "b": 1, "▁a": 2, "▁": 3, "Ġ": 4, "Ġa": 5}
    content = small_bpe(added_tokens=[], model={"type": "BPE", "vocab": vocab, "merges": []}, **FOLDERS[name])
    tokenizer = tokenizer_from_folder(tokenizer_json(tmp_path, content))
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    text = ModelText(tokenizer, ChatTemplate(CHATML), None, Sampling(), ())
    for ids in ([5, 0], [4, 5]) if name == "bytes" else ([2, 1], [3, 2], [0, 2]):
        parser = text.parser(ASK, [0])
        ours = "".join(piece[1] for i in ids for piece in parser.push(i) if isinstance(piece, tuple))
        assert ours == theirs.decode(ids, clean_up_tokenization_spaces=False)


CUTS_THOUGHTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_cuts_no_answer_at_a_tag_that_it_only_speaks_of(kind: str) -> None:
    text = tagged_model(THINK, kind, CUTS_THOUGHTS)
    said = "write </think> at the end"
    asked = text.prepare(ASK).ids
    turn = {"role": "assistant", "content": said, "reasoning_content": ""}
    chat = (*ASK.messages, turn, {"role": "user", "content": "so?"})
    known = (*asked, *said.encode())
    following = text.prepare(Request(messages=chat, known_ids=known))
    assert (following.n_kept, following.note) == (len(known), "")
    fresh = text.tokenizer.decode(text.prepare(Request(messages=chat)).ids, special=True)
    assert said in fresh
    thought = {"role": "assistant", "content": f"hm{said}"}  # nobody told thought and answer apart but the template
    fresh = text.tokenizer.decode(text.prepare(Request(messages=(*ASK.messages, thought))).ids, special=True)
    assert ("hm" in fresh) == (kind == "special"), "control tokens in messages are hidden from every template"
