"""The same seed gives the same ids: alone or beside others, cached or not, after a restart, in every protocol.

Elsewhere an answer depends on what else is computed (llama.cpp#7052, vLLM#23138, ollama#586).
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from localrun_testing.protocols import CHATS, PROTOCOLS, cached_tokens, question
from localrun_testing.served import Served, serving
from localrun_testing.tiny_models import save
from localrun_testing.waiting import until

from localrun.base.events import Completion
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient

BUILTIN = Path(resource("localrun/builtin/localrun-tiny.gguf"))
SYSTEM = "You are a careful assistant that answers in short sentences. " * 6
SEED, OTHER_SEED = 7, 8
AT_ONCE = [*((path, SEED) for path in PROTOCOLS * 2), *((path, OTHER_SEED) for path in PROTOCOLS)]

Ended = list[tuple[str, Completion]]


@contextmanager
def server(path: Path) -> Iterator[tuple[Served, Ended]]:
    """A server on an engine of its own, and the figures of all answers that ended, by protocol."""
    ended: Ended = []
    with LocalClient(LoadOptions(path, name="builtin", disk_cache=1 << 27)) as client:
        with serving(lambda choice: client) as served:
            served.service._log = lambda live: ended.append((live.protocol, live.completion or pytest.fail(str(live))))
            yield served, ended
        assert client.model.engine.disk is not None


def ask(served: Served, path: str, seed: int = SEED) -> int:
    """Ask; gives how much of its prompt was cached, as the answer says."""
    body = question(path, "Tell me a story, please", SYSTEM, seed=seed, temperature=2.0)
    answer = httpx.post(f"{served.url}{path}", json=body, headers={"session-id": "one"}, timeout=120)
    assert answer.status_code == 200, answer.text
    return cached_tokens(path, answer.json())


def ask_each(served: Served, ended: Ended) -> dict[str, Completion]:
    """The answers of all protocols, asked one after the other, and how much was cached as each says (ollama#17130)."""
    before = len(ended)
    cached = [ask(served, path) for path in PROTOCOLS]
    until(lambda: len(ended) == before + len(PROTOCOLS))
    assert [one.cached_tokens for _, one in ended[before:]] == cached
    return dict(ended[before:])


@pytest.fixture(scope="module", params=["builtin", "recurrent"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return BUILTIN if request.param == "builtin" else save("lfm2", tmp_path_factory.mktemp("recurrent"))


def test_the_same_seed_gives_the_same_ids(model: Path) -> None:
    with server(model) as (served, ended):
        alone = {path: one.token_ids for path, one in ask_each(served, ended).items()}
        assert all(len(ids) > 1 for ids in alone.values())
        assert len({alone[path] for path in CHATS}) == 1, "one prompt, however it was asked"
        cached = ask_each(served, ended)
        assert {path: one.token_ids for path, one in cached.items()} == alone
        assert all((one.cached_tokens or 0) >= 64 for one in cached.values())
        before = len(ended)
        with ThreadPoolExecutor(len(AT_ONCE)) as threads:
            list(threads.map(lambda asked: ask(served, *asked), AT_ONCE))
        until(lambda: len(ended) == before + len(AT_ONCE))
        same = [(path, one.token_ids) for path, one in ended[before:] if one.seed == SEED]
        assert len(same) == 2 * len(PROTOCOLS)
        assert set(same) == set(alone.items())
        others = {one.token_ids for _, one in ended[before:] if one.seed == OTHER_SEED}
        assert not others & set(alone.values()), "another seed, another answer"
    with server(model) as (served, ended):
        again = ask_each(served, ended)
        assert {path: one.token_ids for path, one in again.items()} == alone
        assert again[CHATS[0]].cache.restored_tokens > 0
        assert again["/v1/completions"].cache.restored_tokens > 0
