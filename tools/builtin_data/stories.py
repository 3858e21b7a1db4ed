"""Chats about stories: a request, the story, and what people say after it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tools.builtin_data import memory, names, story_requests, things
from tools.builtin_data.grammar import article, ask, first_of, plural
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.story import SOMEBODY, Story, continued, in_brief, new_story, told
from tools.builtin_data.talk import Talk
from tools.builtin_data.your_facts import fact_of

PREPOSITIONS = (" about ", " with ", " of ", " on ")


def story_turns(talk: Talk) -> None:
    """A request for a story, and sometimes what follows: another one, a shorter one, questions about it."""
    rng = talk.rng
    is_own = rng.random() < 0.2
    if is_own and rng.random() < 0.4 and "favourite animal" not in talk.facts:
        memory.tell_plainly(talk, fact_of("favourite animal"))
    story = own_story(talk) if is_own else first_story(talk)
    if rng.random() < 0.12:
        liked = ask(rng, story_requests.LIKED, wrap=False)
        talk.say("liked", liked, first_of(rng, ("Thank you, I am glad you like it!",)))
    while rng.random() < 0.5:
        story = next_turn(talk, story)


def next_turn(talk: Talk, story: Story) -> Story:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.14:
        story = new_story(rng)
        talk.say("story", ask(rng, story_requests.AGAIN), told(rng, story))
    elif roll < 0.30:
        story = new_story(rng, things.animal(rng))
        talk.say("story", ask(rng, story_requests.NEXT_KIND, {"x": article(story.kind)}), told(rng, story))
    elif roll < 0.37:
        story = replace(new_story(rng, story.kind), hero=names.one_word_name(rng))
        talk.say("story", ask(rng, story_requests.NEXT_HERO, {"x": story.hero}), told(rng, story))
    elif roll < 0.52:
        talk.say("story_short", ask(rng, story_requests.SHORTER), in_brief(rng, story))
    elif roll < 0.58:
        talk.say("story_short", ask(rng, story_requests.CONTINUE), continued(rng, story))
    else:
        talk.say("about_story", *question(rng, story))
    return story


def question(rng: Random, story: Story) -> tuple[str, str]:
    """Something asked about the story just told, and the answer."""
    asked, answer = rng.choice(
        (
            (story_requests.WHO_IS, "{n} is the {a} in my story."),
            (story_requests.WHO_IS, "{n} is the {a} in my story."),
            (story_requests.WHAT_NAME, "The {a} is called {n}."),
            (story_requests.WHAT_NAME, "The {a} is called {n}."),
            (story_requests.WHO_FRIEND, "{n} met {f}."),
            (story_requests.WHERE, "It happened near {place}."),
            (story_requests.MORAL, story.plot.moral),
        )
    )
    for slot, value in story.slots.items():
        answer = answer.replace("{" + slot + "}", value)
    hero = story.hero.lower() if rng.random() < 0.25 else story.hero
    return ask(rng, asked, {"n": hero, "a": story.kind}), answer


def first_story(talk: Talk) -> Story:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.12:
        story = new_story(rng)
        talk.say("story", ask(rng, story_requests.ANY_REQUEST), told(rng, story))
        return story
    if roll < 0.16:
        return themed(talk)
    if roll < 0.20:
        return somewhere(talk)
    story, subject = asked_for(rng)
    if rng.random() < 0.06:
        talk.say("story_short", ask(rng, story_requests.ONE_LINE_REQUESTS, {"x": subject}), in_brief(rng, story))
    else:
        # Without the word "story", a quality tells it from a question about the animal.
        requests = story_requests.WORDLESS if story.quality and rng.random() < 0.6 else story_requests.REQUESTS
        talk.say("story", ask(rng, requests, {"x": subject}), told(rng, story))
    return story


def somewhere(talk: Talk) -> Story:
    """`a story where a robot lives on a farm`."""
    rng = talk.rng
    story = replace(new_story(rng, things.animal(rng)), place=user_place(rng))
    happens = article(story.kind) + rng.choice(story_requests.LIVING).replace("{p}", story.place)
    talk.say("story", ask(rng, story_requests.WHERE_REQUESTS, {"x": happens}), told(rng, story))
    return story


def asked_for(rng: Random) -> tuple[Story, str]:
    """A story, and the words in which a user would ask for it."""
    story = new_story(rng, things.animal(rng))
    subject = rng.choice((article(story.kind),) * 3 + (f"the {story.kind}", story.kind, plural(story.kind)))
    roll = rng.random()
    if roll < 0.22:
        quality = " ".join(rng.sample(story_requests.QUALITIES, rng.choice((1, 1, 1, 2))))
        story = replace(story, quality=quality)
        subject = article(f"{story.quality} {story.kind}")
    elif roll < 0.46:
        story = replace(story, hero=names.one_word_name(rng))
        if rng.random() < 0.2:
            story = replace(story, quality=rng.choice(story_requests.QUALITIES))
        named = rng.choice(("named", "called", "named", "whose name is"))
        subject = f"{article(f'{story.quality} {story.kind}'.strip())} {named} {story.hero}"
        if rng.random() < 0.25:
            subject = f"{story.hero} the {story.kind}"
    elif roll < 0.51:
        story = replace(story, hero=names.one_word_name(rng), kind=SOMEBODY)
        subject = rng.choice((story.hero, story.hero, f"someone called {story.hero}", f"my friend {story.hero}"))
    elif roll < 0.60:
        story = replace(story, friend=things.animal(rng))
        if rng.random() < 0.25:
            story = replace(story, hero=names.one_word_name(rng), kind=SOMEBODY)
        join = rng.choice((" and ", " and ", " and ", " who meets ", " with ", " helping "))
        hero = story.hero if story.kind == SOMEBODY else article(story.kind)
        subject = hero + join + article(story.friend)
    elif roll < 0.62:
        story = replace(story, friend=story.kind)
        subject = f"two {plural(story.kind)}"
    elif roll < 0.66:
        story = replace(story, hero=names.one_word_name(rng), friend=things.animal(rng))
        story = replace(story, friend_name=names.one_word_name(rng))
        subject = f"{article(story.kind)} named {story.hero} and {article(story.friend)} named {story.friend_name}"
    if rng.random() < 0.12:
        place = user_place(rng)
        story = replace(story, place=place)
        subject += rng.choice(story_requests.IN_PLACE).replace("{p}", place)
    return story, subject


def user_place(rng: Random) -> str:
    roll = rng.random()
    if roll < 0.7:
        return rng.choice(story_requests.USER_PLACES)
    return things.city(rng) if roll < 0.85 else f"the {nonsense_word(rng)}"


def themed(talk: Talk) -> Story:
    """About something that no one can be: the hero is any animal, and the last sentence names the theme."""
    rng = talk.rng
    story = new_story(rng)
    theme = rng.choice(story_requests.THEMES) if rng.random() < 0.7 else nonsense_word(rng) + "ness"
    text = f"{told(rng, story)} And that was a story about {theme}."
    talk.say("story", ask(rng, story_requests.REQUESTS, {"x": theme}), text)
    return story


def own_story(talk: Talk) -> Story:
    """About the user, their pet or their favourite animal, where these are known."""
    rng = talk.rng
    known = [key for key in talk.facts if key in ("name", "favourite animal") or key.endswith("'s name")]
    if not known:
        return about_a_stranger(talk)
    key = rng.choice(known)
    value = talk.facts[key]
    if key == "name":
        story, subject = new_story(rng, SOMEBODY, value), rng.choice(("me", "me", "myself", "your user"))
    elif key == "favourite animal":
        story, subject = new_story(rng, value.removeprefix("the ")), "my favo[u|]rite animal"
    else:
        noun = key.removesuffix("'s name")
        story, subject = new_story(rng, noun, value), f"my {noun}"
    patterns = [pattern.replace("{x}", subject) for pattern in story_requests.REQUESTS]
    talk.say("story", ask(rng, patterns), told(rng, story))
    return story


def about_a_stranger(talk: Talk) -> Story:
    """`a story about me`, from somebody whose name is not known yet."""
    rng = talk.rng
    patterns = [pattern.replace("{x}", "me") for pattern in story_requests.REQUESTS]
    talk.say("ask_name", ask(rng, patterns), "Gladly! What is your name?")
    name = names.one_word_name(rng)
    talk.facts["name"] = name
    story = new_story(rng, SOMEBODY, name)
    reply = ask(rng, ("{v}", "my name is {v}", "it's {v}", "i'm {v}", "im {v}"), {"v": name}, wrap=False)
    talk.say("story", reply, told(rng, story))
    return story


YES = "[yes|yes please|sure|please do|ok|go ahead|yeah|yep|of course|yes, do that|why not|ok then|yes, a story]"


def offered(talk: Talk) -> None:
    """The model has just offered a story, or asked for an animal."""
    rng = talk.rng
    if rng.random() < 0.5:
        talk.say("story", ask(rng, (YES,), wrap=False), told(rng, new_story(rng)))
    else:
        kind = things.animal(rng)
        asked = ask(
            rng, ("{x}", "{x} please", "ok, {x}", "about {x}", "yes, about {x}"), {"x": article(kind)}, wrap=False
        )
        talk.say("story", asked, told(rng, new_story(rng, kind)))
