"""What the built-in model is taught of localrun is true of localrun, and each question has one answer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer.main
from textual.binding import Binding

from localrun.chat.commands import COMMANDS as SLASH_COMMANDS
from localrun.cli.app import command_line
from localrun_tui.keys import groups
from localrun_tui.screens.help_screen import key_names
from tools.builtin_data import heldout_knowledge, knowledge
from tools.builtin_data.grammar import normalised
from tools.builtin_data.heldout import PROBES, Probe
from tools.builtin_data.talk import Talk
from tools.builtin_data.topic import Topic

ANSWERS = [
    (topic.key, text)
    for topic in knowledge.TOPICS
    for text in (*topic.answer, *topic.short, *topic.more, *topic.simple, *topic.example)
]
QUESTIONS = [probe for probe in PROBES if probe.skill in heldout_knowledge.LINES and len(probe.users) == 1]
KIB = 1024


def named(pattern: str) -> set[str]:
    return {name for _, text in ANSWERS for name in re.findall(pattern, text)}


def options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def bytes_a_token(name: str, kv_heads: int = 0, bytes_a_number: int = 2) -> int:
    config = tomllib.loads(Path("models.toml").read_text("utf-8"))["models"][name]["config"]
    heads = kv_heads or config["num_key_value_heads"]
    return int(2 * config["num_hidden_layers"] * heads * config["head_dim"] * bytes_a_number)


def answers_of(key: str) -> str:
    return " ".join(text for topic, text in ANSWERS if topic == key)


def test_options_exist() -> None:
    there = set(options(typer.main.get_command(command_line())))
    assert len(named(r"(--[a-z-]+)")) > 15
    assert named(r"(--[a-z-]+)") <= there | {"--help"}


def test_commands_inside_a_chat_exist() -> None:
    assert named(r"`(/[a-z-]+)") <= {command.name for command in SLASH_COMMANDS}


def test_keys_are_bound() -> None:
    bound = {key_names(binding) for _, bindings in groups() for binding in bindings if isinstance(binding, Binding)}
    keys = named(r"\b(Ctrl\+[A-Z]|F\d)\b")
    assert len(keys) > 6
    assert keys <= bound


def test_the_memory_of_the_cache_is_what_the_formula_says() -> None:
    assert bytes_a_token("llama-3.1-8b") == 128 * KIB
    assert bytes_a_token("llama-3.1-8b") * 8192 == KIB**3
    assert bytes_a_token("llama-3.1-8b", kv_heads=32) == 512 * KIB
    assert bytes_a_token("llama-3.1-8b", kv_heads=1) == 16 * KIB
    assert bytes_a_token("llama-3.3-70b") * 128 * KIB == 40 * KIB**3
    assert 800 * KIB == 2 * 40 * 40 * 128 * 2  # Llama 2 13B: 40 layers of 40 heads
    for figure in ("128 KiB", "1 GiB", "800 KiB", "40 GiB"):
        assert figure in answers_of("kv_memory")
    for figure in ("512 KiB", "128 KiB", "16 KiB"):
        assert figure in answers_of("mha_mqa")


def test_a_question_belongs_to_one_topic() -> None:
    asked: dict[str, str] = {}
    for topic in knowledge.TOPICS:
        rng = Random(topic.key)
        for _ in range(150):
            text = normalised(knowledge.question(rng, topic))
            assert asked.setdefault(text, topic.key) == topic.key, text


def test_short_answers_are_sentences() -> None:
    for topic in knowledge.TOPICS:
        for text in knowledge.shortest(topic):
            assert text[0].isupper() or text.startswith(("`", "localrun", "fp16")), topic.key
            assert text.endswith("."), (topic.key, text)
            assert len(text) <= len(max(topic.answer, key=len)) or topic.short


@pytest.mark.parametrize("probe", QUESTIONS)
def test_a_held_out_question_tells_right_answers_from_wrong_ones(probe: Probe) -> None:
    right = [topic.key for topic in knowledge.TOPICS if probe.passes(topic.answer[0])]
    assert 1 <= len(right) <= len(knowledge.TOPICS) // 8, right


def test_what_follows_an_answer_is_of_its_topic() -> None:
    """Shorter, simpler, more, an example: all are texts of the topic talked about last."""
    texts = {topic.key: own_texts(topic) for topic in knowledge.TOPICS}
    followed = 0
    for seed in range(2000):
        talk = Talk(Random(seed))
        knowledge.topic_turns(talk)
        key = ""
        for skill, (_, answer) in zip(talk.skills, talk.turns, strict=True):
            if skill.startswith("topic:"):
                key = skill.removeprefix("topic:")
            else:
                assert answer == knowledge.NO_MORE or answer in texts[key], (key, answer)
                followed += 1
    assert followed > 300


def own_texts(topic: Topic) -> set[str]:
    return {*topic.answer, *topic.short, *topic.more, *topic.simple, *topic.example, *knowledge.shortest(topic)}
