"""Put turns of all skills together to chats. `chats(seed)` is the whole training text, without end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from tools.builtin_data import memory
from tools.builtin_data.grammar import normalised
from tools.builtin_data.heldout import HELD_OUT
from tools.builtin_data.own_name import NAME
from tools.builtin_data.skills import SKILLS, Skill, greeting
from tools.builtin_data.system_prompts import prompted
from tools.builtin_data.talk import Talk
from tools.builtin_tokenizer import Chat, Message


def n_steps(rng: Random) -> int:
    """How many skills a chat strings together: mostly few, now and then a long evening."""
    roll = rng.random()
    if roll < 0.35:
        return 1
    if roll < 0.75:
        return rng.randint(2, 3)
    if roll < 0.97:
        return rng.randint(4, 7)
    return rng.randint(8, 20) if roll < 0.993 else rng.randint(21, 50)  # to the end of the context


def compose(rng: Random, skills: Mapping[Skill, float] = SKILLS) -> Talk:
    talk = Talk(rng)
    steps = n_steps(rng)
    if steps > 1 and rng.random() < 0.12:
        greeting(talk)
    if steps > 1 and rng.random() < 0.45:
        memory.tell(talk, NAME if rng.random() < 0.6 else None)
    for _ in range(steps):
        recalls = talk.facts and rng.random() < 0.30
        skill = memory.recall if recalls else rng.choices(list(skills), list(skills.values()))[0]
        skill(talk)
    return talk


def chat_of(talk: Talk) -> Chat:
    messages = [
        Message(role, text) for turn in talk.turns for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    return tuple(messages)


def held_out(chat: Chat) -> bool:
    return any(m.role == "user" and normalised(m.content) in HELD_OUT for m in chat)


def one_chat(seed: int, index: int, skills: Mapping[Skill, float] = SKILLS) -> Chat:
    """Chat number `index` of this seed, or an empty one where it would use a phrase kept for evaluation."""
    rng = Random(f"{seed}:{index}")
    talk = compose(rng, skills)
    prompt = ""
    if rng.random() < 0.10:
        prompt, talk = prompted(rng, talk)
    chat = (*((Message("system", prompt),) if prompt else ()), *chat_of(talk))
    return () if held_out(chat) else chat


def chats(seed: int, first: int = 0, skills: Mapping[Skill, float] = SKILLS) -> Iterator[Chat]:
    """Chats number `first`, `first` + 1, … of this seed; the same seed gives the same chats."""
    index = first
    while True:
        if chat := one_chat(seed, index, skills):
            yield chat
        index += 1
