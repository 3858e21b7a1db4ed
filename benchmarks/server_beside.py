"""What a server costs beside `localrun run`, and what it saves.

    python -m benchmarks.server_beside MODEL.gguf [--rounds 7] [--ctx 8192] [--prefix 4096] [--threads N]

The server is a process of its own, this one is its client. Runs and requests take turns; printed are medians, of pairs
where two things are compared.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.kv_quality import machine

QUESTION = "Explain in detail how a steam engine works, from the boiler to the wheels."
ANSWER_TOKENS = 96
AGENTS = 4
COMMAND = (sys.executable, "-m", "localrun")


@dataclass
class Heard:
    """One streamed answer: seconds since it was asked for, of the headers and of each piece of text."""

    headers: float = 0.0
    pieces: list[float] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Tokens a second from the first piece to the last, as the client sees them."""
        return (self.usage["completion_tokens"] - 1) / (self.pieces[-1] - self.pieces[0])

    @property
    def gaps(self) -> list[float]:
        return [b - a for a, b in zip(self.pieces, self.pieces[1:], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ctx", type=int, default=8192)
    parser.add_argument("--prefix", type=int, default=4096, help="tokens that agents share, about")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    held = ["--ctx", str(options.ctx), *(["--threads", str(options.threads)] if options.threads else [])]
    print(machine())
    with serving(options.model, held) as address:
        asyncio.run(measure(address, options, held))


@contextmanager
def serving(model: str, held: list[str]) -> Iterator[str]:
    """The address of a server of that model, until the block is left."""
    command = [*COMMAND, "serve", model, "--port", "0", "--jsonl", "--no-swap", *held]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


async def measure(address: str, options: argparse.Namespace, held: list[str]) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=600) as client:
        await ask(client, QUESTION, tokens=8)
        await decode(client, options, held)
        await first_bytes(client, options.rounds)
        await cached_turns(client, options.rounds)
        await shared_prefix(client, options.prefix)
        await beside_a_long_prompt(client, options.prefix)


async def decode(client: httpx.AsyncClient, options: argparse.Namespace, held: list[str]) -> None:
    """The same answer by `localrun run` and by the server."""
    ratios, gaps = [], []
    for number in range(options.rounds):
        order = (run_alone, by_server) if number % 2 else (by_server, run_alone)
        rates = {}
        for one in order:
            rates[one] = await one(client, options.model, held, gaps)
        ratios.append(rates[by_server] / rates[run_alone])
    print(f"decode: server ÷ run           {statistics.median(ratios):.3f} ({options.rounds} pairs; wanted: 0.98)")
    ordered = sorted(gaps)
    print(f"between pieces of text         median {1000 * statistics.median(gaps):.1f} ms, 95 %"
          f" {1000 * ordered[int(0.95 * len(ordered))]:.1f} ms, most {1000 * ordered[-1]:.1f} ms")  # fmt: skip


async def run_alone(client: httpx.AsyncClient, model: str, held: list[str], gaps: list[float]) -> float:
    command = [*COMMAND, "run", "-m", model, "--json", "--no-stdin", "--seed", "1", "--max-tokens", str(ANSWER_TOKENS)]
    process = await asyncio.create_subprocess_exec(*command, *held, QUESTION, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return float(json.loads(out)["decode_tps"])


async def by_server(client: httpx.AsyncClient, model: str, held: list[str], gaps: list[float]) -> float:
    heard = await ask(client, QUESTION)
    gaps += heard.gaps
    return heard.rate


async def first_bytes(client: httpx.AsyncClient, rounds: int) -> None:
    """Headers come when the prompt is found right, so this holds rendering and encoding, too."""
    seconds = [(await ask(client, f"{QUESTION} {number}", tokens=1)).headers for number in range(2 * rounds)]
    print(f"headers after the request      {1000 * statistics.median(seconds):.1f} ms (wanted: 5 after validation)")


async def cached_turns(client: httpx.AsyncClient, rounds: int) -> None:
    """A conversation that goes on: what was said is not read again."""
    seconds, steps, shares = [], [], []
    messages = [{"role": "user", "content": QUESTION}]
    for number in range(rounds):
        heard, said = await converse(client, messages)
        if number:
            seconds.append(heard.pieces[0])
            steps.append(statistics.median(heard.gaps))
            shares.append(heard.figures["cached"] / heard.usage["prompt_tokens"])
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": f"And then, point {number}?"}]
    over = 1000 * (statistics.median(seconds) - statistics.median(steps))
    print(f"next turn: first token         {1000 * statistics.median(seconds):.0f} ms, a step and {over:.0f} ms"
          f" (wanted: 60), {100 * statistics.median(shares):.0f} % cached")  # fmt: skip


async def shared_prefix(client: httpx.AsyncClient, tokens: int) -> None:
    """Several agents at once on one new prefix: it is computed once."""
    prefix = f"{time.time()} " + "The quick brown fox jumps over the lazy dog by the river. " * (tokens // 13)
    heard = await asyncio.gather(*(ask(client, f"{prefix} Agent {number}?", tokens=8) for number in range(AGENTS)))
    computed = sum(one.figures["computed"] for one in heard)
    once = heard[0].usage["prompt_tokens"]
    print(f"{AGENTS} agents, {once:,} tokens alike   {computed:,} computed: {computed / once:.2f} x one (wanted: 1.05)")


async def beside_a_long_prompt(client: httpx.AsyncClient, tokens: int) -> None:
    """The pace of one's own answer while somebody else's long prompt is read."""
    alone = await ask(client, QUESTION, tokens=2 * ANSWER_TOKENS, headers={"x-localrun-priority": "high"})
    prompt = f"{time.time()} " + "Never odd or even, said the king of the hill to the moon. " * (tokens // 14)
    reading = asyncio.ensure_future(ask(client, prompt, tokens=1, headers={"x-localrun-priority": "normal"}))
    await asyncio.sleep(0.2)
    beside = await ask(client, QUESTION, tokens=2 * ANSWER_TOKENS, headers={"x-localrun-priority": "high"})
    foreign = await reading
    quick, slow = sorted(alone.gaps), sorted(beside.gaps)
    p95 = slow[int(0.95 * len(slow))] / quick[int(0.95 * len(quick))]
    print(f"own pace beside {foreign.usage['prompt_tokens']:,} tokens   95 %: {p95:.1f} x alone (wanted: 2.5),"
          f" most: {slow[-1] / quick[-1]:.1f} x (wanted: 4); they took {foreign.pieces[0]:.1f} s")  # fmt: skip


async def ask(
    client: httpx.AsyncClient, text: str, tokens: int = ANSWER_TOKENS, headers: dict[str, str] | None = None
) -> Heard:
    heard, _ = await converse(client, [{"role": "user", "content": text}], tokens, headers)
    return heard


async def converse(
    client: httpx.AsyncClient,
    messages: list[dict[str, str]],
    tokens: int = ANSWER_TOKENS,
    headers: dict[str, str] | None = None,
) -> tuple[Heard, str]:
    """One streamed answer, and its text."""
    body = {"messages": messages, "stream": True, "max_tokens": tokens, "seed": 1, "stream_options": USAGE}
    heard, said, asked = Heard(), "", time.perf_counter()
    async with client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
        heard.headers = time.perf_counter() - asked
        async for chunk in chunks(response):
            heard.figures = chunk.get("localrun") or heard.figures
            heard.usage = chunk.get("usage") or heard.usage
            if text := "".join(choice["delta"].get("content") or "" for choice in chunk["choices"]):
                heard.pieces.append(time.perf_counter() - asked)
                said += text
    return heard, said


USAGE = {"include_usage": True}


async def chunks(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    response.raise_for_status()
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


if __name__ == "__main__":
    main()
