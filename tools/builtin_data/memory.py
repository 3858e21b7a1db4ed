# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Telling the model things about oneself, and asking for them turns later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tools.builtin_data import names
from tools.builtin_data.grammar import answer, article, ask, words
from tools.builtin_data.talk import Talk


@dataclass(frozen=True)
class Fact:
    """One thing to remember. `{v}` is its value; `about` says it to the user ("your name is {v}")."""

    key: str
    tell: tuple[str, ...]
    query: tuple[str, ...]
    about: str
    unknown: str
    value: Callable[[Random], str]
    told: tuple[str, ...] = ("[Nice!|Good to know!|Thank you for telling me.|Noted!] I will remember that {about}.",)
    weight: float = 1.0


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


NAME = Fact(
    key="name",
    tell=(
        "my name is {v}",
        "[hi|hello|hey|hello there|hi there|good morning|good evening], my name is {v}",
        "[i'm|i am|im] {v}",
        "[hi|hello|hey|hi there|hello there], [i'm|i am|im] {v}",
        "[please |you can |just |you may |]call me {v}",
        "{v} [here|is my name|is what they call me]",
        "[hi|hello|hey], {v} here",
        "[people|my friends|they|friends|everybody|everyone] call[s|] me {v}",
        "the name is {v}",
        "the name's {v}",
        "my name's {v}",
        "name: {v}",
        "my name: {v}",
        "i go by {v}",
        "i am called {v}",
        "this is {v}",
        "it's {v}",
        "i am named {v}",
        "they named me {v}",
        "remember my name[: |, it is |, it's | is ]{v}",
        "[please |]remember [that |]my name is {v}",
        "my name is {v}, [please |]remember [it|that|this]",
        "my name is {v}, [nice to meet you|pleased to meet you|how are you]",
        "i'm {v} [and i am new here|, nice to meet you|by the way|, remember that]",
        "{v}",
        "[actually|no|sorry|well], my name is {v}",
        "[let me introduce myself|allow me to introduce myself]: [i am|i'm|my name is] {v}",
        "hello! [i am|i'm|my name is] {v}. [nice to meet you|how are you|]",
        "my first name is {v}",
        "i have a name: {v}",
        "everyone knows me as {v}",
        "you are talking to {v}",
        "you're speaking with {v}",
        "i'd like you to call me {v}",
        "my name is [actually|really|in fact|now|simply|just] {v}",
        "[no|sorry|wait|oh], [my name is|i am|i'm|it is|it's] [actually |really |]{v}",
        "[it is|it's|it would be] {v}[, by the way|]",
        "[my parents|my mother|my family] call[s|ed|] me {v}",
        "i was named {v}",
        "from now on call me {v}",
    ),
    query=(
        "[what is|what's|whats|what was] my name [again|]?",
        "[do you|can you|did you] [still |]remember my name?",
        "do you [still |]know my name?",
        "who am i?",
        "[do you|can you] remember who i am?",
        "do you know who i am?",
        "[can|could] you [tell|say|repeat] me my name?",
        "[tell me|say|repeat|remember|remind me of|spell out|write|give me|print] my name [again|please|]",
        "what am i called?",
        "what did i say my name [was|is]?",
        "[how|what] did i [introduce myself|call myself|say i am called]?",
        "remind me what my name is",
        "what name did i [give you|tell you|use|say]?",
        "my name is what?",
        "what do [people|my friends|they|you] call me?",
        "and my name [is|was]?",
        "what should you call me?",
        "how should you [call|address] me?",
        "did you forget my name?",
        "have you forgotten my name?",
        "which name did i [tell|give] you?",
        "i forgot my name, what is it?",
        "you remember my name, [right|don't you]?",
        "so, who am i?",
        "what's the name i [told|gave] you?",
        "say hello to me by name",
        "greet me by name",
        "who are you talking to?",
        "who is talking to you?",
        "my name?",
        "do you recall my name?",
        "can you recall what i am called?",
        "whats the name of the user?",
        "what is the user's name?",
    ),
    about="your name is {v}",
    unknown="You have not told me your name yet. What is it?",
    value=names.person_name,
    told=(
        "[Nice to meet you|Hello|Pleased to meet you|Welcome], {v}! [How can I help?|What can I do for you?|]",
        "Hi, {v}! [Nice to meet you.|I will remember your name.]",
    ),
    weight=16.0,
)


