"""The same seed gives the same ids: alone or beside others, cached or not, after a restart, in every protocol."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.served import Served, serving
from localrun_testing.tiny_models import save
from localrun_testing.waiting import until

from localrun.base.events import Completion
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient

BUILTIN = Path(resource("localrun/builtin/localrun-tiny.gguf"))
SYSTEM = "You are a careful assistant that answers in short sentences. " * 6
PROTOCOLS: dict[str, dict[str, Any]] = {  # a path, and what its body has besides model, seed and temperature
    "/v1/chat/completions": {
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Tell me a story."}],
        "max_tokens": 12,
    },
    "/v1/responses": {"instructions": SYSTEM, "input": "Tell me a story.", "max_output_tokens": 12, "store": False},
}


@contextmanager
def server(path: Path) -> Iterator[tuple[Served, list[Completion]]]:
    """A server on an engine of its own, and the figures of all answers that ended."""
    ended: list[Completion] = []
    with LocalClient(LoadOptions(path, name="builtin", disk_cache=1 << 27)) as client:
        with serving(lambda choice: client) as served:
            served.service._log = lambda live: ended.append(live.completion) if live.completion else None
            yield served, ended
        assert client.model.engine.disk is not None


def ask(served: Served, path: str, seed: int, session: str = "") -> None:
    body = {"model": "", "seed": seed, "temperature": 2.0, **PROTOCOLS[path]}
    headers = {"session-id": session} if session else {}
    assert httpx.post(f"{served.url}{path}", json=body, headers=headers, timeout=120).status_code == 200


@pytest.fixture(scope="module", params=["builtin", "recurrent"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return BUILTIN if request.param == "builtin" else save("lfm2", tmp_path_factory.mktemp("recurrent"))


@pytest.mark.parametrize("path", PROTOCOLS)
def test_the_same_seed_gives_the_same_ids(model: Path, path: str) -> None:
    with server(model) as (served, ended):
        ask(served, path, 7, "one")
        until(lambda: len(ended) == 1)
        alone = ended[0].token_ids
        assert len(alone) > 1
        ask(served, path, 7)
        until(lambda: len(ended) == 2)
        assert ended[1].token_ids == alone
        assert (ended[1].cached_tokens or 0) >= 64
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda number: ask(served, path, 7 + number % 4), range(16)))
        until(lambda: len(ended) == 18)
        same = [one.token_ids for one in ended if one.seed == 7]
        assert len(same) == 6
        assert set(same) == {alone}
        assert len({one.token_ids for one in ended}) > 1, "other seeds differ"
    with server(model) as (served, ended):
        ask(served, path, 7, "one")
        until(lambda: len(ended) == 1)
        assert ended[0].token_ids == alone
        assert ended[0].cache.restored_tokens > 0
