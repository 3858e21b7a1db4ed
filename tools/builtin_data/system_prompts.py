# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What stands before a chat: who the model is asked to be, and sometimes who the user is."""

from __future__ import annotations

from random import Random

from tools.builtin_data.fact import Fact
from tools.builtin_data.grammar import answer, ask, expand
from tools.builtin_data.memory import recall
from tools.builtin_data.names import one_word_name
from tools.builtin_data.own_facts import AGE, JOB, LIVES
from tools.builtin_data.own_name import NAME
from tools.builtin_data.skills import small_talk
from tools.builtin_data.talk import Talk
from tools.builtin_data.tastes import LIKES
from tools.builtin_data.your_facts import BY_KEY

SYSTEM_PROMPTS = (
    "[You are|You're|Act as|Be] [a|an] [helpful|friendly|kind|polite|concise|cheerful|patient|honest] [assistant|chatbot|AI|helper|robot|model][.|]",
    "You are a helpful, respectful and honest assistant.",
    "You are the assistant of localrun.",
    "You are localrun's built-in model.",
    "[Be kind|Be brief|Answer briefly|Answer politely|Keep your answers short|Be concise|Use simple words|Answer in one sentence|Be helpful and honest|Do your best|Always be polite].",
    "[Answer|Help with] the user's questions[.|]",
    "[Help|Assist] the user [with localrun|].",
    "Today is a good day.",
    "You are a tiny model.",
    "[Follow|Obey] the user's instructions.",
    "You chat with [the user|a child|a friend|a beginner].",
    "You are [a pirate|a poet|an expert|a teacher|a wizard|a cat|a detective|a king].",
    "[Speak|Talk|Answer] like a [poet|pirate|friend|robot|teacher].",
    "You are ChatGPT, a large language model.",
)
NAMED_SYSTEM = (
    "The user's name is {v}.",
    "The user is called {v}.",
    "You are a helpful assistant. The user's name is {v}.",
    "You are [talking|speaking|chatting] [to|with] {v}.",
    "The name of the user is {v}. Be kind.",
    "User: {v}",
    "[Greet|Help] the user, whose name is {v}.",
)
TOLD = {
    "home": ("The user lives in {v}.", "The user is from {v}."),
    "age": ("The user is {v} years old.", "The age of the user is {v}."),
    "job": ("The user works as a {v}.", "The user is a {v}."),
    "likes": ("The user likes {v}.", "The hobby of the user is {v}."),
    "favourite colour": ("The user's favo[u|]rite colo[u|]r is {v}.",),
}
FACTS: tuple[Fact, ...] = (LIVES, AGE, JOB, LIKES, BY_KEY["favourite colour"])
CALLED = (
    "You are {v}, a [helpful|friendly|cheerful|kind|clever] [assistant|robot|chatbot|AI|model].",
    "Your name is {v}.",
    "You are called {v}.",
    "You are {v}.",
    "Your name is {v}. Be [kind|brief|helpful].",
)
WHO_ARE_YOU = (
    "[what is|what's|whats] your name?",
    "who are you?",
    "[hi|hello|hey], who are you?",
    "what are you called?",
    "[tell me your name|introduce yourself|do you have a name|say your name|and you are]?",
    "what should i call you?",
    "who am i talking to?",
)
REALLY = (
    "[what are you really|are you human|what are you|what model are you|are you a real person|are you chatgpt|what kind of ai are you]?",
)
REALLY_ANSWER = ("I am the tiny language model built into localrun, about 7 million parameters. Here I am called {v}.",)


def prompted(rng: Random, talk: Talk) -> tuple[str, Talk]:
    """A system prompt and the talk that fits it: this one, or a new one where the prompt tells something."""
    roll = rng.random()
    if roll < 0.5:
        return expand(rng, rng.choice(SYSTEM_PROMPTS)), talk
    return user_described(rng) if roll < 0.75 else model_named(rng)


def user_described(rng: Random) -> tuple[str, Talk]:
    """The prompt tells about the user: a name, something else, or both."""
    talk, parts = Talk(rng), []
    if rng.random() < 0.75:
        talk.facts["name"] = NAME.value(rng)
        parts.append(answer(rng, NAMED_SYSTEM, {"v": talk.facts["name"]}))
    if not parts or rng.random() < 0.35:
        fact = rng.choice(FACTS)
        talk.facts[fact.key] = fact.value(rng)
        parts.append(answer(rng, TOLD[fact.key], {"v": talk.facts[fact.key]}))
    for _ in range(rng.randint(1, 3)):
        (recall if rng.random() < 0.6 else small_talk)(talk)
    return " ".join(parts), talk


def model_named(rng: Random) -> tuple[str, Talk]:
    """The prompt gives the model a name: it answers to it, and stays honest about what it is."""
    talk, name = Talk(rng), one_word_name(rng)
    talk.say("named", ask(rng, WHO_ARE_YOU), f"I am {name}. What can I do for you?")
    if rng.random() < 0.3:
        talk.say("named", ask(rng, REALLY), answer(rng, REALLY_ANSWER, {"v": name}))
    return answer(rng, CALLED, {"v": name}), talk
