"""Random requests to `localrun serve` in every protocol, from clients that behave badly, and then what is left of them.

    python -m benchmarks.server_soak [--seconds 60] [--clients 24] [--seed 1]

Clients ask for whole answers and streams, leave at once or amid an answer, do not read what they asked for, send half a
body, and have the model changed for a copy of it. Every answer has to be 200, or 429 or 503 where there is no room, and
none may hang. At the end no request is under way, a prompt that fills the context is answered, which takes every block
of the cache, and the server has no more connections, threads and children, and hardly more memory, than after a first
third of the time. Exits with 1 where that is not so.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from localrun.base.resources import resource

CTX = 2048
PATIENCE = 300.0  # seconds after which a request hangs
ALLOWED = (200, 429, 503)
MORE_MEMORY = 48 << 20  # bytes that may come with a cache that fills
MORE_THREADS = 64  # that may come with more answers at once: they are kept for a minute, for the next
MODELS = ("one", "two")
WORDS = ("river", "lantern", "seven", "marble", "always", "harbour", "green", "engine", "under", "winter", "paper")
Ask = Callable[[random.Random, bool], tuple[str, dict[str, Any]]]


@dataclass
class Left:
    """What a server holds when nobody asks it: bytes of its own and of its worker, connections and files, threads."""

    own_bytes: int
    worker_bytes: int
    files: int
    threads: int
    children: int


@dataclass
class Report:
    """How a soak went. `wrong` is empty where it went well."""

    statuses: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    before: Left | None = None
    after: Left | None = None


def prompt(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=dice.choice((2, 20, 200))))


def chat(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    session = {"prompt_cache_key": f"chat-{dice.randrange(8)}"} if dice.random() < 0.5 else {}
    body = {"messages": [{"role": "user", "content": prompt(dice)}], "max_tokens": 60, "stream": is_stream, **session}
    return "/v1/chat/completions", body


def completion(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    more: dict[str, Any] = dice.choice(({}, {"echo": True, "logprobs": 2}, {"n": 3}))
    return "/v1/completions", {"prompt": prompt(dice), "max_tokens": 30, "stream": is_stream, **more}


def response(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    return "/v1/responses", {"input": prompt(dice), "max_output_tokens": 60, "stream": is_stream, "store": False}


def message(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    said = [{"role": "user", "content": prompt(dice)}]
    return "/v1/messages", {"messages": said, "max_tokens": 60, "stream": is_stream}


def ollama_chat(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    said = [{"role": "user", "content": prompt(dice)}]
    return "/api/chat", {"messages": said, "options": {"num_predict": 60}, "stream": is_stream}


def ollama_generate(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    return "/api/generate", {"prompt": prompt(dice), "options": {"num_predict": 60}, "stream": is_stream}


def count_tokens(dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
    return "/v1/messages/count_tokens", {"messages": [{"role": "user", "content": prompt(dice)}]}


PROTOCOLS: tuple[Ask, ...] = (chat, completion, response, message, ollama_chat, ollama_generate, count_tokens)


class Soak:
    """Clients of one server."""

    def __init__(self, url: str, process: psutil.Process, seed: int) -> None:
        self.url, self._process, self._seeds = url, process, random.Random(seed)
        self.report = Report()
        self._held: list[asyncio.StreamWriter] = []  # of those who never read

    async def run(self, seconds: float, n_clients: int) -> Report:
        """A third of the time, then the rest, with a look at what is left after both."""
        await self._rush(seconds / 3, n_clients)
        self.report.before = await self._settled()
        await self._rush(2 * seconds / 3, n_clients)
        self.report.after = await self._settled()
        self._compare(self.report.before, self.report.after)
        return self.report

    async def _rush(self, seconds: float, n_clients: int) -> None:
        end = time.monotonic() + seconds
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=self.url, timeout=None, limits=limits) as client:
            dices = [random.Random(self._seeds.random()) for _ in range(n_clients)]
            await asyncio.gather(*(self._client(client, dice, end) for dice in dices))

    async def _client(self, client: httpx.AsyncClient, dice: random.Random, end: float) -> None:
        acts = {self._whole: 8, self._stream: 8, self._leave: 8, self._half: 2, self._look: 2, self._never_read: 0.3}
        while time.monotonic() < end:
            (act,) = dice.choices(list(acts), list(acts.values()))
            self.report.acts[act.__name__.strip("_")] += 1
            try:
                await asyncio.wait_for(act(client, dice), PATIENCE)
            except TimeoutError:
                self.report.wrong.append(f"a request hangs ({act.__name__})")
            except (httpx.TransportError, OSError) as error:
                self.report.wrong.append(f"a connection broke: {type(error).__name__} {error}")

    async def _whole(self, client: httpx.AsyncClient, dice: random.Random) -> None:
        path, body = self._request(dice, False)
        answer = await client.post(path, json=body)
        self._note(path, answer.status_code, answer.text)

    async def _stream(self, client: httpx.AsyncClient, dice: random.Random) -> None:
        path, body = self._request(dice, True)
        async with client.stream("POST", path, json=body) as answer:
            text = (await answer.aread()).decode()
        self._note(path, answer.status_code, text)

    async def _leave(self, client: httpx.AsyncClient, dice: random.Random) -> None:
        """At once, or after a piece or two."""
        path, body = self._request(dice, dice.random() < 0.7)
        try:
            async with asyncio.timeout(dice.choice((0.01, 0.1, 1.0))), client.stream("POST", path, json=body) as answer:
                self._note(path, answer.status_code, "")
                async for _ in answer.aiter_raw():
                    if dice.random() < 0.3:
                        break
        except TimeoutError:
            pass

    async def _half(self, client: httpx.AsyncClient, dice: random.Random) -> None:
        """A body that ends before its length."""
        writer = await self._send(*self._request(dice, True), share=0.5)
        writer.close()

    async def _never_read(self, client: httpx.AsyncClient, dice: random.Random) -> None:
        """More than any buffer holds, and no look at it."""
        body = {"prompt": prompt(dice), "n": 8, "logprobs": 20, "max_tokens": 1000, "stream": True}
        self._held.append(await self._send("/v1/completions", body))

    async def _look(self, client: httpx.AsyncClient, dice: random.Random) -> None:
        path = dice.choice(("/v1/models", "/api/tags", "/api/ps", "/metrics", "/v1/localrun/requests", "/health"))
        answer = await client.get(path)
        self._note(path, answer.status_code, "")

    def _request(self, dice: random.Random, is_stream: bool) -> tuple[str, dict[str, Any]]:
        path, body = dice.choice(PROTOCOLS)(dice, is_stream)
        return path, {"model": dice.choice(MODELS) if dice.random() < 0.02 else "", **body}

    async def _send(self, path: str, body: dict[str, Any], share: float = 1.0) -> asyncio.StreamWriter:
        """A request of which a share is sent."""
        url, data = httpx.URL(self.url), json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        _, writer = await asyncio.open_connection(url.host, url.port, limit=1024)
        writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data[: int(share * len(data))])
        await writer.drain()
        return writer

    def _note(self, path: str, status: int, text: str) -> None:
        self.report.statuses[str(status)] += 1
        if status not in ALLOWED:
            self.report.wrong.append(f"{path} answers {status}: {text[:200]}")
        elif '"error":{' in text.replace(" ", ""):
            self.report.wrong.append(f"{path} ends with an error: {text[-300:]}")

    async def _settled(self) -> Left:
        """What is left once nobody asks any more, and a prompt that takes the whole cache was answered."""
        async with httpx.AsyncClient(
            base_url=self.url, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0)
        ) as client:
            if not await _until(lambda: self._is_quiet(client)):
                self.report.wrong.append("requests are under way that nobody waits for")
            body = {"prompt": [5 + number % 90 for number in range(CTX - 8)], "max_tokens": 4}
            answer = await client.post("/v1/completions", json=body)
            self._note("a prompt of the whole context", answer.status_code, answer.text)
        for writer in self._held:
            writer.close()
        self._held.clear()
        if not await _until(self._is_alone):
            self.report.wrong.append("connections are open that their clients have closed")
        workers = self._process.children()
        return Left(
            own_bytes=self._process.memory_info().rss,
            worker_bytes=sum(worker.memory_info().rss for worker in workers),
            files=self._process.num_fds(),
            threads=self._process.num_threads(),
            children=len(workers),
        )

    async def _is_quiet(self, client: httpx.AsyncClient) -> bool:
        return (await client.get("/v1/localrun/requests")).json()["requests"] == []

    async def _is_alone(self) -> bool:
        return all(one.status == psutil.CONN_LISTEN for one in self._process.net_connections("tcp"))

    def _compare(self, before: Left, after: Left) -> None:
        """Some of it comes and goes: threads that wait for work, memory of a cache that fills."""
        allowed = {"own_bytes": MORE_MEMORY, "worker_bytes": MORE_MEMORY, "files": 8, "threads": MORE_THREADS}
        for name, more in allowed.items():
            if getattr(after, name) > getattr(before, name) + more:
                self.report.wrong.append(f"{name}: {getattr(before, name):,}, and later {getattr(after, name):,}")
        if after.children > before.children:
            self.report.wrong.append(f"{before.children} children, and later {after.children}")


async def _until(is_so: Callable[[], Any]) -> bool:
    """Whether something comes to be in time."""
    give_up = time.monotonic() + PATIENCE
    while not await is_so():
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(0.1)
    return True


@contextmanager
def served() -> Iterator[tuple[str, psutil.Process]]:
    """A server of two copies of the built-in model, with a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        models = Path(home, "models")
        models.mkdir()
        for name in MODELS:
            shutil.copy(resource("builtin/localrun-tiny.gguf"), models / f"{name}.gguf")
        command = [sys.executable, "-m", "localrun", "serve", MODELS[0], "--port", "0", "--jsonl", "--quiet"]
        environment = {**os.environ, "LOCALRUN_HOME": home}
        process = subprocess.Popen([*command, "--ctx", str(CTX)], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert process.stdout
            yield json.loads(process.stdout.readline())["url"], psutil.Process(process.pid)
        finally:
            process.terminate()
            process.communicate()


def soak(seconds: float, n_clients: int, seed: int) -> Report:
    """Start a server, and let clients at it."""
    with served() as (url, process):
        return asyncio.run(Soak(url, process, seed).run(seconds, n_clients))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    report = soak(asked.seconds, asked.clients, asked.seed)
    print(json.dumps(report, indent=1, default=vars))
    raise SystemExit(bool(report.wrong))


if __name__ == "__main__":
    main()
