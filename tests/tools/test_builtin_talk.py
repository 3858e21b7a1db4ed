"""What the built-in model recalls was told, and its stories and verses keep their form."""

from __future__ import annotations

import re
from random import Random

import pytest

from tools.builtin_data import (
    alike,
    made_up,
    memory,
    names,
    outside_tasks,
    poems,
    stories,
    things,
)
from tools.builtin_data.compose import compose
from tools.builtin_data.fact import sentence
from tools.builtin_data.grammar import article, ask
from tools.builtin_data.outside_slots import outside_slots
from tools.builtin_data.own_name import NAME
from tools.builtin_data.story import new_story, told
from tools.builtin_data.talk import Talk
from tools.builtin_data.your_facts import FACTS, fact_of


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


def test_two_facts_of_a_kind_keep_their_owners() -> None:
    """Both stand in the answers beside what they belong to, and an answer never takes the other's value."""
    for seed in range(300):
        talk = Talk(Random(seed))
        (alike.two_names, alike.two_alike, alike.two_new_words)[seed % 3](talk)
        for skill, (_, answer) in zip(talk.skills, talk.turns, strict=True):
            if skill == "recall":
                said = {sentence(fact_of(k).about.replace("{v}", v)) for k, v in talk.facts.items()}
                assert answer in said


def test_who_is_asked_about_is_the_one_with_that_name() -> None:
    """What was told of the name in the question is answered, read from what the chat holds."""
    answered = 0
    for seed in range(300):
        talk = Talk(Random(seed))
        alike.who_is(talk)
        nouns = {value.lower(): key.removesuffix("'s name") for key, value in talk.facts.items()}
        for skill, (user, answer) in zip(talk.skills, talk.turns, strict=True):
            if skill == "recall":
                name = values_of(answer)[0]
                assert name in user.lower()
                assert answer.startswith(f"Your {nouns[name]} is called ")
                answered += 1
    assert answered > 300


def test_what_is_liked_is_kept_beside_the_name() -> None:
    for seed in range(200):
        talk = Talk(Random(seed))
        alike.liking_beside_name(talk)
        user, answer = talk.turns[0]
        assert talk.facts["likes"].lower() in user.lower()
        assert talk.facts["name"] in answer
        assert talk.facts["likes"] in answer
        assert talk.facts["name"] in talk.turns[-1][1] or talk.facts["likes"] in talk.turns[-1][1]


def test_a_name_may_begin_as_the_message_before_it() -> None:
    alike_words = 0
    for seed in range(300):
        talk = Talk(Random(seed))
        alike.like_what_was_said(talk)
        for value in talk.facts.values():
            alike_words += value.lower().startswith(re.split(r"[\s,.!?]", talk.turns[0][0].lower())[0])
            assert value in talk.turns[-1][1]
    assert alike_words > 150


def test_a_corrected_name_is_the_last_one() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        alike.corrected(talk)
        if talk.skills[-1] == "recall":
            assert talk.turns[-1][1] == f"Your name is {talk.facts['name']}."
            user = next(
                user for user, answer in reversed(talk.turns) if answer.startswith(("All right", "Thank you, "))
            )
            assert talk.facts["name"] in user


def test_a_similar_name_is_another_one() -> None:
    for seed in range(500):
        rng = Random(seed)
        name = names.one_word_name(rng)
        assert names.similar_name(rng, name).lower() != name.lower()


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


def in_own_words(answer: str) -> bool:
    """The model's own words, not those of the user said back."""
    return not answer.startswith(("Here it is", "You said:", "Your first message", "All right"))


def test_a_or_an_stands_before_a_word_as_it_sounds() -> None:
    seen = 0
    for seed in range(1500):
        for _, answer in compose(Random(seed)).turns:
            for a, word in re.findall(r"(?<![\w'])(an?) ([a-z]{2,})", answer if in_own_words(answer) else ""):
                assert article(word) == f"{a} {word}", answer
                seen += 1
    assert seen > 500


def test_a_story_keeps_one_name_and_introduces_its_hero_with_an_article() -> None:
    for seed in range(300):
        rng = Random(seed)
        story = new_story(rng, things.animal(rng), names.one_word_name(rng))
        text = told(rng, story)
        assert f"{article(story.kind)} " in f"{text[:1].lower()}{text[1:]} "
        capitals = set(re.findall(r"(?<=[a-z,] )[A-Z]\w+", text.replace(story.hero, "")))
        assert capitals <= {"I"}, (capitals, text)


def test_all_facts_of_a_message_are_confirmed() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        memory.tell_several(talk)
        assert all(value in talk.turns[0][1] for value in talk.facts.values())


def test_made_up_words_are_letters_only() -> None:
    for seed in range(300):
        rng = Random(seed)
        for word in (made_up.rough(rng), made_up.repeated(rng), made_up.nonsense_word(rng)):
            assert word.isalpha()
            assert 1 < len(word) < 30
        assert len(set(made_up.repeated(rng))) < 5


def test_a_request_for_a_program_is_whole_and_no_request_for_a_story() -> None:
    for seed in range(200):
        rng = Random(seed)
        asked = ask(rng, outside_tasks.PROGRAM_REQUESTS, outside_slots(Talk(rng)))
        assert "story" not in asked.lower()
        assert not re.search(r"[{}\[\]|]", asked)
