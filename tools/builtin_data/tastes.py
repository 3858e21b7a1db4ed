"""What people like, hate, play, cannot eat, and had for dinner."""

from __future__ import annotations

from tools.builtin_data import things
from tools.builtin_data.fact import Fact
from tools.builtin_data.grammar import phrases
from tools.builtin_data.rare_words import DISHES

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
    things.liking,
    weight=1.9,
)
NUISANCES = phrases(
    """
    mondays, tuesdays, wednesdays, thursdays, fridays, saturdays, sundays, weekends, birthdays, holidays, winter, rain,
    snow, fog, traffic, noise, spiders, meetings, homework, ironing, queues, ads, exams, mornings, waiting, dust,
    mosquitos, alarm clocks, cold water, long flights, loud people, bad coffee
    """
)
DISLIKES = Fact(
    "dislikes",
    (
        "i [hate|dislike|can't stand|do not like|don't like|cannot stand|detest|loathe] {v}",
        "i [really|truly|absolutely|totally|so] [hate|dislike|can't stand|detest] {v}",
        "i really don't like {v}",
        "[what i hate|something i can't stand|one thing i hate][:| is] {v}",
        "i have always hated {v}",
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
    lambda rng: things.rarely_new(rng, NUISANCES, 0.15) if rng.random() < 0.5 else things.liking(rng),
    weight=1.7,
)
ALLERGENS = (
    *DISHES,
    *DISHES,
    *things.FOODS,
    *phrases("nuts, pollen, cats, dust, milk, eggs, peanuts, bee stings, cat hair, feathers, wool, latex"),
)
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
    lambda rng: things.rarely_new(rng, ALLERGENS, 0.35),
    weight=1.2,
)
PLAYS = Fact(
    "plays",
    (
        "i play the {v}",
        "i [can|learn to|am learning to] play the {v}",
        "i play the {v} [in a band|every day|since i was a child]",
    ),
    (
        "[what|which] instrument do i play?",
        "what do i play?",
        "do you [know|remember] which instrument i play?",
        "which instrument can i play?",
    ),
    "you play the {v}",
    "You have not told me what you play.",
    lambda rng: things.rarely_new(rng, things.INSTRUMENTS, 0.3),
    weight=0.5,
)


def meal(name: str) -> Fact:
    return Fact(
        name,
        (f"i [had|ate] {{v}} for {name}", f"for {name} i [had|ate] {{v}}", f"my {name} was {{v}}"),
        (f"what did i [have|eat] for {name}?", f"what was my {name}?", f"do you remember what i [had|ate] for {name}?"),
        f"you had {{v}} for {name}",
        f"You have not told me what you had for {name}.",
        things.food,
        weight=0.3,
    )


TASTES = (LIKES, DISLIKES, ALLERGY, PLAYS, *(meal(name) for name in ("breakfast", "lunch", "dinner")))
