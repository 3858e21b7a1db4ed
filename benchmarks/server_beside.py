"""What a server costs beside `localrun run`, what it saves, and how it does beside llama.cpp's.

    python -m benchmarks.server_beside MODEL.gguf [--rounds 7] [--ctx 8192] [--prefix 4096] [--long 4096]
                                       [--threads N] [--llama-server FILE] [--parts decode turns …]

The server is a process of its own, this one is its client. Runs and requests take turns; printed are medians, of pairs
where two things are compared. `--prefix` is what agents share, `--long` the prompt of somebody else, and `--ctx` has to
hold both. llama-server (`build_peers.py --server` says where it is) is started with the same file, as many threads, and
slots that hold what is asked: of two servers that are up, only one is asked at a time.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import httpx
import numpy as np

from benchmarks.http_answers import ANSWER_TOKENS, Heard, ask, ask_at_once
from benchmarks.kv_quality import machine
from benchmarks.llama_server import llama_server

QUESTION = "Explain in detail how a steam engine works, from the boiler to the wheels."
AGENTS = 4
STREAMS = 8
NEW_TOKENS = 2048
LONG_TOKENS = 2400
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
ROOM = 1024  # tokens of a slot beyond the prompt
COMMAND = (sys.executable, "-m", "localrun")
PARTS = ("decode", "turns", "agents", "long", "streams")
Measure = Callable[[httpx.AsyncClient], Awaitable[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ctx", type=int, default=8192)
    parser.add_argument("--prefix", type=int, default=4096, help="tokens that agents share, about")
    parser.add_argument("--long", type=int, default=4096, help="tokens of a foreign prompt, about")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--llama-server", metavar="FILE", help="measure it, too")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure; usually all")
    options = parser.parse_args()
    print(machine())
    if "decode" in options.parts:
        asyncio.run(decode(options))
    if set(options.parts) != {"decode"} or options.llama_server:
        with serving(options.model, held(options)) as address:
            asyncio.run(measure(address, options))


def held(options: argparse.Namespace) -> list[str]:
    """How our model is loaded."""
    return ["--ctx", str(options.ctx), "--threads", str(options.threads)]


@contextmanager
def serving(model: str, how: list[str]) -> Iterator[str]:
    """The address of a server of that model, until the block is left."""
    command = [*COMMAND, "serve", model, "--port", "0", "--jsonl", "--no-swap", *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        try:
            told = json.loads(process.stdout.readline())
            if "error" in told:
                raise SystemExit(f"{told['error']['message']}; {told['error']['hint']}")
            yield told["url"]
        finally:
            process.terminate()


async def measure(address: str, options: argparse.Namespace) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=None) as client:
        await ask(client, QUESTION, tokens=8)
        if "turns" in options.parts:
            await first_bytes(client, options.rounds)
            await cached_turns(client, options.rounds)
        if "agents" in options.parts:
            await shared_prefix(client, options.prefix)
        if "long" in options.parts:
            await beside_a_long_prompt(client, options.long)
        if options.llama_server:
            await beside_llama_server(client, options)


async def decode(options: argparse.Namespace) -> None:
    """The same answer by `localrun run` and by a server. Both are started anew for each pair: where a process happens
    to have its memory makes steps a few per cent faster or slower until it ends."""
    ratios, gaps = [], []
    for number in range(options.rounds):
        rates = {}
        for is_server in (True, False) if number % 2 else (False, True):
            if is_server:
                heard = await ask_new_server(options)
                rates[is_server], gaps = heard.rate, gaps + heard.gaps
            else:
                rates[is_server] = await run_alone(options)
        ratios.append(rates[True] / rates[False])
    print(f"decode: server ÷ run           {statistics.median(ratios):.3f} ({options.rounds} pairs, {min(ratios):.2f}"
          f" to {max(ratios):.2f}; wanted: 0.98, or 0.97 with pieces of 30 ms)")  # fmt: skip
    print(f"between pieces of text         median {1000 * statistics.median(gaps):.1f} ms, 95 %"
          f" {1000 * p95(gaps):.1f} ms, most {1000 * max(gaps):.1f} ms")  # fmt: skip


async def ask_new_server(options: argparse.Namespace) -> Heard:
    """The answer of a server that was started for it, and has answered once before."""
    with serving(options.model, held(options)) as address:
        async with httpx.AsyncClient(base_url=address, timeout=None) as client:
            await ask(client, QUESTION, tokens=8)
            return await ask(client, QUESTION)


async def run_alone(options: argparse.Namespace) -> float:
    command = [*COMMAND, "run", "-m", options.model, "--json", "--no-stdin", "--seed", "1"]
    command += ["--max-tokens", str(ANSWER_TOKENS), *held(options), QUESTION]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return float(json.loads(out)["decode_tps"])


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


async def beside_llama_server(ours: httpx.AsyncClient, options: argparse.Namespace) -> None:
    """The same questions to both, and what llama-server makes of agents and of a long prompt."""
    start = options.llama_server, options.model, options.threads
    if "streams" in options.parts:
        with llama_server(*start, STREAMS, NEW_TOKENS + ROOM) as address:
            async with httpx.AsyncClient(base_url=address, timeout=None) as theirs:
                await streams(ours, theirs, options.rounds)
                await new_prompts(ours, theirs, options.rounds)
    if "turns" in options.parts:
        with llama_server(*start, 1, NEW_TOKENS + ROOM) as address:
            async with httpx.AsyncClient(base_url=address, timeout=None) as theirs:
                print("llama-server:")
                await cached_turns(theirs, options.rounds)
    if "agents" in options.parts:
        with llama_server(*start, AGENTS, options.prefix + ROOM) as address:
            async with httpx.AsyncClient(base_url=address, timeout=None) as theirs:
                print("llama-server:")
                await shared_prefix(theirs, options.prefix)
    if "long" in options.parts:
        with llama_server(*start, 2, options.long + ROOM) as address:
            async with httpx.AsyncClient(base_url=address, timeout=None) as theirs:
                print("llama-server:")
                await beside_a_long_prompt(theirs, options.long)


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


async def new_text(client: httpx.AsyncClient, tokens: int) -> str:
    """A text of about that many tokens which is in no cache."""
    words = random.choices(WORDS, k=tokens)
    answer = await client.post("/tokenize", json={"content": " ".join(words)})
    return " ".join(words[: tokens * tokens // len(answer.json()["tokens"])])


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


if __name__ == "__main__":
    main()
