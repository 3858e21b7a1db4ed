"""Encoders: layer norm, activations of one product and self-attention, as torch has them, on every backend."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from localrun_testing.instruction_sets import all_here, using
from torch import Tensor

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.interface import Backend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.ops.encoder import LayerNorm, SelfAttention
from localrun.ops.encoder_program import EncoderInput, EncoderRecording, record_encoder
from localrun.ops.instructions import Linear, LinearWeight
from localrun.ops.interface import CancelFlag, StepCancelled
from localrun.ops.layouts import Layout, Packed, RowReader
from localrun.ops.recording import Ops
from localrun.ops.rope import RopeKind
from localrun.ops.types import SingleActivation, Value

ACTIVATIONS: tuple[SingleActivation, ...] = ("relu_squared", "gelu", "gelu_erf", "gelu_quick")
BACKENDS = ("reference", *all_here())


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "reference":
        yield ReferenceBackend()
        return
    with using(request.param):
        yield CpuBackend()


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def packed(layout: Layout, matrix: np.ndarray) -> Packed:
    raw = np.ascontiguousarray(matrix).view(np.uint8)
    n_rows, n_cols = matrix.shape
    return layout.pack(RowReader("F32", n_rows, n_cols, lambda first, n: raw[first : first + n]))


def encode(
    backend: Backend,
    recording: EncoderRecording,
    layout: Layout,
    given: Sequence[np.ndarray],
    lengths: Sequence[int],
    angles: Sequence[tuple[np.ndarray, np.ndarray]] = (),
) -> Tensor:
    encoder = backend.encoder(layout, recording, sum(lengths))
    try:
        done: list[float] = []
        found = encoder.run(EncoderInput(given, lengths, angles, CancelFlag()), done.append)
        assert done == sorted(done)
        assert done[-1] == 1.0
        return torch.from_numpy(found)
    finally:
        encoder.close()


def layout_of(backend: Backend) -> Layout:
    return backend.layout(0, 1 << 30, 2)


@pytest.mark.parametrize("width", [1, 17, 72, 1152])
def test_layer_norm_is_that_of_torch(backend: Backend, width: int) -> None:
    layout = layout_of(backend)
    x, weight, bias = numbers(5, width) * 3 + 40, numbers(width, seed=1), numbers(width, seed=2)
    w, b = (layout.vector(each, backend.device) for each in (weight, bias))
    recording = record_encoder(lambda ops, rows: ops(LayerNorm(rows[0], w, b, 1e-6))[0], [width])
    expected = F.layer_norm(torch.from_numpy(x), (width,), torch.from_numpy(weight), torch.from_numpy(bias), 1e-6)
    assert (encode(backend, recording, layout, [x], [5]) - expected).abs().max() < 1e-4


ORACLES: dict[SingleActivation, Callable[[Tensor], Tensor]] = {
    "relu_squared": lambda x: F.relu(x).square(),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "gelu_quick": lambda x: x * torch.sigmoid(1.702 * x),
}


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_a_product_ends_in_an_activation(backend: Backend, act: SingleActivation) -> None:
    layout = layout_of(backend)
    x = np.linspace(-12, 12, 333, dtype=np.float32)[:, None]
    bias = np.array([0.5, -0.25], np.float32)
    weight = LinearWeight(packed(layout, np.ones((2, 1), np.float32)), layout.vector(bias, backend.device))
    recording = record_encoder(lambda ops, rows: ops(Linear(rows[0], (weight,), act=act))[0], [1])
    expected = ORACLES[act](torch.from_numpy(x + bias).double())
    assert (encode(backend, recording, layout, [x], [len(x)]) - expected).abs().max() < 2e-5


@cache
def attention_case(head_dim: int, rows: int) -> tuple[np.ndarray, ...]:
    return tuple(numbers(rows, 3 * head_dim, seed=seed) for seed in range(3))


def self_attention(head_dim: int, rope: int | None) -> EncoderRecording:
    def forward(ops: Ops, rows: Sequence[Value]) -> Value:
        q, k, v = rows
        return ops(SelfAttention(q, k, v, 3, rope, head_dim**-0.5))[0]

    return record_encoder(forward, [3 * head_dim] * 3)


def attend(backend: Backend, head_dim: int, lengths: Sequence[int], *, turned: bool = True) -> Tensor:
    q, k, v = attention_case(head_dim, sum(lengths))
    angles = RopeKind.of(10000.0, head_dim, None, 1.0).cos_sin([3 * n % 50 for n in range(len(q))])
    recording = self_attention(head_dim, 0 if turned else None)
    return encode(backend, recording, layout_of(backend), [q, k, v], lengths, [angles] if turned else ())


def attention_of_torch(head_dim: int, lengths: Sequence[int], *, turned: bool = True) -> Tensor:
    """In float64, one segment after another."""
    q, k, v = (torch.from_numpy(x).double().unflatten(1, (3, -1)) for x in attention_case(head_dim, sum(lengths)))
    if turned:
        cos, sin = RopeKind.of(10000.0, head_dim, None, 1.0).cos_sin([3 * n % 50 for n in range(len(q))])
        pair = torch.polar(torch.ones(cos.shape, dtype=torch.float64), torch.from_numpy(np.arctan2(sin, cos)).double())
        q, k = (turn(x, pair) for x in (q, k))
    ends = list(accumulate(lengths, initial=0))
    parts = [[x[a:b].transpose(0, 1) for x in (q, k, v)] for a, b in pairwise(ends)]
    return torch.cat([F.scaled_dot_product_attention(*part).transpose(0, 1).flatten(1) for part in parts])


def turn(x: Tensor, pair: Tensor) -> Tensor:
    low, high = x.chunk(2, dim=-1)
    turned = torch.complex(low, high) * pair[:, None]
    return torch.cat([turned.real, turned.imag], dim=-1)


@pytest.mark.parametrize("head_dim", [8, 16, 72, 64, 80])
@pytest.mark.parametrize("lengths", [[1], [64], [65, 3, 130], [300]], ids=str)
def test_every_row_sees_the_rows_of_its_sequence(backend: Backend, head_dim: int, lengths: list[int]) -> None:
    found, expected = attend(backend, head_dim, lengths), attention_of_torch(head_dim, lengths)
    most = 2e-5 if isinstance(backend, ReferenceBackend) else 2e-2  # 16 bits, of bf16 with eight of them precise
    assert (found - expected).abs().max() < most
    assert (found - expected).square().mean() / expected.square().mean() < (1e-9 if most < 1e-3 else 2e-5)


def test_without_angles(backend: Backend) -> None:
    found, expected = attend(backend, 16, [20], turned=False), attention_of_torch(16, [20], turned=False)
    assert (found - expected).abs().max() < 2e-2


def test_sequences_side_by_side_are_what_each_is_alone() -> None:
    with using(all_here()[-1]):
        together = attend(CpuBackend(), 16, [70, 70])
        q, k, v = (x[:70] for x in attention_case(16, 140))
        assert torch.equal(together, attend(CpuBackend(), 16, [70, 70]))
        recording = self_attention(16, None)
        layout = layout_of(CpuBackend())
        alone = encode(CpuBackend(), recording, layout, [q, k, v], [70])
        twice = [np.concatenate([x, x]) for x in (q, k, v)]
        assert torch.equal(encode(CpuBackend(), recording, layout, twice, [70, 70]), torch.cat([alone, alone]))


def test_an_encoder_stops_when_it_is_cancelled(backend: Backend) -> None:
    layout = layout_of(backend)
    weight = LinearWeight(packed(layout, numbers(8, 8)))

    def forward(ops: Ops, rows: Sequence[Value]) -> Value:
        x = rows[0]
        for _ in range(100):
            (x,) = ops(Linear(x, (weight,)))
        return x

    encoder = backend.encoder(layout, record_encoder(forward, [8]), 4)
    cancel, done = CancelFlag(), list[float]()

    def stop(share: float) -> None:
        done.append(share)
        cancel.set()

    with pytest.raises(StepCancelled):
        encoder.run(EncoderInput([numbers(4, 8)], [4], (), cancel), stop)
    assert len(done) == 1
    encoder.close()
