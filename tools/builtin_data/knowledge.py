"""Questions about localrun and language models, in many forms, with answers of the length that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tools.builtin_data import (
    facts_app,
    facts_attention,
    facts_cache,
    facts_codec,
    facts_commands,
    facts_files,
    facts_keys,
    facts_machine,
    facts_models,
    facts_phases,
    facts_programs,
    facts_reuse,
    facts_sampling,
    facts_second_token,
    facts_speed,
    facts_transformer,
    facts_weights,
    facts_words,
)
from tools.builtin_data.frames import (
    ASIDES,
    ASK_EXAMPLE,
    ASK_MORE,
    ASK_NEXT,
    ASK_SHORT,
    ASK_SIMPLE,
    BRIEFLY,
    FACT_FORMS,
    IN_DETAIL,
    LIKE_FIVE,
    NAME_FORMS,
    PAIR_FORMS,
    TASK_FORMS,
)
from tools.builtin_data.grammar import ask, expand, first_of
from tools.builtin_data.own_name import NAME
from tools.builtin_data.talk import Talk
from tools.builtin_data.topic import Topic

SUBJECTS: tuple[tuple[Topic, ...], ...] = (
    facts_second_token.TOPICS + facts_phases.TOPICS + facts_speed.TOPICS,
    facts_cache.TOPICS + facts_codec.TOPICS + facts_reuse.TOPICS + facts_attention.TOPICS + facts_transformer.TOPICS,
    facts_weights.TOPICS + facts_files.TOPICS,
    facts_words.TOPICS + facts_sampling.TOPICS,
    facts_commands.TOPICS + facts_models.TOPICS + facts_app.TOPICS + facts_keys.TOPICS,
    facts_machine.TOPICS + facts_programs.TOPICS,
)
TOPICS = tuple(topic for subject in SUBJECTS for topic in subject)
WEIGHTS = [topic.weight for topic in TOPICS]
BARE = tuple(tuple(topic for topic in subject if topic.bare) for subject in SUBJECTS)
# How often a form is used, per alternative that a topic has for it, up to `MOST_ALTERNATIVES`.
FORM_WEIGHTS = {"names": 1.2, "tasks": 1.6, "facts": 1.2, "pairs": 2.0, "patterns": 1.0}
MOST_ALTERNATIVES = 14
PLAIN_SHARE = 0.3  # of the questions about a name: a topic's first name, which is what most people type
NO_MORE = "That is all I know about it. A bigger model knows more: try `localrun pull qwen3-4b`."


def form_weights(topic: Topic) -> list[float]:
    return [
        weight * min(alternatives(getattr(topic, form)), MOST_ALTERNATIVES) for form, weight in FORM_WEIGHTS.items()
    ]


def alternatives(wordings: Sequence[str | tuple[str, str]]) -> int:
    texts = ["".join(wording) for wording in wordings]
    return len(texts) + sum(text.count("|") for text in texts)


def question(rng: Random, topic: Topic) -> str:
    """One of the forms that the topic has words for."""
    form = rng.choices(list(FORM_WEIGHTS), form_weights(topic))[0]
    if form == "pairs":
        pair = rng.choice(topic.pairs)
        a, b = pair if rng.random() < 0.5 else pair[::-1]
        return expand(rng, rng.choice(PAIR_FORMS).replace("{a}", a).replace("{b}", b))
    if form == "patterns":
        return expand(rng, rng.choice(topic.patterns))
    common = {"names": NAME_FORMS, "tasks": TASK_FORMS, "facts": FACT_FORMS}[form]
    wordings = getattr(topic, form)
    wording = wordings[0] if form == "names" and rng.random() < PLAIN_SHARE else rng.choice(wordings)
    return expand(rng, rng.choice(common).replace("{x}", wording))


def shortest(topic: Topic) -> tuple[str, ...]:
    """The short answer; without one, the first sentence of the long one, which stands by itself."""
    return topic.short or tuple(first_sentence(text) for text in topic.answer)


def first_sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + "." if dot else text


def topic_turns(talk: Talk) -> None:
    rng = talk.rng
    topic = rng.choices(TOPICS, WEIGHTS)[0]
    asked = question(rng, topic)
    before, after, text = styled_answer(rng, topic)
    user = ask(rng, (before + asked + after,))
    if rng.random() < 0.05 and not before + after:
        name = NAME.value(rng)
        talk.facts = {**{k: v for k, v in talk.facts.items() if k != "name"}, "name": name}
        user = ask(rng, ("[hi|hello|hey], [i'm|i am|my name is] {v}[. |! |, ]" + asked,), {"v": name}, wrap=False)
        text = f"Nice to meet you, {name}! {text}"
    elif rng.random() < 0.06 and not before + after:
        user = ask(rng, ("[hi|hello|hey|good morning|hi there|hello there][! |. |, | ]" + asked,), wrap=False)
    talk.say(f"topic:{topic.key}", user, text)
    follow(talk, topic)


def styled_answer(rng: Random, topic: Topic) -> tuple[str, str, str]:
    """A cue to put before the question, one to put after it, and the answer in the style that they ask for."""
    roll = rng.random()
    if roll < 0.12:
        return *around(rng, BRIEFLY), first_of(rng, shortest(topic))
    if roll < 0.15:
        return *around(rng, IN_DETAIL), "\n\n".join((*topic.answer[:1], *topic.more[:1]))
    if roll < 0.21:
        return *around(rng, LIKE_FIVE), first_of(rng, topic.simple or shortest(topic))
    return *(beside(rng) if roll < 0.28 else ("", "")), first_of(rng, topic.answer)


def remarks(rng: Random) -> tuple[str, str]:
    """What may stand before and behind any question, as often as `styled_answer` puts it there."""
    roll = rng.random()
    if roll < 0.21:
        return around(rng, BRIEFLY if roll < 0.12 else IN_DETAIL if roll < 0.15 else LIKE_FIVE)
    return beside(rng) if roll < 0.28 else ("", "")


def beside(rng: Random) -> tuple[str, str]:
    """A remark before a question or behind it that changes nothing."""
    aside = expand(rng, rng.choice(ASIDES))
    return (
        (aside + rng.choice((". ", ", ", ": ")), "")
        if rng.random() < 0.5
        else ("", rng.choice((" ", ". ", ", ")) + aside)
    )


def around(rng: Random, cues: Sequence[str]) -> tuple[str, str]:
    """A cue and its punctuation, to stand before a question or behind it."""
    cue = expand(rng, rng.choice(cues))
    if rng.random() < 0.3:
        return cue + rng.choice((": ", ", ", " ")), ""
    return "", rng.choice((" ", ", ", ". ", " ")) + cue


def follow(talk: Talk, topic: Topic) -> None:
    """What people say after an explanation: more, shorter, simpler, an example, or the next word of the subject."""
    rng = talk.rng
    more_left = list(topic.more)
    while rng.random() < 0.32:
        roll = rng.random()
        if roll < 0.36:
            if more_left or rng.random() < 0.3:
                text = more_left.pop(0) if more_left else NO_MORE
                talk.say("follow:more", ask(rng, ASK_MORE), text)
        elif roll < 0.54:
            talk.say("follow:short", ask(rng, ASK_SHORT), first_of(rng, shortest(topic)))
        elif roll < 0.72:
            talk.say("follow:simple", ask(rng, ASK_SIMPLE), first_of(rng, topic.simple or shortest(topic)))
        elif roll < 0.84:
            if topic.example:
                talk.say("follow:example", ask(rng, ASK_EXAMPLE), first_of(rng, topic.example))
        elif neighbours := neighbours_of(topic):
            topic = rng.choice(neighbours)
            more_left = list(topic.more)
            asked = rng.choice(ASK_NEXT).replace("{x}", rng.choice(topic.bare))
            talk.say(f"topic:{topic.key}", ask(rng, (asked,), wrap=False), first_of(rng, topic.answer))


def neighbours_of(topic: Topic) -> Sequence[Topic]:
    """Topics of the same subject that a bare word is enough for, after this one."""
    for subject, bare in zip(SUBJECTS, BARE, strict=True):
        if topic in subject:
            return [other for other in bare if other.key != topic.key]
    return ()
