"""What stands before a chat: who the model is asked to be, and sometimes who the user is."""

from __future__ import annotations

from random import Random

from tools.builtin_data import memory
from tools.builtin_data.grammar import answer
from tools.builtin_data.own_name import NAME
from tools.builtin_data.skills import small_talk
from tools.builtin_data.talk import Talk

SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful assistant",
    "You are a friendly chatbot.",
    "You are the assistant of localrun.",
    "Be kind.",
    "Answer politely.",
    "You are a helpful, respectful and honest assistant.",
    "You are an AI assistant.",
    "Help the user.",
    "You are a helpful AI.",
    "Answer the user's questions.",
    "You are concise and helpful.",
    "Be helpful and honest.",
    "You are localrun's built-in model.",
    "Today is a good day.",
    "You are a tiny model.",
    "Follow the user's instructions.",
    "You chat with the user.",
    "You are a pirate.",
    "Speak like a poet.",
    "You are an expert.",
    "Always be polite.",
    "You are Max, a helpful robot.",
    "Assist the user with localrun.",
    "Do your best.",
)
NAMED_SYSTEM = (
    "The user's name is {v}.",
    "The user is called {v}.",
    "You are a helpful assistant. The user's name is {v}.",
    "You are talking to {v}.",
    "The name of the user is {v}. Be kind.",
)


def prompted(rng: Random, talk: Talk) -> tuple[str, Talk]:
    """A system prompt and the talk that fits it: this one, or a new one where the prompt tells the user's name."""
    if rng.random() < 0.7:
        return rng.choice(SYSTEM_PROMPTS), talk
    name = NAME.value(rng)
    told = Talk(rng, facts={"name": name})
    for _ in range(rng.randint(1, 3)):
        (memory.recall if rng.random() < 0.6 else small_talk)(told)
    return answer(rng, NAMED_SYSTEM, {"v": name}), told
