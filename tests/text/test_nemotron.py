"""Nemotron Nano as its files have it: the published template, its tags, and a vocabulary with words left for later."""

from pathlib import Path

import pytest
from localrun_testing.vocabularies import CONTROL, NORMAL, UNUSED, WORDS, byte_level

from localrun.text.reasoning import ReasoningTags, reasoning_tags
from localrun.text.template import ChatTemplate
from localrun.text.tokenizer import tokenizer_from_gguf

SPECIALS = ("<s>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "</s>", "[PAD7]")


@pytest.fixture
def template(shared_dir: Path) -> str:
    return (shared_dir / "vectors/templates/NVIDIA-Nemotron-Nano-v2.jinja").read_text("utf-8")


@pytest.mark.parametrize("pre", ["tekken", "pixtral"])
def test_its_turns_and_thoughts(template: str, pre: str) -> None:
    """Of the words that its prompts begin turns with each is one token, though not in what a user says."""
    types = [NORMAL] * (256 + len(WORDS)) + [CONTROL] * 5 + [UNUSED]
    tokenizer = tokenizer_from_gguf(byte_level(pre, SPECIALS, token_type=types))
    ids = {tokenizer.token_text(i): i for i in range(tokenizer.vocab_size)}
    prompt = ChatTemplate(template).render([{"role": "user", "content": "hello"}], add_generation_prompt=True)
    found = tokenizer.encode(prompt, special=True)
    assert [i for i in found if i in tokenizer.control_ids] == [
        ids[name] for name in ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_11>")
    ]
    assert ids["hello"] in found
    assert tokenizer.control_ids.isdisjoint(tokenizer.encode("<SPECIAL_11>User"))
    assert ids["[PAD7]"] not in tokenizer.encode("[PAD7]"), "nothing is ever written with a word left for later"


def test_its_thoughts_begin_in_the_prompt(template: str) -> None:
    tags = reasoning_tags(template)
    assert tags == ReasoningTags("<think>", "</think>")
    chat = ChatTemplate(template)

    def prompt(text: str) -> str:
        return chat.render([{"role": "user", "content": text}], add_generation_prompt=True)

    assert prompt("hello").endswith("<think>\n")
    assert not prompt("hello /no_think").endswith("<think>\n")
