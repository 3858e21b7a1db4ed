"""The same questions to two servers in turns: many answers at once, and many new prompts."""

import statistics
from collections.abc import Awaitable, Callable

import httpx

from benchmarks.http_answers import ANSWER_TOKENS, ask_at_once, p95
from benchmarks.new_text import new_text
from benchmarks.one_server import QUESTION

STREAMS = 8
NEW_TOKENS = 2048
Measure = Callable[[httpx.AsyncClient], Awaitable[float]]


async def streams(ours: httpx.AsyncClient, theirs: httpx.AsyncClient, rounds: int) -> None:
    """Tokens a second of several answers at once, from the questions to the last token. None ends before its length."""
    end = (await ours.get("/tokenizer_info")).json()["eos_token"]
    (end_id,) = (await ours.post("/tokenize", json={"content": end, "add_special": False})).json()["tokens"]
    questions = [f"{QUESTION} This is question {number}." for number in range(STREAMS)]

    async def rate(client: httpx.AsyncClient) -> float:
        heard = await ask_at_once(client, questions, ANSWER_TOKENS, logit_bias={str(end_id): -100})
        return sum(one.usage["completion_tokens"] for one in heard) / max(one.end for one in heard)

    ratio, own, other = await in_turns(rate, ours, theirs, rounds)
    print(f"{STREAMS} streams                      {own:.0f} and llama-server {other:.0f} tokens/s: {ratio:.2f} x"
          " (wanted: 1.3)")  # fmt: skip


async def new_prompts(ours: httpx.AsyncClient, theirs: httpx.AsyncClient, rounds: int) -> None:
    """Seconds until 19 of 20 of several new prompts that come at once have their first token."""

    async def slowest(client: httpx.AsyncClient) -> float:
        questions = [await new_text(client, NEW_TOKENS) for _ in range(STREAMS)]
        return p95([one.first for one in await ask_at_once(client, questions, 8)])

    ratio, own, other = await in_turns(slowest, ours, theirs, rounds)
    print(f"{STREAMS} new prompts of {NEW_TOKENS:,} tokens   first token, 95 %: {own:.1f} and llama-server"
          f" {other:.1f} s: {ratio:.2f} x (wanted: at most 1)")  # fmt: skip


async def in_turns(
    one: Measure, ours: httpx.AsyncClient, theirs: httpx.AsyncClient, rounds: int
) -> tuple[float, float, float]:
    """Medians of the ratio of each round, of our figure and of theirs."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            pairs.append((await one(ours), await one(theirs)))
        else:
            other = await one(theirs)
            pairs.append((await one(ours), other))
    return (
        statistics.median(own / other for own, other in pairs),
        statistics.median(own for own, _ in pairs),
        statistics.median(other for _, other in pairs),
    )
