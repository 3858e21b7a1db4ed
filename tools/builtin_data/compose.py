"""Put turns of all skills together to chats. `chats(seed)` is the whole training text, without end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tools.builtin_data import arithmetic, knowledge, memory, refusals, smalltalk, stories
from tools.builtin_data.grammar import answer, ask, first_of, normalised
from tools.builtin_data.heldout import HELD_OUT
from tools.builtin_data.talk import Talk
from tools.builtin_tokenizer import Chat, Message

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
    if roll < 0.13:
        arithmetic.special(talk)
    elif roll < 0.24:
        arithmetic.too_hard(talk)
    else:
        arithmetic.sum_turn(talk)
        while rng.random() < 0.5:
            (arithmetic.follow_up if rng.random() < 0.4 else arithmetic.sum_turn)(talk)


Skill = Callable[[Talk], None]
SKILLS: tuple[tuple[Skill, float], ...] = (
    (small_talk, 13.0),
    (jokes, 1.5),
    (sums, 32.0),
    (knowledge.topic_turns, 16.0),
    (refusals.refuse, 17.0),
    (stories.story_turns, 4.5),
    (stories.poem, 0.5),
    (memory.tell, 8.0),
    (memory.tell_two, 2.5),
    (memory.recall, 10.0),
)


def n_steps(rng: Random) -> int:
    """How many skills a chat strings together: mostly few, now and then a long evening."""
    roll = rng.random()
    if roll < 0.35:
        return 1
    if roll < 0.75:
        return rng.randint(2, 3)
    return rng.randint(4, 7) if roll < 0.97 else rng.randint(8, 20)


def compose(rng: Random) -> Talk:
    talk = Talk(rng)
    steps = n_steps(rng)
    if steps > 1 and rng.random() < 0.12:
        greeting(talk)
    if steps > 1 and rng.random() < 0.45:
        memory.tell(talk, memory.NAME if rng.random() < 0.6 else None)
    skills, weights = [skill for skill, _ in SKILLS], [weight for _, weight in SKILLS]
    for _ in range(steps):
        skill = memory.recall if talk.facts and rng.random() < 0.30 else rng.choices(skills, weights)[0]
        skill(talk)
    return talk


def chat_of(talk: Talk) -> Chat:
    messages = [
        Message(role, text) for turn in talk.turns for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    return tuple(messages)


def with_system(rng: Random, talk: Talk) -> Chat:
    """A chat with a system prompt, which now and then tells the user's name."""
    if rng.random() < 0.7:
        return (Message("system", rng.choice(SYSTEM_PROMPTS)), *chat_of(talk))
    name = memory.NAME.value(rng)
    told = Talk(rng, facts={"name": name})
    for _ in range(rng.randint(1, 3)):
        (memory.recall if rng.random() < 0.6 else small_talk)(told)
    return (Message("system", answer(rng, NAMED_SYSTEM, {"v": name})), *chat_of(told))


def held_out(chat: Chat) -> bool:
    return any(m.role == "user" and normalised(m.content) in HELD_OUT for m in chat)


def one_chat(seed: int, index: int) -> Chat:
    """Chat number `index` of this seed, or an empty one where it would use a phrase kept for evaluation."""
    rng = Random(f"{seed}:{index}")
    talk = compose(rng)
    chat = with_system(rng, talk) if rng.random() < 0.10 else chat_of(talk)
    return () if held_out(chat) else chat


def chats(seed: int, first: int = 0) -> Iterator[Chat]:
    """Chats number `first`, `first` + 1, … of this seed; the same seed gives the same chats."""
    index = first
    while True:
        if chat := one_chat(seed, index):
            yield chat
        index += 1
