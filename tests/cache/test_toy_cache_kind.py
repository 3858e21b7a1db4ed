"""CONTRIBUTING's recipe for a kind of memory: an instruction, an operation, a mixer; all else is asked of the kind."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from localrun.backends.reference.delta_net import rows_by_sequence
from localrun.backends.reference.ops import ReferenceOps
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.model import archs
from localrun.model.archs.llama import Llama
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields
from localrun.model.layer_weights import MixerWeights
from localrun.ops.recording import Ops


@dataclass(frozen=True, slots=True)
class DecayingSum:
    """h = 0.75 · h + a over all tokens of a text -> f32 [R, n]."""

    name: ClassVar = "decaying_sum"
    n_results: ClassVar = 1
    a: Any
    layer: int


def decaying_sum(ops: ReferenceOps, op: DecayingSum) -> tuple[Any]:
    out = op.a.clone()
    for sequence, rows in rows_by_sequence(ops.step):
        state = ops.pool.state(op.layer, sequence)
        for row in rows:
            out[row] = state = 0.75 * state + op.a[row]
            ops.pool.put_state(op.layer, sequence, ops.step.positions[row], state)
    return (out,)


@dataclass(frozen=True)
class Mixer:
    state_size: int

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        return {"q": (hidden, hidden), "k": (hidden // 2, hidden), "v": (hidden // 2, hidden), "out": (hidden, hidden)}

    def vectors(self) -> dict[str, tuple[int]]:
        return {}

    def mix(self, ops: Ops, a: Any, index: int, weights: MixerWeights) -> Any:
        return ops(DecayingSum(a, index))[0]  # type: ignore[arg-type]


class Hybrid(Llama):
    gguf_names: ClassVar = {"out": "blk.{}.attn_output.weight"}

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        return replace(base, kind="recurrent", mixer=Mixer(fields["hidden_size"])) if index % 2 == 0 else base


def answers(prompts: list[str], **options: Any) -> list[Completion]:
    with LocalClient(LoadOptions(resource("localrun/builtin/localrun-tiny.gguf"), ctx=1024, **options)) as client:
        assert client.info.backend == "reference", "the native library says that it has no kernel for it"
        assert client.view().groups[0].name.endswith("layers, states")
        assert client.model.plan.kv_bytes == client.model.engine.runner.executor.kv_nbytes
        requests = (Request(prompt=p, max_tokens=20, sampling=Sampling(temperature=0.0), chat_id="1") for p in prompts)
        return [e.completion for request in requests for e in client.generate(request) if isinstance(e, Done)]


def test_a_recurrent_layer_runs_is_reused_restored_and_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceOps, "decaying_sum", decaying_sum, raising=False)
    monkeypatch.setattr(archs, "ARCHS", (Hybrid(), *archs.ARCHS))
    prompts = [first := "Why is the second token faster than the first? " * 9, first + "And the third?", first]
    cold, warm = answers(prompts, prefix_cache=False), answers(prompts, disk_cache=1 << 30)
    restored = answers(prompts[:1], disk_cache=1 << 30)
    assert [one.text for one in (*warm, *restored)] == [one.text for one in (*cold, cold[0])]
    assert all((one.cached_tokens or 0) >= 64 for one in (*warm[1:], *restored))
    assert restored[0].cache.restored_tokens >= 64
