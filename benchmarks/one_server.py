"""What one server makes of questions: first bytes, next turns, agents with a prefix in common, a long prompt beside."""

import asyncio
import statistics
import time

import httpx
import numpy as np

from benchmarks.http_answers import ANSWER_TOKENS, Heard, ask, ask_at_once, p95
from benchmarks.new_text import new_text

QUESTION = "Explain in detail how a steam engine works, from the boiler to the wheels."
AGENTS = 4
LONG_TOKENS = 2400


async def first_bytes(client: httpx.AsyncClient, rounds: int) -> None:
    """Headers come when the prompt is found right: rendered, encoded, short enough. How much later lies between two
    bounds: what rendering and encoding leave, the way to the engine among it, and what counting the tokens leaves,
    which finds the same, and whose answer has the same way back. The model is named, as clients do."""
    name = (await client.get("/v1/models")).json()["data"][0]["id"]
    for text in (QUESTION, await new_text(client, LONG_TOKENS)):
        counts, heard = [], []
        for number in range(2 * rounds):
            counts.append(await count(client, f"{text} {2 * number}", name))
            heard.append(await ask(client, f"{text} {2 * number + 1}", tokens=1, model=name))
        after = [1000 * (one.headers - counted) for one, counted in zip(heard, counts, strict=True)]
        own = [1000 * one.headers - one.took("render", "tokenize") for one in heard]
        print(f"headers of {heard[0].usage['prompt_tokens']:,} tokens          "
              f"{1000 * statistics.median(one.headers for one in heard):.1f} ms after the request;"
              f" {statistics.median(own):.1f} without rendering and encoding,"
              f" {statistics.median(after):.1f} more than counting takes (wanted, after validation: 5)")  # fmt: skip


async def count(client: httpx.AsyncClient, text: str, model: str) -> float:
    """Seconds that it takes to count the tokens of a question."""
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    asked = time.perf_counter()
    (await client.post("/v1/messages/count_tokens", json=body)).raise_for_status()
    return time.perf_counter() - asked


async def cached_turns(client: httpx.AsyncClient, rounds: int) -> None:
    """A conversation that goes on: what was said is not read again; what is new is, at the pace of any prompt."""
    seconds, steps, reads, computed, shares, turns = [], [], [], [], [], []
    messages = [{"role": "user", "content": QUESTION}]
    for number in range(rounds + 1):
        heard = await ask(client, messages)
        if number:
            seconds.append(heard.first)
            steps.append(statistics.median(heard.gaps))
            reads.append(heard.read_ms)
            computed.append(heard.computed)
            shares.append(1 - heard.computed / heard.usage["prompt_tokens"])
            turns.append(heard)
        messages += [
            {"role": "assistant", "content": heard.text},
            {"role": "user", "content": f"And then, point {number}?"},
        ]
    first, step, read = (statistics.median(figures) for figures in (seconds, steps, reads))
    rest = statistics.median(1000 * one - reading for one, reading in zip(seconds, reads, strict=True))
    print(f"next turn: first token         {1000 * first:.0f} ms, a step and {1000 * (first - step):.0f} ms;"
          f" {read:.0f} read its {statistics.median(computed):.0f} new tokens, all else takes {rest:.0f} (wanted: 60);"
          f" {100 * statistics.median(shares):.0f} % cached")  # fmt: skip
    if "render_ms" in turns[0].figures:
        parts = ("load", "render", "tokenize", "queue", "restore")
        told = (f"{part} {statistics.median(turn.took(part) for turn in turns):.1f}" for part in parts)
        print(f"    of all else                {', '.join(told)} ms; the rest is HTTP and pipes")


async def shared_prefix(client: httpx.AsyncClient, tokens: int) -> None:
    """Several agents at once on one new prefix: it is computed once."""
    prefix = await new_text(client, tokens)
    heard = await ask_at_once(client, [f"{prefix} Agent {number}?" for number in range(AGENTS)], tokens=8)
    computed, once = sum(one.computed for one in heard), heard[0].usage["prompt_tokens"]
    print(f"{AGENTS} agents, {once:,} tokens alike   {computed:,} computed: {computed / once:.2f} x one (wanted: 1.05);"
          f" the last is done after {max(one.end for one in heard):.1f} s")  # fmt: skip


async def beside_a_long_prompt(client: httpx.AsyncClient, tokens: int) -> None:
    """The pace of one's own answer while somebody else's long prompt is read, and how fast that is read meanwhile."""
    own = {"x-localrun-priority": "high"}
    alone = await ask(client, QUESTION, 2 * ANSWER_TOKENS, own)
    reading = asyncio.ensure_future(ask(client, await new_text(client, tokens), 1))
    usual_progress, reading_alone = await progress(client, reading), await reading
    reading = asyncio.ensure_future(ask(client, await new_text(client, tokens), 1))
    watching = asyncio.ensure_future(progress(client, reading))
    await asyncio.sleep(0.2)
    begun = time.perf_counter()
    beside = await ask(client, QUESTION, 2 * ANSWER_TOKENS, own)
    ended = time.perf_counter()
    foreign, seen = await reading, await watching
    usual, most = p95(beside.gaps) / p95(alone.gaps), max(beside.gaps) / max(alone.gaps)
    print(f"own pace beside {foreign.usage['prompt_tokens']:,} tokens   95 %: {usual:.1f} x alone (wanted: 2.5),"
          f" most: {most:.1f} x (wanted: 4); took {foreign.first:.1f} s, alone {reading_alone.first:.1f}")  # fmt: skip
    if meanwhile := [(moment, read) for moment, read in seen if begun <= moment <= ended]:
        (start, first), (end, last) = meanwhile[0], meanwhile[-1]
        share = (seconds_at(usual_progress, last) - seconds_at(usual_progress, first)) / (end - start)
        print(f"    which is read meanwhile at {share:.2f} of its rate alone (wanted: 0.25), {last - first:,} tokens")


async def progress(client: httpx.AsyncClient, reading: "asyncio.Future[Heard]") -> list[tuple[float, int]]:
    """Moments, and how much of a prompt was read by then, until it is answered. Only our server tells."""
    seen = []
    while not reading.done():
        answer = await client.get("/v1/localrun/requests")
        if answer.is_success and (rows := answer.json()["requests"]):
            seen.append((time.perf_counter(), rows[0]["read_tokens"]))
        await asyncio.sleep(0.2)
    return seen


def seconds_at(seen: list[tuple[float, int]], read: int) -> float:
    """When so many tokens had been read, between two looks in proportion."""
    first_seen = {count: moment for moment, count in reversed(seen)}
    counts = sorted(first_seen)
    return float(np.interp(read, counts, [first_seen[count] for count in counts]))
