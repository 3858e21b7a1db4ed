"""What a server saves, and how it does beside llama.cpp's. What it costs is measured by server_decode.py.

    python -m benchmarks.server_beside MODEL.gguf [--rounds 7] [--ctx 8192] [--prefix 4096] [--long 4096]
                                       [--threads N] [--llama-server FILE] [--parts turns agents …]

The server is a process of its own, this one is its client. Printed are medians, of pairs where two things are compared.
`--prefix` is what agents share, `--long` the prompt of somebody else, and `--ctx` has to
hold both. llama-server (`build_peers.py --server` says where it is) is started with the same file, as many threads, and
slots that hold what is asked: of two servers that are up, only one is asked at a time.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from benchmarks.http_answers import ask
from benchmarks.kv_quality import machine
from benchmarks.llama_server import llama_server
from benchmarks.one_server import AGENTS, QUESTION, beside_a_long_prompt, cached_turns, first_bytes, shared_prefix
from benchmarks.two_servers import NEW_TOKENS, STREAMS, new_prompts, streams

ROOM = 1024  # tokens of a slot beyond the prompt
COMMAND = (sys.executable, "-m", "localrun")
PARTS = ("turns", "agents", "long", "streams")


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
    with serving(options) as address:
        asyncio.run(measure(address, options))


@contextmanager
def serving(options: argparse.Namespace) -> Iterator[str]:
    """The address of a server of our model, until the block is left."""
    held = ("--ctx", str(options.ctx), "--threads", str(options.threads))
    command = (*COMMAND, "serve", options.model, "--port", "0", "--jsonl", "--no-swap", *held)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        try:
            yield said(process.stdout.readline())["url"]
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


def said(line: str) -> dict[str, Any]:
    """What localrun says in JSON; an error ends the measurement."""
    values: dict[str, Any] = json.loads(line)
    if "error" in values:
        raise SystemExit(f"{values['error']['message']}; {values['error']['hint']}")
    return values


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


if __name__ == "__main__":
    main()
