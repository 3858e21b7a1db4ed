"""Facts that are easily mixed up: two pets, two names that differ by a letter, a name that was corrected long ago."""

from __future__ import annotations

from random import Random

from tools.builtin_data import memory, names, smalltalk, things
from tools.builtin_data.fact import Fact, called, possession, sentence
from tools.builtin_data.grammar import answer, ask
from tools.builtin_data.kin import KIN, PETS, WITH_A_LIFE, age_of, home_of, job_of, likes_of
from tools.builtin_data.made_up import nonsense_word, repeated, rough
from tools.builtin_data.memory import INTRODUCTIONS, JOIN, say_known, tell
from tools.builtin_data.noted_facts import number_text
from tools.builtin_data.own_facts import AGE, FROM
from tools.builtin_data.own_name import CORRECTED, CORRECTIONS, NAME, NICKNAMES
from tools.builtin_data.rare_words import WILD_ANIMALS
from tools.builtin_data.talk import Talk
from tools.builtin_data.tastes import LIKES
from tools.builtin_data.your_facts import BY_KEY, FAVOURITES, OWNABLE, OWNED

OWNERS = (*KIN, *PETS, *OWNABLE)
LATER = (
    "my name is [actually|really|in fact|not that, it is] {v}",
    "[my real name is|my full name is|call me|better say] {v}",
    *CORRECTIONS,
)


def owner(rng: Random) -> str:
    """Who or what has a name, often an animal of any kind."""
    return rng.choice(OWNERS if rng.random() < 0.5 else (*things.ANIMALS, *WILD_ANIMALS))


def pair(rng: Random) -> list[Fact]:
    """Two facts of the same kind."""
    roll = rng.random()
    if roll < 0.45:
        return [called(noun) for noun in (owner(rng), owner(rng))]
    if roll < 0.60:
        of = rng.choice((age_of, home_of, job_of, likes_of))
        return [of(noun) for noun in rng.sample(WITH_A_LIFE, 2)]
    if roll < 0.75:
        return rng.sample(FAVOURITES, 2)
    if roll < 0.85:
        return rng.sample(OWNED, 2)
    thing = rng.choice(("number", "car", "hobby", "code", "team", "nickname"))
    value = number_text if thing in ("number", "code") else names.one_word_name
    whose = [f"{rng.choice(WITH_A_LIFE)}'s {thing}", thing if rng.random() < 0.6 else f"{rng.choice(KIN)}'s {thing}"]
    rng.shuffle(whose)
    return [BY_KEY.get(what) or possession(what, value) for what in whose]


def two_alike(talk: Talk) -> None:
    """Two facts of a kind, told in one message or in two, and one or both of them asked for."""
    rng = talk.rng
    facts = pair(rng)
    if facts[0].key == facts[1].key or {fact.key for fact in facts} & set(talk.facts):
        return
    if rng.random() < 0.35:
        memory.tell_at_once(talk, facts)
    else:
        for fact in facts:
            memory.tell_plainly(talk, fact)
    ask_for(talk, facts)


def ask_for(talk: Talk, facts: list[Fact]) -> None:
    """One or both of these, in any order."""
    asked = talk.rng.sample(facts, talk.rng.choice((1, 1, 2)))
    for fact in asked:
        say_known(talk, fact)


def two_names(talk: Talk) -> None:
    """`i'm mia. my sister's name is nia`, then either name."""
    rng = talk.rng
    own = names.one_word_name(rng)
    values = [own, names.similar_name(rng, own) if rng.random() < 0.7 else names.one_word_name(rng)]
    rng.shuffle(values)
    facts = [NAME, called(owner(rng))]
    patterns = [rng.choice(INTRODUCTIONS).replace("{v}", "{v0}"), rng.choice(facts[1].tell[:4]).replace("{v}", "{v1}")]
    for fact, value in zip(facts, values, strict=True):
        memory.told(talk, fact.key, value)
    if rng.random() < 0.2:
        patterns.reverse()
    asked = ask(rng, (JOIN.join(patterns),), {"v0": values[0], "v1": values[1]}, wrap=False)
    about = facts[1].about.replace("{v}", values[1])
    talk.say("tell", asked, f"Nice to meet you, {values[0]}! I will remember that {about}.")
    ask_for(talk, facts)


def two_new_words(talk: Talk) -> None:
    """A name and a favourite in one message, both of words nobody knows: neither may take a piece of the other."""
    rng = talk.rng
    facts = [NAME, rng.choice(FAVOURITES[:4])]
    first, second = (rng.choice((nonsense_word, rough, rough, repeated))(rng) for _ in facts)
    if rng.random() < 0.3:
        second = first[:2] + second
    memory.tell_at_once(talk, facts, [first.capitalize() if rng.random() < 0.5 else first, second])
    if rng.random() < 0.4:
        tell(talk, rng.choice([fact for fact in OWNED if fact.key != "nickname"]))
    ask_for(talk, facts)