def favourite(thing: str, value: Callable[[Random], str], weight: float = 0.5) -> Fact:
    spelt = thing.replace("colour", "colo[u|]r")
    return Fact(
        key=f"favourite {thing}",
        tell=(
            f"my [favourite|favorite|fav|favourite|favorite] {spelt} is {{v}}",
            f"{{v}} is my favo[u|]rite {spelt}",
            f"the {spelt} i like [best|most] is {{v}}",
            f"[hi|by the way|also|oh and|btw|and|actually|remember:|remember that|please remember that|you should know that], my favo[u|]rite {spelt} is {{v}}",
            f"my favo[u|]rite {spelt}[:| would be| has always been|, it is| must be] {{v}}",
            f"i like the {spelt} {{v}} [best|most]",
        ),
        query=(
            f"[what is|what's|whats|what was] my [favourite|favorite|fav] {spelt} [again|]?",
            f"do you [still |][remember|know|recall] my favo[u|]rite {spelt}?",
            f"[which|what] {spelt} do i [like best|like most|like|love|prefer]?",
            f"tell me my favo[u|]rite {spelt}",
            f"[what|which] {spelt} is my favo[u|]rite?",
            f"what did i say my favo[u|]rite {spelt} [is|was]?",
            f"my favo[u|]rite {spelt}?",
            f"remind me of my favo[u|]rite {spelt}",
            f"can you tell me [what |]my favo[u|]rite {spelt} [is|]?",
            f"which {spelt} did i [say i like|tell you|mention]?",
            f"and my favo[u|]rite {spelt}?",
        ),
        about=f"your favourite {thing} is {{v}}",
        unknown=f"You have not told me your favourite {thing} yet.",
        value=value,
        weight=weight,
    )


def possession(thing: str, value: Callable[[Random], str], weight: float = 0.4) -> Fact:
    return Fact(
        key=thing,
        tell=(
            f"my {thing} is {{v}}",
            f"[please |][remember|note|remember that|keep in mind that] my {thing} is {{v}}",
            f"[by the way|btw|also|and|oh], my {thing} is {{v}}",
            f"my {thing}: {{v}}",
            f"{{v}} is my {thing}",
        ),
        query=(
            f"[what is|what's|whats|what was|who is] my {thing} [again|]?",
            f"do you [still |][remember|know|recall] my {thing}?",
            f"tell me my {thing}",
            f"what did i say my {thing} [is|was]?",
            f"remind me of my {thing}",
            f"my {thing}?",
            f"and my {thing}?",
            f"can you tell me my {thing}?",
        ),
        about=f"your {thing} is {{v}}",
        unknown=f"You have not told me your {thing} yet.",
        value=value,
        weight=weight,
    )


def pet(animal: str) -> Fact:
    return Fact(
        key=f"{animal} name",
        tell=(
            f"i have [a|an|my own] {animal} [named|called] {{v}}".replace("[a|an|my own]", article(animal).split()[0]),
            f"my {animal} is [called|named] {{v}}",
            f"my {animal}'s name is {{v}}",
            f"the name of my {animal} is {{v}}",
            f"{{v}} is my {animal}",
        ),
        query=(
            f"what is [my {animal}'s name|the name of my {animal}|my {animal} called]?",
            f"what's my {animal}'s name?",
            f"how is my {animal} called?",
            f"do you remember [my {animal}'s name|the name of my {animal}|what my {animal} is called]?",
            f"what is my {animal} [named|called]?",
            f"who is my {animal}?",
        ),
        about=f"your {animal} is called {{v}}",
        unknown=f"You have not told me what your {animal} is called.",
        value=names.person_name,
        weight=0.5,
    )


def number_text(rng: Random) -> str:
    return str(rng.randint(0, 99) if rng.random() < 0.7 else rng.randint(100, 9999))


def pick(known: list[str], share: float = 0.2) -> Callable[[Random], str]:
    return lambda rng: names.rarely_new(rng, known, share)


def any_word(rng: Random) -> str:
    return (
        names.nonsense_word(rng, 2) if rng.random() < 0.6 else rng.choice(names.FOODS + names.ANIMALS + names.COLOURS)
    )


