# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Questions about localrun and language models, in many forms, with answers of the length that was asked for."""

from __future__ import annotations

from tools.builtin_data import facts_localrun, facts_models, facts_phases
from tools.builtin_data.grammar import answer, ask, expand, first_of
from tools.builtin_data.own_name import NAME
from tools.builtin_data.talk import Talk
from tools.builtin_data.topic import Topic

TOPICS: tuple[Topic, ...] = facts_phases.TOPICS + facts_localrun.TOPICS + facts_models.TOPICS
EXTRA_WEIGHT = {"second_token": 7.0, "kv_cache": 4.0, "prefill": 1.3, "decode": 1.3}
WEIGHTS = [EXTRA_WEIGHT.get(topic.key, topic.weight) for topic in TOPICS]

NAME_FORMS = (
    "what is {x}?",
    "what is {x}?",
    "what's {x}?",
    "whats {x}?",
    "what are {x}?",
    "explain {x}",
    "explain {x} to me",
    "explain {x} [please|simply|in simple words]",
    "tell me about {x}",
    "tell me [something|more] about {x}",
    "{x}?",
    "{x}",
    "define {x}",
    "what does {x} mean?",
    "what do you mean by {x}?",
    "how does {x} work?",
    "what is {x} [for|good for|used for]?",
    "what does {x} do?",
    "why [do we need|do models need|is there|do you need] {x}?",
    "what [exactly |]is {x}?",
    "can you [explain|tell me about|describe|define] {x}?",
    "[could|would] you explain {x}?",
    "i [do not|don't] [understand|know] [what {x} is|{x}]",
    "what is meant by {x}?",
    "[give me|what is] [a|the] [definition|meaning|explanation] of {x}?",
    "do you know what {x} is?",
    "describe {x}",
    "i want to [know|learn] [about|more about|what is] {x}",
    "what is {x} in [localrun|an llm|simple terms|ai|a language model|machine learning]?",
    "how would you [explain|describe] {x}?",
    "help me understand {x}",
    "what's the [deal with|idea behind|point of|purpose of] {x}?",
    "why is {x} important?",
    "meaning of {x}",
    "can you explain what {x} [is|means]?",
    "i have a question about {x}",
    "what about {x}?",
    "and {x}?",
    "what is {x} about?",
    "[and |so |]{x} means what[, please|]?",
    "what [exactly |]{x} means",
    "{x}, what [is it|is that|does it mean|does that mean|does it measure|does it do]?",
    "[could|can|would] you [define|describe|clarify|tell me] {x} [for me|please|]?",
    "i [keep reading|keep hearing|read|heard] about {x}[, what is it|. what is it|]?",
    "[what|whats|what's] [that|this] {x} [thing|stuff|]?",
    "how [do|would|can] [you|one|i] [define|describe|understand] {x}?",
    "explain [what|to me what] {x} is",
    "what [happens|goes on] [in|during|with] {x}?",
    "a [short|simple|quick] [explanation|definition] of {x} please",
    "in [plain|simple|other|your own] words, what is {x}?",
    "teach me about {x}",
    "do you know {x}?",
    "have you heard of {x}?",
    "so what is {x}?",
    "what should i know about {x}?",
)
BRIEFLY = (
    "[in one sentence|briefly|in short|in a few words|short answer|keep it short|be brief|shortly|in a nutshell|quickly|one sentence please]",
)
IN_DETAIL = ("[in detail|in depth|with details|at length|in more detail|thoroughly|long answer please|fully]",)
LIKE_FIVE = (
    "[like i'm five|like i am five|like i'm 5|for a child|for beginners|in simple words|in simple terms|in plain english|as simply as you can|for dummies|to a child|eli5|to my grandmother]",
)
ASK_MORE = (
    "[tell me more|more|more details|go on|can you tell me more|more please|give me more details|explain more|i want to know more|in more detail|elaborate|please elaborate|continue|and what else|tell me more about it|tell me more about that|details please|can you go deeper|what else|more information|say more|could you elaborate|what more can you say|anything else about it|go deeper|expand on that|explain further|can you explain more]",
)
ASK_SHORT = (
    "[shorter|make it shorter|shorter please|in one sentence|too long|briefly please|sum it up|summarize|summarize that|tl;dr|tldr|in short|can you say that in one sentence|say it shorter|the short version please|give me the short version|in a nutshell|can you make it shorter|be brief|that was too long|simplify and shorten|summary please|a short version]",
)
ASK_SIMPLE = (
    "[simpler|explain it simply|explain it like i'm five|eli5|in simple words|i don't understand|i do not understand|i don't get it|too complicated|make it simpler|can you explain it more simply|say it more simply|what does that mean|in plain english|can you simplify that|simpler please|that is too hard|huh|explain that|for beginners|that's confusing]",
)
NO_MORE = "That is all I know about it. A bigger model knows more: try `localrun pull qwen3-4b`."


