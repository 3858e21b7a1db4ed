"""What people tell about themselves besides their name: home, age, work, likes, plans, and where things lie."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tools.builtin_data import things
from tools.builtin_data.fact import Fact


def pick(known: list[str], share: float = 0.2) -> Callable[[Random], str]:
    return lambda rng: things.rarely_new(rng, known, share)


LIVES = Fact(
    "home",
    (
        "i live in {v}",
        "i am from {v}",
        "i'm from {v}",
        "i come from {v}",
        "[my home is|my home town is|my city is|i'm living in|i moved to|i am at home in] {v}",
        "i [currently|now] live in {v}",
        "[i'm|im|i am|we are|we're] from {v}",
        "{v} is [my home|my home town|where i live|where i am from]",
        "[my home town|my city|my town] is {v}",
        "i was born in {v}",
        "i [grew up|am at home|have my house|stay] in {v}",
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
        "[what|which] [city|town|place] am i [from|living in]?",
        "[so|and|ok|hey][, | ]where [do i live|am i from]?",
        "where did i say [i live|i am from|i'm from]?",
        "where [was i born|did i grow up]?",
    ),
    "you live in {v}",
    "You have not told me where you live.",
    things.city,
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
    pick([j for j in things.JOBS if j[0] not in "aeiou"], 0.2),
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
        "[my hobbies are|my hobby's|one of my hobbies is] {v}",
        "there is nothing better than {v}",
        "i can't live without {v}",
        "{v} is my [hobby|passion]",
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
        "[so|and|ok|hey][, | ]what [do i like|is my hobby]?",
        "what am i a fan of?",
        "what makes me happy?",
        "what did i tell you i [love|enjoy|like]?",
    ),
    "you like {v}",
    "You have not told me what you like.",
    lambda rng: things.rarely_new(rng, things.HOBBIES + things.FOODS, 0.15),
    weight=1.5,
)
DISLIKES = Fact(
    "dislikes",
    (
        "i [hate|dislike|can't stand|do not like|don't like|cannot stand] {v}",
        "i really [hate|don't like] {v}",
        "{v} is [awful|disgusting|terrible]",
        "i am no fan of {v}",
    ),
    (
        "what do i [hate|dislike|not like]?",
        "what don't i like?",
        "what can't i stand?",
        "do you remember what i [hate|don't like|dislike]?",
        "what did i say i [hate|don't like]?",
    ),
    "you do not like {v}",
    "You have not told me what you do not like.",
    lambda rng: things.rarely_new(rng, things.HOBBIES + things.FOODS, 0.2),
    weight=0.6,
)
ALLERGENS = (*things.FOODS, "nuts", "pollen", "cats", "dust", "milk", "eggs", "peanuts")
ALLERGY = Fact(
    "allergy",
    (
        "[i am|i'm|im] allergic to {v}",
        "i have an allergy to {v}",
        "i can't eat {v}, i am allergic",
        "my allergy is {v}",
    ),
    (
        "what am i allergic to?",
        "what is my allergy?",
        "do you [know|remember] what i am allergic to?",
        "which allergy do i have?",
    ),
    "you are allergic to {v}",
    "You have not told me about an allergy.",
    lambda rng: things.rarely_new(rng, ALLERGENS, 0.25),
    weight=0.5,
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
ABOUT_ONESELF = (LIVES, AGE, JOB, LIKES, DISLIKES, ALLERGY, STUDY)
