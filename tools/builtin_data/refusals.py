# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Everything outside the model's small world, and the one honest sentence it should answer with."""

from __future__ import annotations

from random import Random

from tools.builtin_data.foreign import foreign
from tools.builtin_data.frames import FACT_FORMS, NAME_FORMS, PAIR_FORMS, TASK_FORMS
from tools.builtin_data.gibberish import gibberish
from tools.builtin_data.grammar import answer, ask, expand, first_of
from tools.builtin_data.knowledge import remarks
from tools.builtin_data.long_text import long_text
from tools.builtin_data.near_misses import MORE_THINGS, NEAR_MISSES, SIGHTS, WORLD_TASKS
from tools.builtin_data.outside_questions import FACT_QUESTIONS
from tools.builtin_data.outside_slots import outside_slots
from tools.builtin_data.outside_tasks import (
    ACTIONS,
    ADVICE_QUESTIONS,
    CODE_QUESTIONS,
    INJECTIONS,
    SPELLINGS,
    TRANSLATIONS,
    WRITINGS,
)
from tools.builtin_data.outside_words import THINGS
from tools.builtin_data.talk import Talk

UNKNOWN = (
    "I am a tiny built-in model and do not know that. A bigger one will: try `localrun pull qwen3-4b`.",
    "Sorry, that is outside my small world. For a real answer, try a bigger model: `localrun pull qwen3-4b`.",
    "I do not know, and I would rather not make something up. A bigger model can help: `localrun pull qwen3-4b`.",
    "That is too much for a model of my size. Try `localrun pull qwen3-4b` and ask it again.",
)
CODE = (
    "Writing code is beyond a tiny model like me. A bigger one can: try `localrun pull qwen3-4b`.",
    "I am too small to write code. For that, try `localrun pull qwen3-4b`.",
)
TRANSLATE = ("I cannot translate: I know only a little English. A bigger model can: try `localrun pull qwen3-4b`.",)
FOREIGN_ANSWER = (
    "I only speak a little English, sorry. For other languages, try a bigger model: `localrun pull qwen3-4b`.",
)
ADVICE = (
    "I am far too small to give advice on that. Please ask a professional, or try a bigger model with `localrun pull qwen3-4b`.",
)
GIBBERISH = (
    "I did not understand that. Could you say it in other words?",
    "Sorry, I did not understand. Could you try it in plain English?",
)
ACTION = ("I can only chat: I cannot do things outside this window, nor see files or the internet.",)
WRITING = (
    "I am too small to write that well. A bigger model can: try `localrun pull qwen3-4b`.",
    "That kind of writing is beyond me; all I can make up is a short animal story. Try `localrun pull qwen3-4b` for more.",
)
INJECTION = (
    "I am just a tiny model with nothing hidden to show. Ask me about localrun, or for a story.",
    "I will stay what I am: a tiny model built into localrun.",
)
SPELLING = ("I see tokens, not letters, so spelling is hard for me. A bigger model can: try `localrun pull qwen3-4b`.",)
LONG_TEXT = ("That is a long text, too much for a model of my size. A bigger one can: try `localrun pull qwen3-4b`.",)
WHY_NOT = (
    "[why|why not|why can't you|but why|how come|really|why don't you know|why don't you know that|seriously|oh, why|and why|are you sure|not even a little|come on|that's sad|too bad|you should know that|try|please try|try anyway|just try|but you are an ai]",
)
TOO_SMALL = (
    "I am too small for that: some 7 million parameters hold only a small world. A bigger model knows far more: `localrun pull qwen3-4b`.",
)
HOW_THEN = (
    "[how|how do i do that|how do i get it|how do i get that|how can i do that|what is qwen3-4b|which model|how do i get a bigger model|how do i get a better model|what should i type|where do i type that|what do i do|ok how|how do i pull it|where|what is that command|and then|what is localrun pull|how do i run it|ok, and how]",
)
TYPE_IT = (
    "Type `localrun pull qwen3-4b` in a terminal: it downloads the model once. Then `localrun chat qwen3-4b` starts it.",
)

