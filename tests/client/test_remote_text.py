"""Tags that a server leaves in an answer are told from its text, however the stream is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.client.remote.text import RemoteText, closed_thought
from localrun.text.reasoning import KNOWN_TAGS, ReasoningTags

THINK = ReasoningTags("<think>", "</think>")
HARMONY = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes"

# text of a server, thought, answer
CASES = [
    ("<think>\nhm</think>\n\nYes", "hm", "Yes"),
    ("\n\n<think>hm</think>Yes", "hm", "Yes"),
    ("<think>hm</think>Yes, <think>no</think>", "hm", "Yes, <think>no</think>"),
    ("[THINK]hm[/THINK]Yes", "hm", "Yes"),
    ("<seed:think>hm</seed:think>Yes", "hm", "Yes"),
    ("<|channel>thought\nhm<channel|>Yes", "hm", "Yes"),
    (HARMONY, "hm", "Yes"),
    ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes", "hm", "Yes"),
    ("Yes, <think> is a tag", "", "Yes, <think> is a tag"),
    ("<thin ice", "", "<thin ice"),
    ("<", "", "<"),
    ("[1, 2]", "", "[1, 2]"),
    ("", "", ""),
]


def split(pieces: list[str], opened: ReasoningTags | None = None) -> tuple[str, str]:
    """Thought and answer of a stream."""
    text = RemoteText(opened)
    told = [part for piece in pieces for part in text.push(piece)] + list(text.flush())
    return tuple("".join(words for channel, words in told if channel == one) for one in ("thinking", "answer"))  # type: ignore[return-value]


def cut(text: str, places: list[int]) -> list[str]:
    marks = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(marks)]


@given(st.sampled_from(CASES), st.lists(st.integers(0, 1000), max_size=30))
def test_thought_and_answer_of_every_cut(case: tuple[str, str, str], places: list[int]) -> None:
    text, thought, answer = case
    assert split(cut(text, places)) == (thought, answer)


@given(st.lists(st.integers(0, 1000), max_size=20))
def test_a_thought_that_the_prompt_opened(places: list[int]) -> None:
    assert split(cut("hm\n</think>\n\nYes </think>", places), THINK) == ("hm\n", "Yes </think>")


@pytest.mark.parametrize("tags", [tags for _, tags in KNOWN_TAGS if tags.open[0] in "<[" and not tags.headers])
def test_every_known_pair_of_tags(tags: ReasoningTags) -> None:
    assert split(list(f"{tags.open}hm{tags.close}Yes")) == ("hm", "Yes")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hm\n</think>\n\nYes", ("hm", "Yes")),
        ("a\nb\n[/THINK]\nYes", ("a\nb", "Yes")),
        ("close it with `</think>` there", None),
        ("</think>\nYes", None),  # nothing was thought
        ("hm </think> Yes", None),  # it may be text about tags
        ("", None),
    ],
)
def test_a_thought_is_known_by_its_end_alone_on_a_line(text: str, found: tuple[str, str] | None) -> None:
    closed = closed_thought(text)
    assert (closed and closed[:2]) == found
