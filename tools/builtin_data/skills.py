"""The skills a chat is strung together from, and how often each comes up."""

from __future__ import annotations

from collections.abc import Callable

from tools.builtin_data import (
    arithmetic,
    counting,
    echo,
    hard_sums,
    knowledge,
    memory,
    opposites,
    order,
    poems,
    reading,
    refusals,
    smalltalk,
    stories,
    word_problems,
)
from tools.builtin_data.grammar import answer, ask, first_of
from tools.builtin_data.talk import Talk

EXCHANGE_WEIGHTS = [exchange.weight for exchange in smalltalk.EXCHANGES]


def small_talk(talk: Talk) -> None:
    rng = talk.rng
    exchange = rng.choices(smalltalk.EXCHANGES, EXCHANGE_WEIGHTS)[0]
    talk.say(f"talk:{exchange.key}", ask(rng, exchange.patterns, wrap=exchange.wrap), answer(rng, exchange.answers))


def greeting(talk: Talk) -> None:
    exchange = smalltalk.EXCHANGES[0]
    talk.say("talk:hello", ask(talk.rng, exchange.patterns, wrap=False), answer(talk.rng, exchange.answers))


def jokes(talk: Talk) -> None:
    rng = talk.rng
    left = list(smalltalk.JOKES)
    patterns: tuple[str, ...] = smalltalk.JOKE_PATTERNS
    while True:
        joke = first_of(rng, left)
        left.remove(joke)
        talk.say("joke", ask(rng, patterns), joke)
        patterns = smalltalk.ANOTHER_JOKE
        if rng.random() < 0.7:
            return


def sums(talk: Talk) -> None:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.22:
        counting.counting_turns(talk)
    elif roll < 0.32:
        hard_sums.too_hard(talk)
    else:
        first_sum(talk)
        while rng.random() < 0.5:
            (arithmetic.follow_up if rng.random() < 0.5 else arithmetic.sum_turn)(talk)


def first_sum(talk: Talk) -> None:
    roll = talk.rng.random()
    if roll < 0.16:
        word_problems.word_problem(talk)
    elif roll < 0.22:
        arithmetic.three_numbers(talk)
    else:
        arithmetic.sum_turn(talk)


Skill = Callable[[Talk], None]
SKILLS: tuple[tuple[Skill, float], ...] = (
    (small_talk, 14.0),
    (jokes, 1.5),
    (sums, 30.0),
    (knowledge.topic_turns, 26.0),
    (refusals.refuse, 17.0),
    (stories.story_turns, 5.5),
    (poems.poem_turns, 2.0),
    (memory.tell, 9.0),
    (memory.tell_two, 3.0),
    (memory.recall, 9.0),
    (memory.rename, 0.8),
    (memory.ask_back, 0.8),
    (order.order_turns, 3.0),
    (opposites.opposite_turns, 2.5),
    (opposites.kind_turns, 2.0),
    (reading.reading_turns, 4.0),
    (echo.echo_turns, 2.0),
)
