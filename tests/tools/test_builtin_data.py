"""The text the built-in model learns from: the same for the same seed, true where it can be checked, never held out."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import jinja2
import pytest

from tools.builtin_data import (
    knowledge,
    smalltalk,
)
from tools.builtin_data.compose import chats, one_chat
from tools.builtin_data.facts_commands import COMMANDS
from tools.builtin_data.grammar import expand, fill_noisily, normalised
from tools.builtin_data.heldout import HELD_OUT, PROBES
from tools.builtin_tokenizer import (
    CHAT_TEMPLATE,
    CONTROL_TOKENS,
    DECISIVE_WEIGHT,
    Chat,
    Message,
    encode_chat,
    encode_roughly,
    render,
    train_tokenizer,
)
from tools.eval_builtin import CATEGORIES

N_CHATS = 3000


@pytest.fixture(scope="module")
def sample() -> list[Chat]:
    return list(islice(chats(seed=5), N_CHATS))


def test_same_seed_same_chats(sample: list[Chat]) -> None:
    assert list(islice(chats(seed=5), 200)) == sample[:200]
    assert list(islice(chats(seed=6), 200)) != sample[:200]


def test_held_out_questions_never_appear(sample: list[Chat]) -> None:
    said = {normalised(m.content) for chat in sample for m in chat if m.role == "user"}
    assert not said & HELD_OUT
    assert len(PROBES) >= 150


def test_words_cut_anywhere_are_the_same_text() -> None:
    chat = (Message("user", "my name is Tim"), Message("assistant", "Nice to meet you, Tim!"))
    tokenizer = train_tokenizer((m.content for m in one_chat(5, 1)), vocab_size=400)
    plain, _ = encode_chat(tokenizer, chat)
    for text in (chat[0].content, "a", ""):
        for seed in range(20):
            assert tokenizer.decode(encode_roughly(tokenizer, text, Random(seed))) == text
    others = [encode_chat(tokenizer, chat, Random(seed))[0] for seed in range(40)]
    assert {tokenizer.decode(ids) for ids in others} == {tokenizer.decode(plain)}
    assert any(ids != plain for ids in others)


def test_every_held_out_skill_has_a_category() -> None:
    assert {probe.skill for probe in PROBES} <= {skill for _, skills in CATEGORIES.values() for skill in skills}


def test_a_chat_with_a_held_out_question_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = one_chat(5, 0)
    asked = normalised(next(m.content for m in chat if m.role == "user"))
    monkeypatch.setattr("tools.builtin_data.compose.HELD_OUT", frozenset([asked]))
    assert one_chat(5, 0) == ()


def test_roles_alternate_and_nothing_is_left_unfilled(sample: list[Chat]) -> None:
    for chat in sample:
        turns = chat[1:] if chat[0].role == "system" else chat
        assert [m.role for m in turns] == ["user", "assistant"] * (len(turns) // 2)
        for m in chat:
            assert m.content.strip()
            assert not any(token in m.content for token in CONTROL_TOKENS)
            assert not re.search("[\ue000-\ue0ff]", m.content)
            if m.role == "assistant":
                assert not re.search(r"[{}\[\]]|  ", m.content), m.content


def test_answers_name_only_commands_that_exist(sample: list[Chat]) -> None:
    texts = [m.content for chat in sample for m in chat if m.role == "assistant"]
    texts += [text for topic in knowledge.TOPICS for text in (*topic.answer, *topic.short, *topic.more, *topic.simple)]
    texts += [text for exchange in smalltalk.EXCHANGES for text in exchange.answers]
    named = [name for text in texts for name in re.findall(r"`localrun ([a-z]+)", text)]
    assert len(set(named)) > 10
    assert set(named) <= COMMANDS


def test_template_renders_like_the_trainer(sample: list[Chat]) -> None:
    template = jinja2.Environment().from_string(CHAT_TEMPLATE)
    for chat in sample[:300]:
        messages = [{"role": m.role, "content": m.content} for m in chat]
        assert template.render(messages=messages, bos_token="<|begin|>") == render(chat)
    hi = [{"role": "user", "content": " Hi "}]
    shown = template.render(messages=hi, bos_token="<|begin|>", add_generation_prompt=True)
    assert shown == "<|begin|><|user|>Hi<|end|><|assistant|>" == render([Message("user", " Hi ")], True)


def test_chats_round_trip_through_the_tokenizer(sample: list[Chat]) -> None:
    tokenizer = train_tokenizer((m.content for chat in sample[:300] for m in chat), vocab_size=512)
    for chat in sample[:300]:
        ids, weights = encode_chat(tokenizer, chat)
        assert tokenizer.decode(ids, skip_special_tokens=False) == render(chat)
        assert ids == tokenizer.encode(render(chat), add_special_tokens=False).ids
        learnt = tokenizer.decode(
            [i for i, weight in zip(ids, weights, strict=True) if weight], skip_special_tokens=False
        )
        assert learnt == "".join(m.content.strip() + "<|end|>" for m in chat if m.role == "assistant")


def test_a_rare_word_of_the_user_counts_more_than_the_rest_of_a_long_answer(sample: list[Chat]) -> None:
    tokenizer = train_tokenizer((m.content for chat in sample[:300] for m in chat), vocab_size=512)
    story = "Once upon a time there was a little fox in the wood. It was called Zqx and it had 7 friends."
    chat = (Message("user", "tell me the story of ZQX"), Message("assistant", story))
    ids, weights = encode_chat(tokenizer, chat)
    decisive = [tokenizer.decode([i]) for i, weight in zip(ids, weights, strict=True) if weight == DECISIVE_WEIGHT]
    assert "".join(decisive).split() == ["Zqx7"]


def test_digits_are_tokens_of_their_own(sample: list[Chat]) -> None:
    tokenizer = train_tokenizer((m.content for chat in sample for m in chat), vocab_size=1024)
    assert tokenizer.encode("12345", add_special_tokens=False).tokens == list("12345")


def test_expand_picks_one_of_each() -> None:
    seen = {expand(Random(seed), "[a|b [c|d]] e[?|]") for seed in range(200)}
    assert seen == {"a e", "a e?", "b c e", "b c e?", "b d e", "b d e?"}


def test_noise_never_touches_slot_values() -> None:
    for seed in range(300):
        text = fill_noisily(Random(seed), "my name is {v} and i like {w}", {"v": "Łukasz-O'Neil", "w": "42"})
        assert "Łukasz-O'Neil" in text
        assert "42" in text
