"""The checkpoint behind a name: bytes as the hub shows them, and the catalogue's shape where it cannot be asked."""

import json
from collections.abc import Callable

import pytest
from localrun_testing.fake_hub import FakeHub, FakeRepo

from localrun.base.errors import HubError, NotFoundError
from localrun.fit.handover import Checkpoint
from localrun.hub.catalogue import read_catalogue
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.checkpoints import find_checkpoint

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
QWEN = read_catalogue()["qwen3-0.6b"]
FILES = {
    "config.json": json.dumps({**QWEN["config"], "model_type": "qwen3", "rms_norm_eps": 1e-6}).encode(),
    "model-00001-of-00002.safetensors": bytes(30_000),
    "model-00002-of-00002.safetensors": bytes(12_000),
    "tokenizer.json": b"{}",
}


@pytest.fixture
def found(serve: Serve, access_to: AccessTo) -> Callable[[str], Checkpoint]:
    hub = serve({QWEN["safetensors"]: FILES, "org/mine": FILES, "org/no-weights": {"README.md": b"x"}})
    return lambda model: find_checkpoint(Http(access_to(hub)), model)


@pytest.mark.parametrize("model", ["qwen3-0.6b", QWEN["gguf"], QWEN["safetensors"]])
def test_any_name_leads_to_the_original(found: Callable[[str], Checkpoint], model: str) -> None:
    checkpoint = found(model)
    assert (checkpoint.repo, checkpoint.weight_bytes, checkpoint.approximate) == (QWEN["safetensors"], 42_000, False)


def test_a_repository_outside_the_catalogue(found: Callable[[str], Checkpoint]) -> None:
    assert (found("org/mine").repo, found("org/mine").weight_bytes) == ("org/mine", 42_000)
    for other in ("org/no-weights", "org/none"):
        with pytest.raises((HubError, NotFoundError)):
            found(other)


def test_one_that_asks_for_consent_is_estimated(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({QWEN["safetensors"]: FakeRepo(FILES, gated=True)})
    checkpoint = find_checkpoint(Http(access_to(hub)), "qwen3-0.6b")
    assert checkpoint.approximate
    assert checkpoint.weight_bytes == 2 * checkpoint.shape.n_params


def test_without_a_network_the_catalogue_is_all(serve: Serve, access_to: AccessTo) -> None:
    http = Http(access_to(serve({}), offline=True))
    assert find_checkpoint(http, "qwen3-0.6b").approximate
    with pytest.raises(HubError, match="not in the catalogue"):
        find_checkpoint(http, "org/mine")