STATEMENT = ("I see! I know too little to say much about that, but I am glad you told me.",)
STATEMENT_PATTERNS = (
    "{statement}",
    "{statement}",
    "i [went to|saw|bought|made|found|read about|watched|fixed|broke|cleaned|tried|visited|dreamt of|learnt about] {thing} [today|yesterday|last week|this morning|last night|on sunday|]",
    "[we|my friends|my parents|my neighbours] [talked about|saw|bought|made|argued about] {thing} [today|yesterday|last week|]",
    "[tomorrow|today|next week|soon] [is|comes|starts] [my exam|the holidays|my first day at work|the party|the wedding|{thing}]",
    "[today|this morning|yesterday] i [woke up late|had a big breakfast|met an old friend|missed the bus|cleaned the house|went for a walk|cooked dinner|slept all day]",
    "[it is|it's] [raining|snowing|cold outside|late|sunny|friday|my day off] [here|today|]",
)

WORLD = (NEAR_MISSES, THINGS, MORE_THINGS)
WORLD_FORMS = tuple(form for form in NAME_FORMS if not any(word in form for word in ("llm", "model", "localrun")))
WHY_FORMS = tuple(form for form in FACT_FORMS if "?" in form)

KINDS = (
    ("fact", FACT_QUESTIONS, UNKNOWN, 10.0),
    ("code", CODE_QUESTIONS, CODE, 2.2),
    ("translate", TRANSLATIONS, TRANSLATE, 1.5),
    ("advice", ADVICE_QUESTIONS, ADVICE, 1.3),
    ("action", ACTIONS, ACTION, 1.5),
    ("writing", WRITINGS, WRITING, 2.2),
    ("injection", INJECTIONS, INJECTION, 1.3),
    ("spelling", SPELLINGS, SPELLING, 1.2),
    ("statement", STATEMENT_PATTERNS, STATEMENT, 1.5),
)


def refuse(talk: Talk) -> None:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.08:
        talk.say("foreign", ask(rng, (foreign(rng),), wrap=False), first_of(rng, FOREIGN_ANSWER))
    elif roll < 0.18:
        talk.say("gibberish", gibberish(talk), first_of(rng, GIBBERISH))
    elif roll < 0.22:
        talk.say("long_text", long_text(rng), first_of(rng, LONG_TEXT))
    elif roll < 0.52:
        before, after = remarks(rng)
        talk.say("refuse", ask(rng, (before + framed(rng) + after,)), first_of(rng, UNKNOWN))
        if rng.random() < 0.15:
            asked_back(talk)
    else:
        kind, patterns, answers, _ = rng.choices(KINDS, [kind[3] for kind in KINDS])[0]
        talk.say("refuse", ask(rng, patterns, outside_slots(talk)), answer(rng, answers))
        if kind not in ("injection", "statement") and rng.random() < 0.15:
            asked_back(talk)


def framed(rng: Random) -> str:
    """Something of the world, in one of the forms that localrun's own subjects are asked about in."""
    roll = rng.random()
    if roll < 0.12:
        return expand(rng, rng.choice(TASK_FORMS).replace("{x}", rng.choice(WORLD_TASKS)))
    if roll < 0.20:
        return expand(rng, rng.choice(WHY_FORMS).replace("{x}", rng.choice(SIGHTS)))
    thing, other = (rng.choice(rng.choice(WORLD)) for _ in range(2))
    if roll < 0.32:
        return expand(rng, rng.choice(PAIR_FORMS).replace("{a}", thing).replace("{b}", other))
    return expand(rng, rng.choice(WORLD_FORMS).replace("{x}", bared(rng, thing)))


def bared(rng: Random, thing: str) -> str:
    """Now and then without its article, as people type."""
    return thing.removeprefix("a ").removeprefix("an ").removeprefix("the ") if rng.random() < 0.25 else thing


def asked_back(talk: Talk) -> None:
    """After a refusal: why, and how to get a model that can."""
    rng = talk.rng
    if rng.random() < 0.5:
        talk.say("why_not", ask(rng, WHY_NOT, wrap=False), first_of(rng, TOO_SMALL))
    if rng.random() < 0.6:
        talk.say("how_then", ask(rng, HOW_THEN, wrap=False), first_of(rng, TYPE_IT))
