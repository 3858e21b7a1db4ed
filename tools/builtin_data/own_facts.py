"""What people tell about themselves besides their name: home, age, work, school."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tools.builtin_data import things
from tools.builtin_data.fact import Fact
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.order import MONTHS


def pick(known: list[str], share: float = 0.2) -> Callable[[Random], str]:
    return lambda rng: things.rarely_new(rng, known, share)


def after_a(value: Callable[[Random], str]) -> Callable[[Random], str]:
    """Values that follow "a": those beginning with a consonant."""

    def drawn(rng: Random) -> str:
        while (found := value(rng))[0].lower() in "aeiou":
            pass
        return found

    return drawn


LIVES = Fact(
    "home",
    (
        "i live in {v}",
        "i live in {v} [now|these days|at the moment|with my family]",
        "[i'm|im|i am] living in {v}",
        "[my home is|my city is|i moved to|i am at home in|my house is in|my address is in] {v}",
        "i [currently|now] live in {v}",
        "[we are|we're] living in {v}",
        "{v} is [my home|where i live|the city i live in]",
        "i live in [a town|a village|a city|a place] called {v}",
    ),
    (
        "where do i live?",
        "[what|which] [city|town|place] do i live in?",
        "do you [still |][remember|know] where i live?",
        "tell me where i live",
        "in [which|what] [city|town|place] [do i live|am i living]?",
        "what is my [city|home]?",
        "where is my home?",
        "[what|which] [city|town|place] am i living in?",
        "[so|and|ok|hey][, | ]where do i live?",
        "where did i say i live?",
    ),
    "you live in {v}",
    "You have not told me where you live.",
    things.city,
    weight=1.2,
)
FROM = Fact(
    "origin",
    (
        "[i am|i'm|im] from {v}",
        "i come from {v}",
        "[we are|we're] from {v}",
        "my home town is {v}",
        "[i'm|i am] originally from {v}",
        "{v} is [where i am from|my home town|where i come from]",
    ),
    (
        "where am i from?",
        "where do i come from?",
        "[what|which] [city|town|place] am i from?",
        "what is my home town?",
        "do you [still |][remember|know] where i am from?",
        "where did i say [i am from|i'm from|i come from]?",
        "[so|and|ok|hey][, | ]where am i from?",
    ),
    "you are from {v}",
    "You have not told me where you are from.",
    things.city,
    weight=0.7,
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
        "im {v} years old",
        "im {v}",
        "[i'm|i am] {v} [yo|y/o|years|now|years young]",
        "i will be {v} [soon|tomorrow]",
        "{v} years old, that's me",
    ),
    (
        "how old am i?",
        "what is my age?",
        "what's my age?",
        "do you [remember|know] how old i am?",
        "tell me my age",
        "my age?",
        "[so|and|ok|hey][, | ]how old am i?",
        "how old did i say i am?",
        "what age [am i|did i tell you]?",
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
        "im a {v}",
        "[i'm|i am] working as a {v}",
        "{v} is my [job|profession]",
        "i am a {v} by profession",
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
        "[so|and|ok|hey][, | ][what is|what's] my job?",
        "what did i say [i do|my job is]?",
        "what [job|profession] do i have?",
        "what am i by profession?",
    ),
    "you work as a {v}",
    "You have not told me what you do.",
    after_a(pick(things.JOBS)),
    weight=1.0,
)
STUDY = Fact(
    "study",
    (
        "i study {v}",
        "[i am|i'm|im] studying {v}",
        "i [am learning|'m learning|learn] {v} [at school|at university|these days|]",
        "my [major|subject] is {v}",
    ),
    (
        "what do i study?",
        "what am i [studying|learning]?",
        "what is my [major|subject]?",
        "do you [know|remember] what i study?",
    ),
    "you study {v}",
    "You have not told me what you study.",
    lambda rng: things.rarely_new(rng, things.SUBJECTS + things.HOBBIES, 0.25),
    weight=0.5,
)
BIRTH_YEAR = Fact(
    "birth year",
    ("i was born in {v}", "my year of birth is {v}", "{v} is the year i was born"),
    (
        "when was i born?",
        "[what|which] year was i born [in|]?",
        "what is my year of birth?",
        "in which year was i born?",
    ),
    "you were born in {v}",
    "You have not told me when you were born.",
    lambda rng: str(rng.randint(1930, 2020)),
    weight=0.4,
)
DRIVES = Fact(
    "drives",
    ("i drive a {v}", "my car is a {v}", "i [bought|have|own] a {v} as a car"),
    (
        "what [car |]do i drive?",
        "which car do i [have|drive|own]?",
        "what kind of car do i [have|drive]?",
        "do you remember my car?",
    ),
    "you drive a {v}",
    "You have not told me what you drive.",
    after_a(
        lambda rng: (
            made_up_title(rng)
            if rng.random() < 0.6
            else rng.choice(("truck", "van", "tractor", "bus", "jeep", "red car", "scooter"))
        )
    ),
    weight=0.3,
)


def made_up_title(rng: Random) -> str:
    return nonsense_word(rng).title()


def date(rng: Random) -> str:
    """A day of the year, as people write it."""
    month, day = rng.choice(MONTHS), rng.randint(1, 28)
    ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}.get(day, "th")
    month = month.lower() if rng.random() < 0.3 else month
    return rng.choice((f"{month} {day}", f"{day} {month}", f"the {day}{ending} of {month}", f"{month} {day}{ending}"))


BIRTHDAY = Fact(
    "birthday",
    (
        "my birthday is [on |]{v}",
        "my birthday is {v}",
        "i was born on {v}",
        "i have [my |]birthday on {v}",
        "{v} is my birthday",
        "i celebrate my birthday on {v}",
        "my bday is {v}",
    ),
    (
        "when is my birthday?",
        "what is my birthday?",
        "[what|which] day is my birthday?",
        "do you [still |][remember|know] [my birthday|when my birthday is]?",
        "[on which day|when] was i born?",
        "tell me my birthday",
        "when do i have my birthday?",
        "whens my [birthday|bday]?",
    ),
    "your birthday is {v}",
    "You have not told me when your birthday is.",
    date,
    weight=1.0,
)
ABOUT_ONESELF = (LIVES, FROM, AGE, JOB, STUDY, BIRTH_YEAR, BIRTHDAY, DRIVES)
