"""How much longer several chats at once take through localrun than the engine takes for them.

    python -m benchmarks.chats_through_host [--chats 8] [--tokens 128] [--rounds 7]
                                            [--llama-server FILE --model MODEL.gguf [--threads N]]

The engine's own time is that of a client that only reads sockets, and parses nothing. Both clients are threads of this
process, ask the same engine in turns, and count seconds a token from the first request to the end of the last answer;
printed are medians, and that of the pairs' ratios. The first engine keeps a steady pace and computes nothing
(benchmarks/steady_engine.py); llama-server computes on the cores that the client needs, too.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from benchmarks.kv_quality import machine
from benchmarks.llama_server import llama_server
from localrun.base.events import Done
from localrun.base.request import Request, Sampling
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint

GAP_MS = 10.0  # between two tokens of the steady engine
WANTED = 1.02
CTX = 1024
QUESTION = "Explain in detail how a steam engine works, from the boiler to the wheels. This is question {}."
Ask = Callable[[str], int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128, help="of each answer")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--llama-server", metavar="FILE", help="measure it, too")
    parser.add_argument("--model", metavar="FILE", help="that of llama-server")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of llama-server")
    options = parser.parse_args()
    print(machine())
    with steady_engine() as url:
        measure("steady engine", url, options)
    if options.llama_server:
        with llama_server(options.llama_server, options.model, options.threads, options.chats, CTX) as address:
            measure("llama-server", f"{address}/v1", options)


@contextmanager
def steady_engine() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.steady_engine", str(port), str(GAP_MS)]
    url = f"http://127.0.0.1:{port}/v1"
    with subprocess.Popen(command) as process:
        try:
            while not answers(f"{url}/models"):
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()


def answers(page: str) -> bool:
    try:
        with urlopen(page) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except URLError:
        return False


def measure(name: str, url: str, options: argparse.Namespace) -> None:
    """Print what localrun adds to `chats` answers at once."""
    client = RemoteClient(Endpoint("measured", url))
    ways: dict[str, Ask] = {
        "engine": lambda question: read_alone(url, client.info.name, question, options.tokens),
        "localrun": lambda question: read_by_localrun(client, question, options.tokens),
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(-1, options.rounds):  # the first is not counted
        for way in reversed(ways) if number % 2 else ways:
            seconds = seconds_a_token(ways[way], [f"{way} {number} {chat}" for chat in range(options.chats)])
            took[way] += [seconds] if number >= 0 else []
    alone, through = (1000 * statistics.median(times) for times in took.values())
    ratio = statistics.median(b / a for a, b in zip(took["engine"], took["localrun"], strict=True))
    print(
        f"{name}: {options.chats} chats of {options.tokens} tokens, {alone:.3f} ms a token alone, {through:.3f} through"
        f" localrun: {ratio:.4f} ({options.rounds} pairs; wanted: {WANTED})"
    )


def seconds_a_token(ask: Ask, names: list[str]) -> float:
    """Seconds for all answers, over all their tokens."""
    with ThreadPoolExecutor(len(names)) as pool:
        began = time.perf_counter()
        n_tokens = sum(pool.map(ask, map(QUESTION.format, names)))
        return (time.perf_counter() - began) / n_tokens


def read_alone(url: str, model: str, question: str, tokens: int) -> int:
    """Read the bytes of an answer. Returns the tokens that the engine counted."""
    place = urlsplit(url)
    fields = {"messages": [{"role": "user", "content": question}], "max_tokens": tokens, "temperature": 0.0}
    body = json.dumps({"model": model, **fields, "stream": True, "stream_options": {"include_usage": True}})
    head = f"POST {place.path}/chat/completions HTTP/1.0\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    received = bytearray()
    with socket.create_connection((place.hostname, place.port)) as sock:
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        while piece := sock.recv(1 << 16):
            received += piece
    return int(re.findall(rb'"completion_tokens": ?(\d+)', received)[-1])


def read_by_localrun(client: RemoteClient, question: str, tokens: int) -> int:
    """Read an answer as every face does. Returns the tokens that the engine counted."""
    request = Request(({"role": "user", "content": question},), None, Sampling(temperature=0.0), tokens)
    return next(event.completion.completion_tokens for event in client.generate(request) if isinstance(event, Done))


if __name__ == "__main__":
    main()
