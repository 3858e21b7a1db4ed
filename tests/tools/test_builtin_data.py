"""The text the built-in model learns from: the same for the same seed, true where it can be checked, never held out."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from random import Random

import jinja2
import pytest

from tools.builtin_data import (
    arithmetic,
    counting,
    knowledge,
    logic,
    memory,
    order,
    poems,
    smalltalk,
    stories,
    word_problems,
)
from tools.builtin_data.compose import chats, compose, one_chat
from tools.builtin_data.facts_commands import COMMANDS
from tools.builtin_data.grammar import expand, fill_noisily, normalised, plural
from tools.builtin_data.heldout import HELD_OUT, PROBES
from tools.builtin_data.own_name import NAME
from tools.builtin_data.talk import Talk
from tools.builtin_data.your_facts import FACTS
from tools.builtin_tokenizer import (
    CHAT_TEMPLATE,
    CONTROL_TOKENS,
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
    for seed in range(20):
        ids = encode_roughly(tokenizer, chat[0].content, Random(seed))
        assert tokenizer.decode(ids) == chat[0].content
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


def test_every_sum_is_right(sample: list[Chat]) -> None:
    checked = 0
    for m in (m for chat in sample for m in chat if m.role == "assistant"):
        if found := re.fullmatch(r"(\d+) ([-+×/]) (\d+) = (-?\d+)(?: remainder (\d+))?\.", m.content):
            a, op, b, result, rest = found.groups()
            expected = {"+": int(a) + int(b), "-": int(a) - int(b), "×": int(a) * int(b), "/": 0}[op]
            if op == "/":
                assert divmod(int(a), int(b)) == (int(result), int(rest or 0))
            else:
                assert int(result) == expected
            checked += 1
    assert checked > 500


def test_chains_comparisons_and_rows_are_right(sample: list[Chat]) -> None:
    said = [m.content for chat in sample for m in chat if m.role == "assistant"]
    chains = [re.fullmatch(r"([\d +-]+) = (\d+), and (\2 .+) = (\d+)\.", text) for text in said]
    for chain in (found.groups() for found in chains if found):
        assert (eval(chain[0]), eval(chain[2])) == (int(chain[1]), int(chain[3]))
    compared = [re.fullmatch(r"(?:Yes, |No, )?(\d+) is (greater|smaller) than (\d+)\.", text) for text in said]
    for a, word, b in (found.groups() for found in compared if found):
        assert (int(a) > int(b)) == (word == "greater")
    rows = [text.rstrip(".").split(", ") for text in said if re.fullmatch(r"\d+(, \d+){4,}\.", text)]
    for numbers in rows:
        assert len({int(b) - int(a) for a, b in pairwise(numbers)}) == 1
    assert min(sum(map(bool, chains)), sum(map(bool, compared)), len(rows)) > 5


def test_a_row_of_numbers_goes_on_as_it_began() -> None:
    for seed in range(200):
        talk = Talk(Random(seed))
        counting.sequence(talk)
        user, answer = talk.turns[0]
        numbers = [int(n) for n in re.findall(r"-?\d+", user)]
        assert int(re.findall(r"-?\d+", answer)[0]) == 2 * numbers[-1] - numbers[-2]


def test_word_problems_hold_the_numbers_of_their_sums() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        word_problems.word_problem(talk)
        user, answer = talk.turns[0]
        numbers = re.findall(r"\d+", user)
        assert set(numbers) <= set(re.findall(r"\d+", answer)), (user, answer)


def test_claims_and_largest_numbers_are_right() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        logic.logic_turns(talk)
        if not talk.turns:
            continue
        user, answer = talk.turns[0]
        numbers = [int(n) for n in re.findall(r"\d+", user)]
        if talk.skills[0] == "claim":
            truth = {"+": numbers[0] + numbers[1], "-": numbers[0] - numbers[1], "×": numbers[0] * numbers[1]}
            sign = re.findall(r"\d ([-+×]) \d", answer)[0]
            assert answer.startswith(("Yes", "True")) == (truth[sign] == numbers[2])
        elif talk.skills[0] == "extreme":
            assert int(answer.split(" ")[0]) == (max if "largest" in answer else min)(numbers)
        elif talk.skills[0] == "sorted":
            assert [int(n) for n in re.findall(r"\d+", answer)] == sorted(numbers)


@pytest.mark.parametrize(
    ("one", "many"), [("fox", "foxes"), ("pony", "ponies"), ("donkey", "donkeys"), ("mouse", "mice"), ("cat", "cats")]
)
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many


def test_after_and_before_agree() -> None:
    """What comes after X has X before it, round the week and the year."""
    for one in order.ORDERS[:2]:
        for at, item in enumerate(one.items):
            after = order.said(one, at, 1).rstrip(".").split(" ")[-1]
            assert order.said(one, one.items.index(after), -1) == f"Before {after} comes {item}."


def test_sums_are_answers_to_their_questions() -> None:
    for seed in range(500):
        talk = Talk(Random(seed))
        arithmetic.sum_turn(talk)
        (user, answer) = talk.turns[0]
        numbers = re.findall(r"\d+", user)
        if len(numbers) == 2 and "zero" not in answer:
            assert set(numbers) <= set(re.findall(r"\d+", answer)), (user, answer)


@pytest.mark.parametrize(("n", "words"), [(0, "zero"), (13, "thirteen"), (20, "twenty"), (99, "ninety-nine")])
def test_numbers_in_words(n: int, words: str) -> None:
    assert arithmetic.in_words(n) == words


def values_of(answer: str) -> list[str]:
    """What this answer recalls, read with every fact it may be about."""
    abouts = [fact.about for fact in FACTS] + ["your [a-z' ]+ is {v}", "your [a-z ]+ is called {v}"]
    text = answer.removeprefix("Yes, ").removeprefix("No, ").rstrip(".")
    found = (re.fullmatch(about.replace("{v}", "(.+)"), text, re.IGNORECASE) for about in abouts)
    return [match.group(1).lower().replace(" your ", " my ") for match in found if match]


def test_what_is_recalled_is_what_was_told() -> None:
    """Replay each chat with what the user said so far beside it."""
    recalled = 0
    for seed in range(1500):
        talk = compose(Random(seed))
        told = ""
        for skill, (user, answer) in zip(talk.skills, talk.turns, strict=True):
            told += " " + user.lower()
            if skill == "recall":
                assert any(value in told for value in values_of(answer)), (told, user, answer)
                recalled += 1
    assert recalled > 300


def test_a_name_is_said_back_as_it_was_written() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        memory.tell(talk, NAME)
        memory.recall(talk)
        for user, answer in talk.turns:
            if answer.startswith("Nice to meet you"):
                assert answer.removeprefix("Nice to meet you, ").split("!")[0] in user


def test_unknown_facts_are_called_unknown() -> None:
    for seed in range(50):
        talk = Talk(Random(seed))
        memory.recall(talk)
        assert "not told me" in talk.turns[0][1]


def test_a_story_is_about_whom_was_asked_for() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        story = stories.first_story(talk)
        answer = talk.turns[0][1]
        if talk.skills[0] == "story":
            assert answer.count(story.kind) >= 2
            assert answer.count(story.hero) >= 2
            assert story.friend in answer
            assert not re.search(r"[{}?]", answer)


def test_a_story_can_be_about_what_the_user_told() -> None:
    talk = Talk(Random(3), facts={"dog's name": "brix"})
    stories.own_story(talk)
    assert "my dog" in talk.turns[0][0].lower()
    assert "a dog" in talk.turns[0][1].lower()
    assert talk.turns[0][1].count("brix") >= 2


@pytest.mark.parametrize(
    ("phrase", "count"), [("fox", 1), ("rain", 1), ("guinea pig", 3), ("spider", 2), ("elephant", 3), ("bee", 1)]
)
def test_syllables(phrase: str, count: int) -> None:
    assert poems.syllables(phrase) == count


# Counted by hand; every other word of the haiku has one syllable.
LONG_WORDS = {"quiet": 2, "silent": 2, "falling": 2, "into": 2, "spider": 2, "elephant": 3, "caterpillar": 4}


@pytest.mark.parametrize("ending", poems.HAIKU_ENDINGS)
def test_haiku_have_five_seven_and_five_syllables(ending: str) -> None:
    for subject in ("fox", "spider", "elephant", "caterpillar"):
        for opening in poems.HAIKU_OPENINGS[poems.syllables(subject)]:
            text = opening.replace("{a}", subject) + ending
            lines = [re.sub("[^a-z ]", "", line.lower()) for line in text.splitlines()]
            assert [sum(LONG_WORDS.get(word, 1) for word in line.split()) for line in lines] == [5, 7, 5], text


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
