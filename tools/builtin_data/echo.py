# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Saying back what was said: `repeat after me: …`, `what did I just say?`."""

from __future__ import annotations

from tools.builtin_data import things
from tools.builtin_data.grammar import ask
from tools.builtin_data.made_up import nonsense_word, repeated, rough
from tools.builtin_data.opposites import BOTH_WAYS
from tools.builtin_data.rare_words import RARE_WORDS
from tools.builtin_data.talk import Talk

MADE_UP = (nonsense_word, nonsense_word, rough, repeated)


def echo_turns(talk: Talk) -> None:
    """`repeat after me: …`, `say …`, and what was said a turn ago."""
    rng = talk.rng
    pool = (*things.ANIMALS, *things.COLOURS, *things.FOODS, *things.HOBBIES, *BOTH_WAYS, *RARE_WORDS)
    said = " ".join(
        rng.choice(MADE_UP)(rng) if rng.random() < 0.45 else rng.choice(pool)
        for _ in range(rng.choice((1, 1, 2, 3, 4)))
    )
    roll = rng.random()
    if roll < 0.75:
        patterns: tuple[str, ...] = (
            "repeat after me[: |, ]{x}",
            "[please |can you |]say[: | ]{x}",
            "[please |]repeat[: | ]{x}",
            "[please |can you |]say [the words |the word |]{x}",
            "write [the words |the word |]{x}",
            "echo {x}",
            "[say|repeat|write] exactly [this|what i say][: |, ]{x}",
        )
        talk.say("echo", ask(rng, patterns, {"x": said}, wrap=False), f"Here it is: {said}")
    elif roll < 0.84 and talk.turns and len(talk.turns[-1][1]) < 100:
        again = "[say that again|repeat that|what did you say|can you repeat that|come again|once more|pardon, what was that]?"
        talk.say("echo", ask(rng, (again,), wrap=False), talk.turns[-1][1])
    elif roll < 0.9 and len(talk.turns) > 1 and len(talk.turns[0][0]) < 80:
        first = "what was [the first thing i said|my first message|my first question|the first thing i asked you]?"
        talk.say("echo", ask(rng, (first,)), f'Your first message was: "{talk.turns[0][0]}"')
    elif not talk.turns or len(talk.turns[-1][0]) < 80:
        patterns = (
            "what did i [just |]say [just now|]?",
            "what was my last [message|question|sentence]?",
            "repeat [what i said|my last message|my words]",
            "what did i [just |]ask [you|]?",
            "can you repeat what i [just |]said?",
        )
        said = f'You said: "{talk.turns[-1][0]}"' if talk.turns else "You have not said anything before."
        talk.say("echo", ask(rng, patterns), said)
