"""A thousand requests at once, and the engine killed amid them: each is answered or told to come back."""

import asyncio
from collections import Counter

import httpx
import psutil
import pytest
from localrun_testing.client_programs import PATIENCE
from localrun_testing.protocols import PROTOCOLS, frames, question
from localrun_testing.waiting import until

from benchmarks.server_soak import served

N_REQUESTS = 1_000
ENDED = "ended by an error"  # of a stream that had begun


async def ask(client: httpx.AsyncClient, number: int) -> str:
    """One request, in any protocol; its status, or how its stream ended."""
    path, is_stream = PROTOCOLS[number % len(PROTOCOLS)], number % 4 < 2
    answer = await client.post(path, json={**question(path, f"Tell me {number} stories"), "stream": is_stream})
    if answer.status_code in (429, 503):
        assert answer.headers["retry-after"] == "1"
    if is_stream and answer.status_code == 200 and "engine_died" in str(frames(answer.text)[-1]):
        return ENDED
    return str(answer.status_code)


async def rush(url: str, process: psutil.Process) -> Counter[str]:
    """How all of them ended."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as client:
        asked = [asyncio.ensure_future(ask(client, number)) for number in range(N_REQUESTS)]
        await asyncio.wait(asked[:1])
        (worker,) = [child for child in process.children() if "worker.main" in " ".join(child.cmdline())]
        worker.kill()
        said = Counter(await asyncio.gather(*asked))
        assert await ask(client, 0) == "200"
    return said


@pytest.mark.slow
@pytest.mark.process
def test_a_thousand_at_once_are_answered_or_told_to_come_back() -> None:
    """Others refuse whatever comes while they are busy (llama.cpp#3821)."""
    with served() as (url, process):
        said = asyncio.run(rush(url, process))
        until(lambda: httpx.get(f"{url}/v1/localrun/requests").json()["requests"] == [])
    assert set(said) <= {"200", "429", "503", ENDED}
    assert said["200"] >= 50