def question(talk: Talk, topic: Topic) -> str:
    forms = topic.patterns
    if topic.names and (not forms or talk.rng.random() < 0.65):
        name = talk.rng.choice(topic.names)
        return expand(talk.rng, talk.rng.choice(NAME_FORMS)).replace("{x}", name)
    return expand(talk.rng, talk.rng.choice(forms))


def topic_turns(talk: Talk) -> None:
    rng = talk.rng
    topic = rng.choices(TOPICS, WEIGHTS)[0]
    asked, reply = question(talk, topic), styled_answer(talk, topic)
    user = ask(rng, (asked + reply[0],)) if not reply[0].startswith("^") else ask(rng, (reply[0][1:] + asked,))
    text = reply[1]
    if rng.random() < 0.05 and not reply[0]:
        name = NAME.value(rng)
        talk.facts = {**{k: v for k, v in talk.facts.items() if k != "name"}, "name": name}
        user = ask(rng, ("[hi|hello|hey], [i'm|i am|my name is] {v}[. |! |, ]" + asked,), {"v": name}, wrap=False)
        text = f"Nice to meet you, {name}! {text}"
    elif rng.random() < 0.06 and not reply[0]:
        user = ask(rng, ("[hi|hello|hey|good morning|hi there|hello there][! |. |, | ]" + asked,), wrap=False)
    talk.say(f"topic:{topic.key}", user, text)
    follow(talk, topic)


def styled_answer(talk: Talk, topic: Topic) -> tuple[str, str]:
    """A cue to put after the question (after a leading ^: before it), and the answer in that style."""
    rng = talk.rng
    roll = rng.random()
    if topic.short and roll < 0.09:
        cue = expand(rng, rng.choice(BRIEFLY))
        return rng.choice((" " + cue, ", " + cue, ". " + cue, "^" + cue + ": ", "^" + cue + ", ")), rng.choice(
            topic.short
        )
    if topic.more and roll < 0.15:
        return rng.choice((" ", ", ")) + expand(rng, rng.choice(IN_DETAIL)), rng.choice(
            topic.answer
        ) + "\n\n" + first_of(rng, topic.more)
    if topic.simple and roll < 0.21:
        return rng.choice((" ", ", ")) + expand(rng, rng.choice(LIKE_FIVE)), first_of(rng, topic.simple)
    return "", answer(rng, topic.answer)


def follow(talk: Talk, topic: Topic) -> None:
    """What people say after an explanation: more, shorter, simpler."""
    rng = talk.rng
    more_left = list(topic.more)
    while rng.random() < 0.3:
        roll = rng.random()
        if roll < 0.55:
            text = more_left.pop(0) if more_left else NO_MORE
            talk.say("follow:more", ask(rng, ASK_MORE), text)
        elif roll < 0.8:
            talk.say("follow:short", ask(rng, ASK_SHORT), first_of(rng, topic.short or topic.answer))
        else:
            talk.say("follow:simple", ask(rng, ASK_SIMPLE), first_of(rng, topic.simple or topic.short or topic.answer))
