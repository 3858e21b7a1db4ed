# ruff: noqa: E501 - patterns and sentences stand on one line each
"""The plots of the short stories: sentences with alternatives, `?` before one that may be left out, and the moral.

`{n}` is the hero's name, `{a}` what the hero is (`{A}` with its article), `{f}` the friend on first sight and `{g}`
from then on, `{place}` where it happens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plot:
    moral: str
    lines: tuple[str, ...]


LOST_THING = Plot(
    "Giving back feels better than keeping.",
    (
        "[Once upon a time|Long ago], {A} named {n} lived near {place}.",
        "One [sunny|windy] morning, {n} found a [golden key|silver bell|blue feather] under [a stone|an old tree].",
        "?The {a} [turned it over|held it up to the sun] and wondered where it came from.",
        '{f} came by and said, "[Someone must miss it|It belongs to the old tortoise on the hill]."',
        "So {n} and the {g} [walked all day|followed the path] until they met an old tortoise, who [smiled with joy|laughed happily].",
        '"You are honest and kind," said the tortoise, and gave the {a} and the {g} [warm honey cakes|a basket of berries].',
        "[That night|From that day on], {n} the {a} knew that giving back feels better than keeping.",
    ),
)
FEAR = Plot(
    "Being brave means helping although you are afraid.",
    (
        "[There was once|Once there was] {A} called {n}, who was afraid of [the dark|thunder|deep water].",
        "All the others played outside, but the {a} stayed [at home|under a bush].",
        "One evening, {n} heard a small voice calling for help: it was {f}, lost near {place}.",
        "?{n}'s [heart beat fast|knees were shaking], but there was nobody else to help.",
        "The {a} took a deep breath and [ran out|went out], step by step, until the {g} was found.",
        "Together {n} and the {g} walked home, and the fear was gone.",
        '"Brave is what you do when you are afraid," said {n} the {a}, and [smiled|was very proud].',
    ),
)
RACE = Plot(
    "A kind heart wins more than a race.",
    (
        "Every [year|spring] there was a big race around {place}, and {A} named {n} wanted to win it.",
        '"You are too [slow|small]," the others said, but {n} the {a} [trained every morning|only smiled].',
        "?On the day of the race the sun was bright, and everybody came to watch.",
        "Halfway along, {n} saw {f} [stuck in the mud|with a hurt foot].",
        "The {a} stopped and helped the {g} at once, while all the others ran past.",
        "{n} and the {g} came last, side by side, but the crowd cheered louder than ever.",
        "That day the {a} learnt that a kind heart wins more than a race.",
    ),
)
WINTER = Plot(
    "What you share makes you warm.",
    (
        "[In a cold winter|One icy winter], {A} named {n} lived all alone near {place}.",
        "The {a} had a [soft bed|warm home] and a big pot of soup, but nobody to share it with.",
        "One [stormy|snowy] night there was a knock at the door: {f} stood outside, cold and hungry.",
        '"Come in," said {n} the {a}, and [lit the fire|made some tea].',
        "?{n} and the {g} [told stories|sang songs|played games] until the sun came up.",
        "When spring came, the {g} did not want to leave, and they planted a garden together.",
        "And {n} the {a} was never lonely again.",
    ),
)
STAR = Plot(
    "What you look for may be closer than you think.",
    (
        "{n} was {A} who looked at the stars every night.",
        '"One day I will bring one home," said {n}, and everybody [laughed|shook their heads].',
        "So the {a} climbed the highest [hill|tree] near {place}, but the stars were still far away.",
        "?{n} the {a} sat down and [sighed|was a little sad].",
        "Then {f} came along and pointed at the [lake|pond] below: it was full of shining stars.",
        "Together the {a} and the {g} dipped their feet into the light, and {n} had never been so happy.",
        "Sometimes what you look for is closer than you think.",
    ),
)
SONG = Plot(
    "What others laugh at may help everybody one day.",
    (
        "Near {place} there lived {A} named {n}, who sang from morning to night.",
        "The trouble was that the {a} [sang very loudly|knew only one song].",
        '"Please be quiet," the neighbours said, and so {n} [fell silent|stopped singing].',
        "But one day a thick fog came, and {f} could not find the way home.",
        "?Nobody could see farther than their own nose.",
        "{n} the {a} sang as loudly as possible, and the {g} followed the song safely home.",
        "Since that day, the {g} and all the neighbours sing along with {n} the {a}.",
    ),
)
BOAT = Plot(
    "If it fails, try again together.",
    (
        "{n} was {A} with a great plan: to build a boat and sail to the island.",
        "[Day after day|For a whole week], the {a} collected [branches|old boxes] near {place}.",
        "{f} wanted to help and [brought a rope|made a sail from a big leaf].",
        "?The first boat sank at once, and {n} and the {g} laughed about it.",
        "On the third try it floated, and the {a} and the {g} set off with [a basket of apples|some bread and cheese].",
        "They saw [silver fish|a rainbow] and came home when the moon was up.",
        '"Tomorrow we will sail farther," said {n} the {a}, already half asleep.',
    ),
)
GARDEN = Plot(
    "Good things take time.",
    (
        "Not far from {place}, {A} named {n} planted a tiny seed and watered it every day.",
        'Nothing happened for [a week|many days], and {f} said, "That will never grow."',
        "But the {a} did not give up and [told the seed a story|sang to the seed] every evening.",
        "?Then came the rain, soft and warm, and after it the sun.",
        "One morning {n} saw a small green shoot, and by summer there was a huge [sunflower|apple tree].",
        "The {a} shared it with everyone, and the {g} was the first to say sorry.",
        '"Good things take time," said {n} the {a}.',
    ),
)
PLOTS = (LOST_THING, FEAR, RACE, WINTER, STAR, SONG, BOAT, GARDEN)
BRIEF = (
    "{A} named {n} helped {f} in need, and the two became the best of friends.",
    "{n} the {a} had a great dream, met {f}, and together they made it come true.",
    "{A} named {n} learnt from {f} that being kind is better than being first.",
)
EPILOGUE = (
    "After that, {n} the {a} and the {g} met every day, and they had many more adventures together.",
    "The next morning, {n} and the {g} had breakfast together and made plans for a new adventure.",
)
