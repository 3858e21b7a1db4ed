"""CONTRIBUTING's recipe for a backend, tried: operations in numpy on the reference's cache answer as the others do."""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from localrun.backends.cpu import library
from localrun.backends.executor import Executor, ExecutorRequest
from localrun.backends.reference.backend import ReferenceBackend
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.registry import BACKENDS
from localrun.base.events import Completion, Done
from localrun.base.request import BackendName, LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.cli.app import run_command_line
from localrun.client.local import LocalClient
from localrun.ops.instructions import Attention, Linear, LinearWeight, Norm


class ToyOps(ReferenceOps):
    """What numpy computes; the other instructions stay as they are."""

    def norm(self, op: Norm) -> tuple[torch.Tensor]:
        x = op.x.numpy()
        y = torch.from_numpy(x / np.sqrt(np.mean(x**2, -1, keepdims=True) + op.eps) * op.weight.numpy())
        return (y if op.residual is None else op.residual + y,)

    def linear(self, op: Linear) -> tuple[torch.Tensor, ...]:
        a = op.a.numpy()
        ys = [product(a, weight) for weight in op.weights]
        if op.act == "silu_mul":
            ys = [ys[0] / (1 + np.exp(-ys[0])) * ys[1]]
        residual = 0 if op.residual is None else op.residual
        return tuple(residual + torch.from_numpy(y * np.float32(op.out_scale)) for y in ys)

    def attention(self, op: Attention) -> tuple[torch.Tensor]:
        assert op.window is None
        q, out = op.q.numpy(), torch.empty_like(op.q)
        group = q.shape[1] // self.pool.layers[op.layer].n_kv_heads
        for row, (position, sequence) in enumerate(zip(self.step.positions, self.step.row_sequence, strict=True)):
            _slots, keys, values = self.pool.blocks(op.layer, sequence).seen_from(position // 64)
            for head in range(q.shape[1]):
                scores = keys[: position + 1, head // group].numpy() @ q[row, head] * op.scale
                weights = np.exp(scores - scores.max())
                mixed = weights @ values[: position + 1, head // group].numpy() / weights.sum()
                out[row, head] = torch.from_numpy(mixed)
        return (out.flatten(1),)


def product(a: np.ndarray, weight: LinearWeight) -> np.ndarray:
    y: np.ndarray = weight.scale * (a @ weight.packed.unpack().numpy().T)
    return y if weight.bias is None else y + weight.bias.numpy()


class ToyBackend(ReferenceBackend):
    name = "toy"
    note = "numpy computes this"
    broken = False

    def why_unavailable(self) -> str:
        return "reinstall numpy" if self.broken else ""

    def degraded_reason(self) -> str:
        return "numpy does not work" if self.broken else ""

    def summary(self) -> str:
        return f"numpy {np.__version__}"

    def details(self) -> dict[str, Any]:
        return {"version": np.__version__}

    def executor(self, request: ExecutorRequest) -> Executor:
        return ReferenceExecutor(request, self.device, ToyOps)


def answers(backend: BackendName) -> list[Completion]:
    """Two prompts, each twice."""
    model = resource("localrun/builtin/localrun-tiny.gguf")
    prompts = ("Hello!", "Why is the second token faster than the first? " * 9) * 2
    with LocalClient(LoadOptions(model, backend=backend, kv="f32", ctx=512)) as client:
        requests = [Request(prompt=prompt, max_tokens=12, sampling=Sampling(temperature=0.0)) for prompt in prompts]
        assert client.info.backend == BACKENDS[backend].name
        return [event.completion for one in requests for event in client.generate(one) if isinstance(event, Done)]


def test_a_backend_is_a_class_and_a_row_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers("reference")
    monkeypatch.setitem(BACKENDS, "cuda", ToyBackend())  # in the place of a name that users may give
    found = answers("cuda")
    assert [one.text for one in found] == [one.text for one in expected]
    assert (found[-1].cached_tokens or 0) > 0, "the prefix tree reuses its blocks"


def test_doctor_asks_every_backend(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(BACKENDS, "toy", toy := ToyBackend())
    run_command_line(["doctor"])
    assert re.search(rf"^toy +ready +numpy {re.escape(np.__version__)}$", capsys.readouterr().out, re.MULTILINE)
    monkeypatch.setattr(toy, "broken", True)
    run_command_line(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    expected = {"available": False, "reason": "reinstall numpy", "summary": "", "version": np.__version__}
    assert found["backends"]["toy"] == expected
    assert {"what": "numpy does not work", "hint": "reinstall numpy"} in found["problems"]


def test_doctor_misses_the_native_library_and_no_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "_load", lambda: "reinstall localrun")
    run_command_line(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    missing = "there is no native CPU library, so everything is slower"
    assert {"what": missing, "hint": "reinstall localrun"} in found["problems"]
    assert [problem for problem in found["problems"] if "CUDA" in str(problem)] == []
