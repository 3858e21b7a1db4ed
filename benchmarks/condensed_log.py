"""A question about a log of 2 MB, asked of a small context: the cost of each way to read it, and the answers.

python -m benchmarks.condensed_log MODEL.gguf --ctx 8192
"""

import argparse
import random
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from localrun.base.content import FilePart, TextPart, text_of
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.chat.long_text.reading_speed import reading_speed
from localrun.chat.long_text.ways_to_read import WaysToRead
from localrun.client.local import LocalClient
from localrun.fit.machine_rates import machine_rates

QUESTION = "What went wrong, and why?"
CAUSE = "No space left on device"
_USERS = ["ada", "grace", "linus", "edsger", "barbara", "donald", "tony", "niklaus", "john", "alan", "kathleen"]
_PATHS = ["/api/users/{n}", "/api/cart/{n}/items", "/static/app.{hex}.js", "/health", "/api/search?q=item{n}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--ctx", type=int, default=8192)
    parser.add_argument("--bytes", type=int, default=2_000_000, help="of the log")
    parser.add_argument("--tokens", type=int, default=100, help="of the answer, at most")
    asked = parser.parse_args()
    log = server_log(asked.bytes)
    with closing(LocalClient(LoadOptions(asked.model, ctx=asked.ctx))) as client:
        speed_at = partial(reading_speed, (), client.info, machine_rates())
        began = time.perf_counter()
        ways = WaysToRead(QUESTION, client.info, lambda request: client.preview(request).n_tokens, speed_at)
        condensed, *others = ways.of(FilePart("server.log", log))
        print(f"{log.count(chr(10)):,} lines: {condensed.about}; planned in {time.perf_counter() - began:.1f} s")
        for way in (condensed, *others):
            print(f"{way.name:<10} {way.cost}")
        began = time.perf_counter()
        answer = answer_to(client, text_of((condensed.part, TextPart(QUESTION))), asked.tokens)
        print(f"answered in {time.perf_counter() - began:.1f} s: {answer.text}")
        print("it names the cause" if CAUSE in answer.text else "it does not name the cause")


def answer_to(client: LocalClient, prompt: str, max_tokens: int) -> Completion:
    """The most likely answer."""
    messages = ({"role": "user", "content": prompt},)
    request = Request(messages=messages, sampling=Sampling(temperature=0.0), max_tokens=max_tokens)
    return next(event.completion for event in client.generate(request) if isinstance(event, Done))


def server_log(n_bytes: int = 2_000_000, seed: int = 0) -> str:
    """The log of a web shop's day in which the disk of its payments database fills up."""
    return "\n".join(_lines(n_bytes, random.Random(seed))) + "\n"


def _lines(n_bytes: int, rng: random.Random) -> Iterator[str]:
    now, size = datetime(2026, 11, 27, 6, 0, 0), 0
    trouble = False
    while size < n_bytes:
        now += timedelta(milliseconds=rng.expovariate(1 / 3000))
        trouble = trouble or size > 0.7 * n_bytes
        for line in _trouble(rng) if trouble and rng.random() < 0.0015 else [_usual(rng)]:
            stamped = f"{now.isoformat(' ', 'milliseconds')} {line}"
            size += len(stamped) + 1
            yield stamped


def _usual(rng: random.Random) -> str:
    n, user, ident = rng.randrange(100_000), rng.choice(_USERS), f"{rng.getrandbits(48):012x}"
    path = rng.choice(_PATHS).format(n=n, hex=ident[:8])
    web = f"INFO  web[{rng.randrange(4)}] 10.0.{n % 256}.{n % 250}"
    return rng.choices(
        [
            f"{web} GET {path} 200 {rng.randrange(2, 180)}ms req={ident}",
            f"INFO  auth user {user} logged in from 192.168.{n % 7}.{n % 250} session={ident}",
            f"DEBUG cache hit ratio 0.{n % 100:02} entries={n}",
            f"INFO  worker-{rng.randrange(8)} job {ident} done in {n % 9000} ms",
            f"{web} POST /api/cart/{n}/items 201 {n % 90}ms req={ident}",
            f"WARN  web slow request {path} took {1000 + n % 4000} ms",
            "INFO  scheduler heartbeat ok",
            f"{web} GET {path} 404 {n % 9}ms req={ident}",
        ],
        [40, 10, 12, 16, 10, 1, 8, 3],
    )[0]


def _trouble(rng: random.Random) -> list[str]:
    order = rng.randrange(10_000, 99_999)
    return [
        f"ERROR payments-db could not write to /var/lib/wal/{rng.getrandbits(64):016x}: {CAUSE}",
        f"ERROR checkout order {order} failed: payment was not stored",
    ]


if __name__ == "__main__":
    main()
