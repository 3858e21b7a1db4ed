# ruff: noqa: E501 - patterns and sentences stand on one line each
"""A thing to remember: how people tell it, how they ask for it later, and how it is said back to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tools.builtin_data import names
from tools.builtin_data.grammar import article


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


def favourite(thing: str, value: Callable[[Random], str], weight: float = 0.5) -> Fact:
    spelt = thing.replace("colour", "colo[u|]r")
    return Fact(
        key=f"favourite {thing}",
        tell=(
            f"my [favourite|favorite|fav|favourite|favorite] {spelt} is {{v}}",
            f"my favo[u|]rite {spelt} is [sort of|kind of|probably|definitely|of course|clearly|actually|now|still] {{v}}",
            f"{{v}} is my favo[u|]rite {spelt}",
            f"the {spelt} i like [best|most] is {{v}}",
            f"[hi|by the way|also|oh and|btw|and|actually|remember:|remember that|please remember that|you should know that], my favo[u|]rite {spelt} is {{v}}",
            f"my favo[u|]rite {spelt}[:| would be| has always been|, it is| must be] {{v}}",
            f"i like the {spelt} {{v}} [best|most]",
            f"[my|me] fav[ourite|orite|e|s|] {spelt} [is|=|:|iz] {{v}}",
            f"[as for|speaking of] {spelt}s, {{v}} is [the best|my favo[u|]rite]",
            f"[if you ask me|for me], {{v}} is the best {spelt}",
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
            f"[so|ok|now|hey][, | ][which|what] is my favo[u|]rite {spelt}?",
            f"which {spelt} is [the best|best] for me?",
            f"i told you my favo[u|]rite {spelt}[, |. ][what|which] [was|is] it?",
            f"did i [tell you|mention] my favo[u|]rite {spelt}?",
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
            f"[you should know|i want you to know|fyi|just so you know][, |: | that ]my {thing} is {{v}}",
            f"[i have|i've got] a new {thing}: {{v}}",
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
            f"[so|ok|now|hey][, | ]what is my {thing} [again|]?",
            f"i told you my {thing}[, |. ]what [was|is] it?",
            f"which {thing} [do i have|did i tell you|did i mention|is mine]?",
        ),
        about=f"your {thing} is {{v}}",
        unknown=f"You have not told me your {thing} yet.",
        value=value,
        weight=weight,
    )


def called(noun: str, weight: float = 0.5) -> Fact:
    """The name of the user's dog, sister, boat: of whoever or whatever `noun` is."""
    return Fact(
        key=f"{noun}'s name",
        tell=(
            f"[i have|i've got|we have|there is] {article(noun)}[ named| called|, called|, named] {{v}}",
            f"[my|our] {noun} is [called|named] {{v}}",
            f"my {noun}['s|s] name is {{v}}",
            f"the name of my {noun} is {{v}}",
            f"{{v}} is my {noun}",
            f"{{v}} is [the name of my {noun}|what we call our {noun}|my {noun}'s name]",
            f"[i have|i've got|we have] {article(noun)}[, |. ][his|her|its|the] name is {{v}}",
            f"[my|our] {noun} {{v}} is [cute|old|lovely|asleep|hungry|great|the best|very lazy|a sweetheart|sick|at home]",
            f"[we|i] [call|named] [my|our] {noun} {{v}}",
            f"[this is|meet|say hello to] my {noun} {{v}}",
            f"i [love|miss|like|am with|talked to] my {noun} {{v}}",
            f"my {noun} goes by {{v}}",
        ),
        query=(
            f"what is [my {noun}'s name|the name of my {noun}|my {noun} called]?",
            f"[what's|whats|what is] my {noun}['s|s] name?",
            f"how is my {noun} called?",
            f"do you [still |][remember|know] [my {noun}'s name|the name of my {noun}|what my {noun} is called]?",
            f"what is my {noun} [named|called]?",
            f"who is my {noun}?",
            f"[and|so|ok|hey][, | ][what is|what's|whats|how is] [my {noun}'s name|my {noun} called]?",
            f"[tell me|say|remind me of] [my {noun}'s name|the name of my {noun}]",
            f"what did i [call|name] my {noun}?",
            f"[what's|whats] the name of my {noun}?",
            f"do you [remember|know] what my {noun}['s|s] name is?",
            f"what did i say my {noun} is called?",
            f"[what|which] name [does my {noun} have|did i give my {noun}]?",
            f"and my {noun}?",
        ),
        about=f"your {noun} is called {{v}}",
        unknown=f"You have not told me what your {noun} is called.",
        value=names.person_name,
        weight=weight,
    )


def open_fact(key: str) -> Fact:
    """The fact of a key that is in no list: the user's own words stand in it."""
    noun = key.removesuffix("'s name")
    return called(noun) if noun != key else possession(key, lambda rng: "")