LIVES = Fact(
    "home",
    (
        "i live in {v}",
        "i am from {v}",
        "i'm from {v}",
        "i come from {v}",
        "[my home is|my home town is|my city is|i'm living in|i moved to|i am at home in] {v}",
        "i [currently|now] live in {v}",
    ),
    (
        "where do i live?",
        "where am i from?",
        "where do i come from?",
        "what city do i live in?",
        "which city do i live in?",
        "do you [remember|know] where i live?",
        "what is my home town?",
        "tell me where i live",
        "in which [city|town] do i live?",
        "what is my city?",
        "where is my home?",
    ),
    "you live in {v}",
    "You have not told me where you live.",
    names.city,
    weight=1.5,
)
AGE = Fact(
    "age",
    (
        "i am {v} years old",
        "i'm {v} years old",
        "my age is {v}",
        "i am {v}",
        "i'm {v}",
        "i turned {v} [today|last week|yesterday|this year]",
        "i just turned {v}",
    ),
    (
        "how old am i?",
        "what is my age?",
        "what's my age?",
        "do you [remember|know] how old i am?",
        "tell me my age",
        "my age?",
        "how many years old am i?",
    ),
    "you are {v} years old",
    "You have not told me how old you are.",
    lambda rng: str(rng.randint(5, 99)),
    weight=1.2,
)
JOB = Fact(
    "job",
    (
        "i work as a {v}",
        "i am a {v}",
        "i'm a {v}",
        "my job is {v}",
        "my profession is {v}",
        "i earn my living as a {v}",
    ),
    (
        "what is my job?",
        "what's my job?",
        "what do i do [for a living|]?",
        "what is my profession?",
        "do you [remember|know] [my job|what i do]?",
        "what do i work as?",
        "where do i work?",
        "tell me my job",
    ),
    "you work as a {v}",
    "You have not told me what you do.",
    pick([j for j in names.JOBS if j[0] not in "aeiou"], 0.2),
    weight=1.0,
)
LIKES = Fact(
    "likes",
    (
        "i like {v}",
        "i love {v}",
        "i really like {v}",
        "i enjoy {v}",
        "my hobby is {v}",
        "i am a fan of {v}",
        "i'm really into {v}",
        "i'm into {v}",
        "i [am fond of|adore] {v}",
        "in my free time i like {v}",
    ),
    (
        "what do i like?",
        "what do i love?",
        "what do i enjoy?",
        "what did i say i like?",
        "do you [remember|know] what i like?",
        "what is my hobby?",
        "what are my hobbies?",
        "what's my hobby?",
        "tell me what i like",
        "what am i into?",
        "what do i do in my free time?",
    ),
    "you like {v}",
    "You have not told me what you like.",
    lambda rng: names.rarely_new(rng, names.HOBBIES + names.FOODS, 0.15),
    weight=1.5,
)
NUMBER = Fact(
    "number",
    (
        "remember the number {v}",
        "please remember the number {v}",
        "the number is {v}",
        "keep the number {v} in mind",
        "remember this number: {v}",
        "my number is {v}",
        "don't forget the number {v}",
        "note the number {v}",
        "remember {v}",
    ),
    (
        "what was the number?",
        "what is the number?",
        "which number did i [tell you|give you|ask you to remember|say|mention]?",
        "what number did i [tell you|give you|ask you to remember|say|mention]?",
        "tell me the number",
        "do you remember the number?",
        "what's the number [again|]?",
        "the number?",
        "what is my number?",
    ),
    "the number is {v}",
    "You have not told me a number.",
    number_text,
    weight=1.0,
)
WORD = Fact(
    "word",
    (
        "remember the word {v}",
        "please remember the word {v}",
        "the [secret |magic |code |]word is {v}",
        "remember this word: {v}",
        "keep the word {v} in mind",
        "don't forget the word {v}",
    ),
    (
        "what was the [secret |magic |code |]word?",
        "what is the [secret |magic |code |]word?",
        "which word did i [tell you|give you|ask you to remember|say]?",
        "what word did i [tell you|give you|ask you to remember|say]?",
        "tell me the word",
        "do you remember the [secret |]word?",
        "the word?",
    ),
    "the word is {v}",
    "You have not told me a word to remember.",
    any_word,
    weight=1.0,
)
FACTS = (
    NAME,
    LIVES,
    AGE,
    JOB,
    LIKES,
    NUMBER,
    WORD,
    favourite("colour", names.colour, 5.0),
    favourite("animal", lambda rng: names.animal(rng), 3.0),
    favourite("food", names.food, 2.0),
    favourite("city", names.city, 1.5),
    favourite("drink", pick(names.DRINKS)),
    favourite("season", pick(names.SEASONS, 0)),
    favourite("sport", pick(names.SPORTS)),
    favourite("number", number_text, 1.0),
    favourite("instrument", pick(names.INSTRUMENTS)),
    favourite("hobby", pick(names.HOBBIES)),
    favourite("book", lambda rng: names.nonsense_word(rng).title()),
    favourite("movie", lambda rng: names.nonsense_word(rng).title()),
    favourite("song", lambda rng: names.nonsense_word(rng).title()),
    favourite("band", lambda rng: names.nonsense_word(rng).title()),
    favourite("fruit", pick(words("apple banana cherry mango peach pear plum kiwi orange melon grape lemon"))),
    favourite("day", pick(words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"), 0)),
    favourite("game", pick(names.HOBBIES)),
    favourite("flower", pick(words("rose tulip daisy lily sunflower violet orchid poppy"))),
    favourite(
        "country",
        lambda rng: (
            names.nonsense_word(rng).title()
            if rng.random() < 0.5
            else rng.choice(words("France Spain Italy Japan Peru Kenya Norway India Canada Brazil Greece Chile"))
        ),
    ),
    favourite("subject", pick(words("math history music physics art biology english"))),
    favourite("language", pick(words("German French Spanish Python Rust English Italian Latin"))),
    possession("lucky number", number_text, 1.0),
    possession("password", any_word),
    possession("brother", names.person_name),
    possession("sister", names.person_name),
    possession("best friend", names.person_name, 0.8),
    possession("boss", names.person_name),
    possession("nickname", names.person_name),
    possession("last name", names.person_name),
    possession("teacher", names.person_name),
    possession("code", number_text),
    possession(
        "birthday",
        lambda rng: (
            f"{rng.choice(['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'])} {rng.randint(1, 28)}"
        ),
        0.8,
    ),
    possession("wife", names.person_name),
    possession("husband", names.person_name),
    possession("mother's name", names.person_name),
    possession("project", any_word),
    possession("room number", number_text),
    possession("shoe size", number_text),
    possession("company", any_word),
    *(pet(animal) for animal in ("dog", "cat", "parrot", "horse", "hamster", "rabbit", "goldfish")),
    pet("dog"),
    pet("cat"),
)
WEIGHTS = [fact.weight for fact in FACTS]
BY_KEY = {fact.key: fact for fact in FACTS}

ABOUT_ME = (
    "what do you know about me?",
    "what have i told you [about me|about myself|so far|]?",
    "what do you remember [about me|]?",
    "tell me [something|everything|what you know] about me",
    "what did i tell you [about me|about myself|]?",
    "summarize what you know about me",
    "do you remember [anything about me|me|what i told you]?",
    "do you know [anything about me|me]?",
    "list what you know about me",
)
KNOW_NOTHING = "You have not told me anything about yourself yet."
NAME_AND_WHO = (
    "[i'm|i am|my name is|my name's] {v}, [who are you|and who are you|and you|what is your name|what's yours|and what is your name|what's your name|who are you]?",
    "[hi|hello], [i'm|i am|my name is] {v}. [who are you|and you|what is your name|what's yours|what's your name]?",
)
NAME_AND_WHO_ANSWER = ("Nice to meet you, {v}! I am the tiny model built into localrun.",)


def tell(talk: Talk, fact: Fact | None = None) -> None:
    rng = talk.rng
    fact = fact or rng.choices(FACTS, WEIGHTS)[0]
    value = fact.value(rng)
    talk.facts.pop(fact.key, None)
    talk.facts[fact.key] = value
    if fact is NAME and rng.random() < 0.06:
        talk.say("tell", ask(rng, NAME_AND_WHO, {"v": value}), answer(rng, NAME_AND_WHO_ANSWER, {"v": value}))
        return
    about = fact.about.replace("{v}", value)
    talk.say(
        "tell", ask(rng, fact.tell, {"v": value}, wrap=False), answer(rng, fact.told, {"v": value, "about": about})
    )


def tell_two(talk: Talk) -> None:
    """Name and one more thing in a single message."""
    rng = talk.rng
    other = rng.choices(FACTS[1:], WEIGHTS[1:])[0]
    name, value = NAME.value(rng), other.value(rng)
    talk.facts.update({"name": name, other.key: value})
    first = rng.choice(("my name is {v}", "[i'm|i am] {v}", "[hi|hello|hey], [i'm|i am|my name is] {v}"))
    second = rng.choice(other.tell[:2]).replace("{v}", "{w}")
    user = ask(rng, (first + "[ and |, and |. |, |! ]" + second,), {"v": name, "w": value}, wrap=False)
    about = other.about.replace("{v}", value)
    talk.say(
        "tell",
        user,
        answer(rng, ("Nice to meet you, {v}! I will remember that {about}.",), {"v": name, "about": about}),
    )


def recall(talk: Talk) -> None:
    """Ask for something that was told, or (less often) for something that was not."""
    rng = talk.rng
    if rng.random() < 0.06:
        talk.say("about_me", ask(rng, ABOUT_ME), what_is_known(talk.facts))
        return
    known = list(talk.facts)
    if known and rng.random() < 0.85:
        key = "name" if "name" in talk.facts and rng.random() < 0.45 else rng.choice(known)
        fact = BY_KEY[key]
        about = sentence(fact.about.replace("{v}", talk.facts[key]))
        talk.say("recall", ask(rng, fact.query), about)
    else:
        fact = rng.choices(FACTS, WEIGHTS)[0]
        if fact.key not in talk.facts:
            talk.say("recall_unknown", ask(rng, fact.query), fact.unknown)


def what_is_known(facts: dict[str, str]) -> str:
    if not facts:
        return KNOW_NOTHING
    parts = [BY_KEY[key].about.replace("{v}", value) for key, value in facts.items()]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    return sentence(listed)
