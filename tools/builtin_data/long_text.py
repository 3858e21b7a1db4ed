# ruff: noqa: E501 - patterns stand on one line each
"""Paragraphs pasted into the chat, mostly to be shortened: news, reports, mails and tales that nobody needs to read."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import capital, expand
from tools.builtin_data.outside_words import COUNTRIES, PEOPLE, SENTENCES, THINGS

TASKS = (
    "",
    "",
    "",
    "[summarize|summarise|shorten|please sum up|sum up|condense|please shorten|rewrite|translate|correct|proofread|explain] [this|the text|the following|the text below|this text|this for me|this article|]: ",
    "[what is this about|what does this say|what are the main points|can you shorten this|is this true|tl;dr|what do you think of this|give me the gist]? ",
    "here is [a text|an article|my essay|an email|the report] to [read|shorten|check]: ",
)
LATER = (" [Summarize this|Please shorten it|What is the main point?|tl;dr|Give me a summary|What does it say?]",)
CLAUSES = (
    "[the|a] [council|company|school|hospital|team|ministry|museum|club|jury|crew] [announced|decided|said|reported|promised|denied] [on monday|last night|in spring|this year|after the meeting|in a letter] that [the old station|the new bridge|its main office|the swimming pool|the contract|the plan] [would be closed|was sold|had failed|costs twice as much|will open soon|needs repair]",
    "[some|many|most|a few|nearly all] [residents|workers|parents|experts|visitors|farmers|students] [complained about|welcomed|did not like|were surprised by|wrote about|paid for] [the noise|the high prices|the change|{thing}|the long wait|the decision]",
    "[dear|hello] [mr smith|mrs jones|all|team|customer], [thank you for your letter|i am writing about my order|please find the invoice below|we are sorry for the delay|the meeting was moved to friday]",
    "in [1848|1912|1969|1989|2003|2015] [{person}|a young engineer|a group of monks|an unknown painter] [moved to|left|travelled through|wrote about|returned to] {country}",
    "[however|later|at first|in the end|meanwhile|as a result|on the other hand], [nobody|the mayor|the owner|the police|the author|the river|the price] [agreed|changed much|came back|could explain it|was found|lost a word about it]",
    "{thing} [has been|was|became|is] [known|used|studied|loved|feared|forgotten] [for centuries|in {country}|by many people|since the war|more than ever]",
    "[about|almost|more than|only] [12|40|300|7000|two million|half of the] [people|houses|trees|visitors|cars|votes] [were counted|came|are needed|were lost|arrived on time|stayed away]",
)


def long_text(rng: Random) -> str:
    """Several sentences at once, with or without something to do with them."""
    text = ". ".join(capital(sentence(rng)) for _ in range(count(rng))) + "."
    if rng.random() < 0.15:
        return text + expand(rng, rng.choice(LATER))
    return capital(expand(rng, rng.choice(TASKS)) + " ").lstrip() + text


def count(rng: Random) -> int:
    return rng.randint(3, 6) if rng.random() < 0.7 else rng.randint(7, 25)


def sentence(rng: Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(SENTENCES)
    clause = expand(rng, rng.choice(CLAUSES))
    for slot, choices in (("thing", THINGS), ("person", PEOPLE), ("country", COUNTRIES)):
        clause = clause.replace(f"{{{slot}}}", rng.choice(choices))
    return clause
