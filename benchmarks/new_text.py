"""Texts that are in no cache."""

import random

import httpx

WORDS = (
    "boiler",
    "river",
    "lantern",
    "seven",
    "marble",
    "always",
    "harbour",
    "green",
    "engine",
    "under",
    "winter",
    "paper",
)


async def new_text(client: httpx.AsyncClient, tokens: int) -> str:
    """A text of about that many tokens which is in no cache."""
    words = random.choices(WORDS, k=tokens)
    answer = await client.post("/tokenize", json={"content": " ".join(words)})
    return " ".join(words[: tokens * tokens // len(answer.json()["tokens"])])
