# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Words and their opposites, and what kind of thing a word names."""

from __future__ import annotations

from tools.builtin_data import things
from tools.builtin_data.grammar import article, ask, words
from tools.builtin_data.story import new_story, told
from tools.builtin_data.talk import Talk

OPPOSITES = dict(
    pair.split("-")
    for pair in words(
        """
        hot-cold big-small up-down left-right fast-slow day-night good-bad happy-sad old-young tall-short
        long-short new-old high-low light-dark black-white open-closed full-empty wet-dry hard-soft heavy-light rich-poor
        strong-weak early-late near-far in-out on-off yes-no true-false right-wrong first-last begin-end start-stop
        come-go love-hate win-lose give-take push-pull buy-sell loud-quiet clean-dirty easy-difficult thick-thin
        wide-narrow deep-shallow sweet-sour alive-dead always-never all-none everything-nothing before-after
        above-below over-under inside-outside top-bottom front-back north-south east-west summer-winter
        morning-evening man-woman boy-girl king-queen mother-father brother-sister friend-enemy war-peace
        life-death question-answer smile-frown asleep-awake brave-cowardly cheap-expensive smooth-rough safe-dangerous
        sharp-blunt polite-rude remember-forget laugh-cry find-lose ask-answer sunrise-sunset hello-goodbye more-less
        many-few rise-fall warm-cool beautiful-ugly simple-complicated lazy-busy kind-cruel same-different
        """
    )
)
BOTH_WAYS = {other: word for word, other in OPPOSITES.items()} | OPPOSITES
ASK_OPPOSITE = (
    "[what is|what's|whats|tell me|do you know|give me|] the [opposite|contrary|antonym] [of|to] {x}",
    "[opposite|contrary|antonym] of {x}",
    "what is {x}'s opposite?",
    "what word [is|means] the [opposite|contrary] of {x}?",
    "{x} is the opposite of what?",
    "the opposite of {x} is?",
    "[name|say] the opposite of {x}",
)
ANOTHER_OPPOSITE = ("and [of |]{x}?", "what about {x}?", "and the opposite of {x}?", "now {x}")
KINDS = (
    ("animal", things.ANIMALS),
    ("colour", things.COLOURS),
    ("food", things.FOODS),
    ("sport", things.SPORTS),
    ("instrument", things.INSTRUMENTS),
    ("season", things.SEASONS),
    ("drink", things.DRINKS),
    ("day", words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")),
    ("month", words("January February March April May June July August September October November December")),
)
MASS = ("colour", "food", "sport", "season", "drink", "day", "month")  # these stand without an article


def opposite_turns(talk: Talk) -> None:
    rng = talk.rng
    patterns: tuple[str, ...] = ASK_OPPOSITE
    while True:
        word = rng.choice(list(BOTH_WAYS))
        asked = rng.choice(("{x}", "{x}", "'{x}'", '"{x}"')).replace("{x}", word)
        talk.say("opposite", ask(rng, patterns, {"x": asked}), f"The opposite of {word} is {BOTH_WAYS[word]}.")
        patterns = ANOTHER_OPPOSITE
        if rng.random() < 0.65:
            return


def kind_turns(talk: Talk) -> None:
    """`is a trout an animal?`, `is purple a colour or a food?`, `what is a camel?`"""
    rng = talk.rng
    kind, known = KINDS[rng.choice((0, 0, 0, 1, 1, 2, 2, *range(len(KINDS))))]
    word = rng.choice(known)
    shown = word if kind in MASS else article(word)
    if rng.random() < 0.3 and kind == "animal":
        asked = ask(
            rng, ("[what is|what's|whats] {x}?", "what kind of thing is {x}?", "do you know what {x} is?"), {"x": shown}
        )
        talk.say("kind", asked, f"I know that {shown} is an animal. Shall I tell you a story about {article(word)}?")
        if rng.random() < 0.5:
            yes = ask(rng, ("[yes|yes please|sure|please do|ok|go ahead|yeah|yep|of course|yes, do that]",), wrap=False)
            talk.say("story", yes, told(rng, new_story(rng, word)))
        return
    other = rng.choice([name for name, _ in KINDS if name != kind])
    roll = rng.random()
    if roll < 0.4:
        both = [article(kind), article(other)]
        rng.shuffle(both)
        asked = ask(rng, (f"is {{x}} {both[0]} or {both[1]}?", f"{{x}}: {both[0]} or {both[1]}?"), {"x": shown})
        talk.say("kind", asked, f"I would say that {shown} is {article(kind)}.")
    elif roll < 0.7:
        asked = ask(rng, (f"is {{x}} {article(kind)}?", f"{{x}} is {article(kind)}, [right|isn't it]?"), {"x": shown})
        talk.say("kind", asked, f"Yes, {shown} is {article(kind)}.")
    else:
        asked = ask(rng, (f"is {{x}} {article(other)}?", f"{{x}} is {article(other)}, [right|isn't it]?"), {"x": shown})
        talk.say("kind", asked, f"No, {shown} is {article(kind)}.")