def who_is(talk: Talk) -> None:
    """One or two names told, and one of them asked about: `who is Imke?`"""
    rng = talk.rng
    nouns = rng.sample((*KIN, *KIN, *PETS), rng.choice((1, 2, 2)))
    facts = [called(noun) for noun in dict.fromkeys(nouns)]
    if {fact.key for fact in facts} & set(talk.facts):
        return
    values = [names.one_word_name(rng) for _ in facts]
    if len(set(values)) < len(values):
        return
    if len(facts) > 1 and rng.random() < 0.6:
        memory.tell_at_once(talk, facts, values)
    else:
        for fact, value in zip(facts, values, strict=True):
            memory.tell_plainly(talk, fact, value)
    for fact in rng.sample(facts, rng.choice((1, len(facts)))):
        query = ("who is {v}[ again|]?", "[and |]who's {v}?", "do you [know|remember] who {v} is?", "{v} is who?")
        asked = ask(rng, query, {"v": talk.facts[fact.key]})
        talk.say("recall", asked, sentence(fact.about.replace("{v}", talk.facts[fact.key])))


def like_what_was_said(talk: Talk) -> None:
    """A name that begins as the message before it: `lol`, then `my cat is called lola`."""
    rng = talk.rng
    exchange = smalltalk.BY_KEY[rng.choice(("lol", "hello", "ok", "thanks", "bye", "yes", "no"))]
    said = ask(rng, exchange.patterns, wrap=False)
    talk.say(f"talk:{exchange.key}", said, answer(rng, exchange.answers))
    word = said.split()[0].strip(",.!?").lower()
    if not word.isalpha():
        return
    ends = (nonsense_word(rng, 1), rng.choice("aeiouy"), rng.choice(("la", "na", "ri", "bert", "ton")))
    name = word + rng.choice(ends)
    fact = rng.choice((NAME, called(owner(rng))))
    memory.tell_plainly(talk, fact, name if rng.random() < 0.6 else name.capitalize())
    say_known(talk, fact)


def liking_beside_name(talk: Talk) -> None:
    """`i'm mia and i like chess`, and what is liked is asked for after another question about it."""
    rng = talk.rng
    values = [NAME.value(rng), LIKES.value(rng)]
    memory.tell_at_once(talk, [NAME, LIKES], values)
    if rng.random() < 0.5:
        asked = ask(rng, ("do you [like|love|enjoy] {w} [too|]?", "what do you think of {w}?"), {"w": values[1]})
        talk.say("talk:feelings", asked, answer(rng, smalltalk.BY_KEY["feelings"].answers))
    say_known(talk, rng.choice((NAME, LIKES, LIKES)))


def in_a_row(talk: Talk) -> None:
    """`im tim, 34, from berlin`"""
    rng = talk.rng
    values = {"v": NAME.value(rng), "a": AGE.value(rng), "c": FROM.value(rng)}
    for key, slot in (("name", "v"), ("age", "a"), ("origin", "c")):
        memory.told(talk, key, values[slot])
    asked = ask(rng, ("[i'm|im|i am|my name is] {v}, {a}[, | and ]from {c}", "{v}, {a}, from {c}"), values, wrap=False)
    about = "I will remember that you are {a} years old and that you are from {c}."
    talk.say("tell", asked, answer(rng, ("Nice to meet you, {v}! " + about,), values))


def nickname(talk: Talk) -> None:
    """Two names in a message, of which one is to be used."""
    rng = talk.rng
    name = NAME.value(rng)
    memory.told(talk, "name", name)
    asked = ask(rng, NICKNAMES, {"v": name, "w": NAME.value(rng)}, wrap=False)
    talk.say("tell", asked, answer(rng, NAME.told, {"v": name}))


def corrected(talk: Talk) -> None:
    """A name told, corrected to one like it at once or after something else, and asked for."""
    rng = talk.rng
    tell(talk, NAME)
    if rng.random() < 0.4:
        memory.tell_plainly(talk, rng.choice(FAVOURITES))
    old = talk.facts["name"]
    new = names.similar_name(rng, old) if rng.random() < 0.5 and old.isalpha() and len(old) > 1 else NAME.value(rng)
    memory.told(talk, "name", new)
    slots = {"v": new, "w": old}
    talk.say("tell", ask(rng, LATER, slots, wrap=False), answer(rng, CORRECTED, slots))
    if rng.random() < 0.5:
        memory.tell_plainly(talk, rng.choice(FAVOURITES))
    if rng.random() < 0.7:
        say_known(talk, NAME)
