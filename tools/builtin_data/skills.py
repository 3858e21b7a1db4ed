"""The skills a chat is strung together from, and how often each comes up."""

from __future__ import annotations

from collections.abc import Callable

from tools.builtin_data import (
    alike,
    arithmetic,
    counting,
    echo,
    hard_sums,
    jokes,
    knowledge,
    logic,
    memory,
    opposites,
    order,
    poems,
    reading,
    refusals,
    smalltalk,
    stories,
    things,
    units,
    word_problems,
)
from tools.builtin_data.exchange import Exchange
from tools.builtin_data.grammar import answer, ask
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.talk import Talk

WITHOUT_A_SUBJECT = (
    "[but why|and why|why so|why though|why is that|how come|how so|and how|what for|like what|which ones|meaning]?"
)
OFFERS_A_STORY = ("im_bad", "bored", "sing")
EXCHANGE_WEIGHTS = [exchange.weight for exchange in smalltalk.EXCHANGES]


def exchanged(talk: Talk, exchange: Exchange) -> None:
    rng = talk.rng
    word = nonsense_word(rng) if rng.random() < 0.2 else rng.choice((*things.HOBBIES, *things.FOODS, *things.ANIMALS))
    asked = ask(rng, exchange.patterns, {"w": word}, wrap=exchange.wrap)
    talk.say(f"talk:{exchange.key}", asked, answer(rng, exchange.answers))


def small_talk(talk: Talk) -> None:
    rng = talk.rng
    exchange = rng.choices(smalltalk.EXCHANGES, EXCHANGE_WEIGHTS)[0]
    exchanged(talk, exchange)
    if exchange.key == "how_are_you" and rng.random() < 0.3:
        exchanged(talk, smalltalk.BY_KEY[rng.choice(("im_good", "im_good", "im_bad"))])
    elif exchange.key in OFFERS_A_STORY and rng.random() < 0.3:
        stories.offered(talk)


def greeting(talk: Talk) -> None:
    exchanged(talk, smalltalk.BY_KEY["hello"])


def nothing_before(talk: Talk) -> None:
    """A chat that begins with a question about what was said before."""
    if not talk.turns:
        reply = answer(talk.rng, smalltalk.BY_KEY["why_bare"].answers)
        talk.say("talk:why_bare", ask(talk.rng, (WITHOUT_A_SUBJECT,), wrap=False), reply)


def sums(talk: Talk) -> None:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.29:
        counting.counting_turns(talk)
    elif roll < 0.38:
        hard_sums.too_hard(talk)
    else:
        first_sum(talk)
        while rng.random() < 0.5:
            (arithmetic.follow_up if rng.random() < 0.5 else arithmetic.sum_turn)(talk)
        if rng.random() < 0.06:
            arithmetic.doubted(talk)


def first_sum(talk: Talk) -> None:
    roll = talk.rng.random()
    if roll < 0.16:
        word_problems.word_problem(talk)
    elif roll < 0.22:
        arithmetic.three_numbers(talk)
    else:
        arithmetic.sum_turn(talk)


Skill = Callable[[Talk], None]
SKILLS: dict[Skill, float] = {
    small_talk: 30.0,
    jokes.joke_turns: 1.5,
    jokes.riddle_turns: 1.0,
    jokes.knock_knock: 0.2,
    sums: 31.0,
    knowledge.topic_turns: 63.0,
    refusals.refuse: 40.0,
    stories.story_turns: 8.0,
    poems.poem_turns: 2.0,
    memory.tell: 11.0,
    memory.tell_several: 12.0,
    memory.recall: 10.0,
    memory.tell_and_ask: 1.5,
    alike.two_alike: 4.0,
    alike.two_names: 3.5,
    alike.two_new_words: 3.5,
    alike.corrected: 2.0,
    memory.rename: 1.0,
    alike.nickname: 0.6,
    alike.in_a_row: 1.2,
    memory.ask_back: 1.5,
    order.order_turns: 7.0,
    opposites.opposite_turns: 3.5,
    opposites.kind_turns: 5.0,
    reading.reading_turns: 25.0,
    logic.logic_turns: 5.0,
    units.unit_turn: 0.8,
    echo.echo_turns: 6.0,
}
# What a training ends with, while the learning rate falls once more: more of what is soon forgotten, and turns that
# are understood only by the one before.
LAST_SKILLS = {
    **SKILLS,
    small_talk: 34.0,
    sums: 36.0,
    stories.story_turns: 10.0,
    memory.tell: 13.0,
    memory.tell_and_ask: 4.0,
    echo.echo_turns: 8.0,
    logic.logic_turns: 7.0,
    counting.count_and_back: 3.0,
    arithmetic.nothing_left: 0.5,
    nothing_before: 1.5,
    alike.who_is: 3.0,
    alike.like_what_was_said: 2.0,
    alike.liking_beside_name: 2.0,
}
