# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Jokes, riddles, and knock-knock."""

from __future__ import annotations

from tools.builtin_data import names, things
from tools.builtin_data.grammar import ask, first_of
from tools.builtin_data.talk import Talk

JOKES = (
    "Why did the token cross the road? It was the most likely one to follow.",
    "Why was the KV cache so good at parties? It remembered everyone it had met.",
    "I asked the model for a short answer. It said: length limit reached.",
    "Why did the computer catch a cold? It left its windows open.",
    "What is a computer's favourite snack? Microchips.",
    "Why did the duck become a programmer? It was good at finding bugs.",
    "How do you comfort a small model? You lower the temperature.",
    "What did the big model say to the small one? You have so much potential, and so few parameters.",
    "Why do cats love laptops? Because of the mouse.",
    "Why was the weight so relaxed? It had been quantized: no more tiny worries.",
)
JOKE_PATTERNS = (
    "[tell|give] me a [joke|good joke|funny joke|short joke]",
    "[do you know|have you got|know] [a joke|any jokes|any good jokes|a good joke]?",
    "[a joke|joke|joke please|a joke please|joke time|jokes]",
    "make me laugh",
    "[can|could|will|would] you [tell|give] [me |us |]a joke?",
    "i [want|need|would like] [to hear |]a joke",
    "say something [funny|a joke]",
    "tell a joke",
    "let me hear a joke",
    "got any jokes?",
    "cheer me up [with a joke|]",
    "i'd like to hear a joke",
    "tell me something funny",
)
ANOTHER_JOKE = (
    "[another|another one|another joke|one more|one more joke|again|more|another one please|tell me another|tell me another one|tell me another joke|more jokes|do you have another one|a different one|give me another|next|next one|got another|got another one|you got more]",
)
NOT_FUNNY = (
    "[i don't get it|i do not get it|why is that funny|that's not funny|that is not funny|not funny|explain the joke|explain it|what|huh|boring]",
)
RIDDLES = (
    ("What has hands but cannot clap?", "a clock"),
    ("What has keys but opens no lock?", "a piano"),
    ("What gets wetter the more it dries?", "a towel"),
    ("What has a neck but no head?", "a bottle"),
    ("What has teeth but never bites?", "a comb"),
    ("What goes up but never comes down?", "your age"),
    ("What has one eye but cannot see?", "a needle"),
    ("What can you catch but not throw?", "a cold"),
)
RIDDLE_PATTERNS = (
    "[tell|give|ask] me a [riddle|good riddle|short riddle|riddle please|puzzle]",
    "[a riddle|riddle|riddle please|a riddle please|riddle me this|riddle time]",
    "[do you know|have you got|know] [a riddle|any riddles|a good riddle]?",
    "[can|could|will] you [tell|give|ask] me a riddle?",
    "i [want|need|would like] [to hear |]a riddle",
    "let's [do|play|solve] [a riddle|riddles]",
    "another riddle",
)
GIVE_UP = (
    "[i don't know|i do not know|no idea|i give up|tell me|what is it|what's the answer|and the answer|the answer please|what is the answer|idk|i have no idea|no clue|answer|solve it|say it|tell me the answer|dunno|?|hm|i have no idea, what is it|ok, what is it]",
)
GUESSES = (
    "{g}",
    "{g}?",
    "is it {g}?",
    "[it's|it is|its|maybe|i think it's|i guess|hmm,|could it be] {g}",
    "[my guess is|i say] {g}",
)
KNOCK = ("knock knock", "knock knock!", "knock, knock", "[knock knock|knock-knock|knock knock.]")


def joke_turns(talk: Talk) -> None:
    rng = talk.rng
    left = list(JOKES)
    patterns: tuple[str, ...] = JOKE_PATTERNS
    while True:
        joke = first_of(rng, left)
        left.remove(joke)
        talk.say("joke", ask(rng, patterns), joke)
        patterns = ANOTHER_JOKE
        roll = rng.random()
        if roll < 0.1:
            talk.say("joke", ask(rng, NOT_FUNNY), "Sorry, my humour is as small as I am. Shall I try another one?")
        elif roll < 0.75:
            return


def riddle_turns(talk: Talk) -> None:
    """A riddle, then its answer: given up, guessed, or guessed wrong."""
    rng = talk.rng
    question, solution = first_of(rng, RIDDLES)
    talk.say("riddle", ask(rng, RIDDLE_PATTERNS), f"{question} Take a guess!")
    roll = rng.random()
    if roll < 0.45:
        talk.say("riddle", ask(rng, GIVE_UP), f"It is {solution}.")
    elif roll < 0.7:
        guess = solution if rng.random() < 0.6 else solution.split(" ")[-1]
        talk.say("riddle", ask(rng, GUESSES, {"g": guess}), f"Yes, it is {solution}! Well done.")
    elif roll < 0.9:
        wrong = rng.choice(
            (*things.ANIMALS, *things.FOODS, "a tree", "a hat", "a shoe", "a river", "a door", "a mouse")
        )
        talk.say("riddle", ask(rng, GUESSES, {"g": wrong}), f"Not quite: it is {solution}.")


def knock_knock(talk: Talk) -> None:
    rng = talk.rng
    name = names.one_word_name(rng)
    talk.say("knock", ask(rng, KNOCK, wrap=False), "Who is there?")
    talk.say("knock", ask(rng, ("{n}", "{n}", "it's {n}"), {"n": name}, wrap=False), f"{name} who?")
    end = rng.choice(("and i'm hungry", "let me in", "who else", "your friend", "open the door", "guess who"))
    talk.say("knock", ask(rng, ("{n} [, |]" + end,), {"n": name}, wrap=False), "Ha, good one!")
