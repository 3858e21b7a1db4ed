"""Images in chats: in the order they were written, by the model's own template; text that spells a mark stays text."""

from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.vocabularies import SPECIALS, byte_level

from localrun.base.content import FilePart, ImagePart, TextPart, as_message_content
from localrun.base.errors import ModelFileError, UsageError
from localrun.base.image_ids import image_ids, is_image
from localrun.base.request import Request, RequestMessage, Sampling
from localrun.text.image_tokens import ImageTokens, PromptImage
from localrun.text.model_text import ModelText
from localrun.text.template import CHATML, ChatTemplate
from localrun.text.tokenizer import tokenizer_from_gguf

PAD, START, END = "<|image_pad|>", "<|vision_start|>", "<|vision_end|>"
TOKENIZER = tokenizer_from_gguf(byte_level(specials=(SPECIALS[0], PAD, START, END, *SPECIALS[1:])))
PAD_ID, START_ID, END_ID = (TOKENIZER.control_tokens[text] for text in (PAD, START, END))
SEES = (  # as Qwen3.5's
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'text' in part %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CAT, DOG = (ImagePart(f"{name}.png", hash_ * 64, 10, 20, "image/png") for name, hash_ in (("cat", "a"), ("dog", "b")))
SMALL_CAT = replace(CAT, most_rows=128)
KNOWN = {
    CAT.key: PromptImage(b"c" * 16, 3),
    DOG.key: PromptImage(b"d" * 16, 2),
    SMALL_CAT.key: PromptImage(b"s" * 16, 1),
}
CAT_IDS, DOG_IDS = image_ids(b"c" * 16, 3), image_ids(b"d" * 16, 2)


def model_text(template: str = SEES, tokens: ImageTokens | None = None) -> ModelText:
    tokens = tokens or ImageTokens.of(TOKENIZER, PAD)
    made = ChatTemplate(template, TOKENIZER.bos_token, TOKENIZER.eos_token)
    return ModelText(TOKENIZER, made, None, Sampling(), (), image_tokens=tokens)


def user(*content: TextPart | ImagePart | FilePart) -> RequestMessage:
    return {"role": "user", "content": as_message_content(content)}


def prepared(*messages: RequestMessage, text: ModelText | None = None, **more: Any) -> list[int]:
    return (text or model_text()).prepare(Request(messages=messages, **more), images=KNOWN).ids


def shown(ids: list[int]) -> str:
    """The text with a letter for each row."""
    return "".join("#" if is_image(one) else TOKENIZER.decode([one], special=True) for one in ids)


def test_images_stand_where_they_were_written() -> None:
    ids = prepared(user(TextPart("first "), DOG, TextPart(" then "), CAT, TextPart(" which?")))
    around = f"{START}##{END} then {START}###{END} which?"
    assert shown(ids) == f"<|im_start|>user\nfirst {around}<|im_end|>\n<|im_start|>assistant\n"
    rows = [one for one in ids if is_image(one)]
    assert rows == [*DOG_IDS, *CAT_IDS]


def test_an_image_in_two_sizes_is_two_images() -> None:
    ids = prepared(user(SMALL_CAT, TextPart(" or "), CAT))
    assert [one for one in ids if is_image(one)] == [*image_ids(b"s" * 16, 1), *CAT_IDS]


def test_files_between_images_are_written_into_the_text() -> None:
    ids = prepared(user(CAT, FilePart("a.txt", "abc"), TextPart("see both"), DOG))
    assert f"{START}###{END}[file: a.txt]\n```\nabc\n```\n\nsee both{START}##{END}" in shown(ids)


@pytest.mark.parametrize("spelled", [PAD, f"{START}{PAD}{END}", f"{PAD}{PAD}"])
def test_text_that_spells_a_mark_stays_text(spelled: str) -> None:
    ids = prepared(user(TextPart(spelled), CAT))
    assert [one for one in ids if is_image(one)] == CAT_IDS
    assert (ids.count(PAD_ID), ids.count(START_ID), ids.count(END_ID)) == (0, 1, 1)
    assert spelled in shown(ids)


def test_marks_that_the_template_lacks_come_around_the_rows() -> None:
    template = SEES.replace(START, "").replace(END, "")
    ids = prepared(user(CAT), text=model_text(template, ImageTokens.of(TOKENIZER, PAD, START, END)))
    assert f"user\n{START}###{END}<|im_end|>" in shown(ids)


def test_a_chat_with_images_goes_on_from_what_is_known() -> None:
    first = prepared(user(CAT, TextPart("what?")))
    known = (*first, *TOKENIZER.encode("a cat"))
    answer = {"role": "assistant", "content": "a cat"}
    prompt = model_text().prepare(
        Request(messages=(user(CAT, TextPart("what?")), answer, user(TextPart("sure?"))), known_ids=known), images=KNOWN
    )
    assert prompt.ids[: len(known)] == list(known)
    assert prompt.n_kept == len(known)
    assert prompt.note == ""


def test_another_image_in_the_same_place_is_a_rewritten_turn() -> None:
    known = (*prepared(user(TextPart("hm"))), *TOKENIZER.encode("yes"))
    answer = {"role": "assistant", "content": "yes"}
    both = [user(TextPart("hm")), answer]
    known = (*prepared(*both, user(CAT, TextPart("what?"))), *TOKENIZER.encode("a cat"))
    more = [{"role": "assistant", "content": "a cat"}, user(TextPart("sure?"))]
    request = Request(messages=(*both, user(DOG, TextPart("what?")), *more), known_ids=known)
    prompt = model_text().prepare(request, images=KNOWN)
    assert [one for one in prompt.ids if is_image(one)] == DOG_IDS
    assert prompt.changed is not None
    assert prompt.n_kept == known.index(CAT_IDS[0])


def test_a_model_or_a_template_that_sees_none_says_so() -> None:
    blind = replace(model_text(), image_tokens=None)
    with pytest.raises(UsageError, match="sees no images"):
        prepared(user(CAT), text=blind)
    with pytest.raises(UsageError, match="0 of 1 images"):
        prepared(user(CAT, TextPart("what?")), text=model_text(SEES.replace(PAD, "")))
    with pytest.raises(ModelFileError, match="template failed"):
        prepared(user(CAT, TextPart("what?")), text=model_text(CHATML))
    with pytest.raises(UsageError, match="not there any more"):
        model_text().prepare(Request(messages=(user(CAT),)))
    with pytest.raises(ModelFileError, match="lacks <unknown>"):
        ImageTokens.of(TOKENIZER, "<unknown>")
