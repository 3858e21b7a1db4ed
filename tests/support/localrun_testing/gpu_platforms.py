"""Both platforms that have kernels of their own, on the emulator: what tests do alike with either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from torch import Tensor

from localrun.backends.gpu import attention
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.layer_cache import LayerCache
from localrun.backends.gpu.step_tensors import StepTensors
from localrun.backends.reference.pool import KVPool
from localrun.ops.instructions import Attention, RopeAppend
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.emulator.metal import emulated_device


@dataclass(frozen=True)
class Platform:
    """CUDA or Metal. extra_bits: of tensor cores that cut their sums off; see EmulatedDevice."""

    name: str
    usual: Device
    extra_bits: int | None = None

    def __str__(self) -> str:
        return self.name if self.extra_bits is None else f"{self.name}, {self.extra_bits} extra bits"

    @property
    def close(self) -> float:
        """The error of attention that is right, of the greatest number."""
        return 1.5e-6 if self.extra_bits is None else lost_at_most(self.extra_bits)

    @property
    def attentions(self) -> Any:
        """The module with the launches of attention."""
        return attention

    def device(self, *, seed: int = 0, poison: int = 0xFF) -> Device:
        """One whose threads run in another order."""
        if self.name == "cuda":
            return EmulatedDevice(seed=seed, poison=poison, extra_bits=self.extra_bits)
        return emulated_device(seed=seed, poison=poison)

    def rope_append(
        self, step: StepTensors, op: RopeAppend, pool: KVPool, operands: Sequence[Tensor | None], rows: int
    ) -> None:
        """Run `op` in layer 1; operands: q, k, v, and where the queries go."""
        q, k, v, out, sink_out = operands
        assert q is not None
        assert out is not None
        self.attentions.rope_append(self.usual, step, op, cache_of(pool), q, k, v, out, sink_out, rows)()

    def attend(
        self,
        device: Device,
        step: StepTensors,
        op: Attention,
        pool: KVPool,
        operands: tuple[Tensor, Tensor | None, Tensor],
        rows: int,
        n_units: int,
        partial: Tensor,
        n_alone: int = 0,
    ) -> None:
        """Run `op` in layer 1; operands: q, the query towards block 0, and where the result goes."""
        q, sink_query, out = operands
        given = (q, sink_query, out, rows, n_units, partial, n_alone)
        for launch in self.attentions.attend(device, step, op, cache_of(pool), *given):
            launch()


def cache_of(pool: KVPool) -> LayerCache:
    """Layer 1 of a pool of one group."""
    return LayerCache(pool.layers[1], pool.codecs[1], pool.store(0, ring=False), pool.ring[0])


def lost_at_most(extra_bits: int, n: int = 128) -> float:
    """Bound of what sums of n products lose when they are cut off, of the greatest partial sum.

    Every product, and the sum before each unit, loses less than a bit; so does what comes of a unit
    (localrun/backends/cuda/self_test.py).
    """
    units = n // (4 << extra_bits)
    return float((n + units) * 2.0 ** -(23 + extra_bits) + units * 2.0**-23)


CUDA = Platform("cuda", EmulatedDevice())
METAL = Platform("metal", emulated_device())
PLATFORMS = (CUDA, METAL)
TURING, AMPERE, HOPPER = (Platform("cuda", EmulatedDevice(extra_bits=bits), bits) for bits in (0, 1, 2))
# For what is summed by tensor cores.
EVERY_ROUNDING = (
    *(CUDA, METAL, TURING),
    *(pytest.param(platform, marks=pytest.mark.slow, id=str(platform)) for platform in (AMPERE, HOPPER)),
)
