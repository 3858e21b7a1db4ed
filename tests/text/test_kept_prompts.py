"""Prompts that begin like earlier ones: their ids are those of the whole text, and only the end is encoded."""

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from localrun_testing.vocabularies import byte_level, sentencepiece

from localrun.text import kept_prompts
from localrun.text.kept_prompts import KeptPrompts, common_length
from localrun.text.tokenizer import tokenizer_from_gguf

# Letters are read in pairs, so that ids depend on where a piece begins; tokens that stand in longer ones mislead.
ADDED = ("<a>", "<b>", "<ab>", "x<a>y", "<a>z", "b<b")
CONTROLS = {0: "<a>", 1: "<b>", 2: "<ab>"}
PATTERN = re.compile("|".join(sorted(map(re.escape, ADDED), key=len, reverse=True)) + "|aa|bb|ab|.", re.DOTALL)
WORDS = st.sampled_from((*ADDED, "a", "b", "x", "y", "z", "<", ">"))
PROMPTS = st.lists(st.tuples(st.integers(0, 12), st.lists(WORDS, max_size=8)), min_size=1, max_size=8)


def whole(text: str) -> list[int]:
    """Ids of a toy vocabulary whose added tokens are found first, the longest where several match."""
    known = {token: number for number, token in enumerate(ADDED)}
    return [known[found] if found in known else 100 + sum(map(ord, found)) for found in PATTERN.findall(text)]


def texts_of(prompts: list[tuple[int, list[str]]]) -> list[str]:
    """Texts each of which begins like the one before it, and then goes on in its own way."""
    texts = [""]
    for same, words in prompts:
        texts.append(texts[-1][:same] + "".join(words))
    return texts[1:]


@pytest.fixture(autouse=True)
def _keep_short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_prompts, "LEAST", 1)


@given(PROMPTS)
@example([(0, ["x", "<a>"]), (4, ["y"])])
def test_ids_are_those_of_the_whole_text(prompts: list[tuple[int, list[str]]]) -> None:
    kept = KeptPrompts(CONTROLS, ADDED)
    for text in texts_of(prompts):
        assert kept.encode(text, whole) == whole(text)


@pytest.mark.parametrize("vocabulary", [byte_level, sentencepiece])
def test_ids_of_chats_are_those_of_a_new_tokenizer(vocabulary: Callable[[], dict[str, object]]) -> None:
    """Also white space beside control tokens, and a text that begins without one."""
    tokenizer = tokenizer_from_gguf(vocabulary())
    start, end = list(tokenizer.control_tokens)[-2:]
    turns = [
        "be brief",
        *(f"{start}{say}{end}" for say in ("user\nhello  there", " \n", "a", "", "\u00e9\u0301 b ", "hi")),
    ]
    for n in range(1, len(turns) + 1):
        for last in ("", start, f"{start} user", f" {end}\n", end[:-1], "hello"):
            text = "\n".join(turns[:n]) + last
            assert tokenizer.encode(text, special=True) == tokenizer_from_gguf(vocabulary()).encode(text, special=True)


def test_only_the_end_is_encoded() -> None:
    encoded: list[str] = []

    def encode(text: str) -> list[int]:
        encoded.append(text)
        return whole(text)

    kept = KeptPrompts(CONTROLS, ["<a>", "<b>", "<ab>"])
    first, second = "aab<a>abb" * 50, "a<b>aa"
    for text in (first, first + second, first, first + second + "<a>", "aab"):
        assert kept.encode(text, encode) == whole(text)
    assert encoded == [first, "<a>abb" + second, "<a>abb", "<b>aa<a>", "aab"]


def test_few_prompts_are_kept() -> None:
    kept = KeptPrompts(CONTROLS, ["<a>"])
    for n in range(10):
        kept.encode(f"{n}<a>", whole)
    assert [prompt.text for prompt in kept._kept] == [f"{n}<a>" for n in range(6, 10)]


@given(st.text("ab", max_size=20), st.text("ab", max_size=20))
def test_common_length(a: str, b: str) -> None:
    n = common_length(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]
