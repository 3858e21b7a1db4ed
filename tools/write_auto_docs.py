"""Write docs/auto.md: what `auto` takes for every model of the catalogue on graphics cards of 8 to 24 GB."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.driver import Gpu
from localrun.base.errors import DoesNotFitError
from localrun.base.machine import Memory
from localrun.base.units import gib, percent
from localrun.fit.decode_time import (
    GRAPH_SECONDS,
    KERNEL_SECONDS,
    KERNEL_SHARE,
    LAUNCH_SECONDS,
    NODE_SECONDS,
    TORCH_SECONDS,
)
from localrun.fit.fastest import DecodeTimes
from localrun.fit.memory_plan import MemoryPlan
from localrun.fit.plan import LoadRequest, plan_load
from localrun.fit.precisions import bits_of
from localrun.fit.rates import READ_SHARE, Rates
from localrun.fit.shape import ModelShape
from localrun.fit.weights import type_of
from localrun.formats.quant import QUANT_TYPES
from localrun.hub.catalogue import read_catalogue
from localrun.hub.catalogue_shape import catalogue_shape
from localrun.model.recording import record_shapes
from tools import ROOT

PAGE = ROOT / "docs" / "auto.md"
TAKEN = 0.6 * (1 << 30)  # bytes of a card that a desktop takes
CPU_RATES = Rates(60e9, 1e12)  # of two channels of DDR5
SQUARE = 4096
HEAD = """# What `auto` takes on a graphics card

A model with kernels for all of its parts runs on the GPU where it fits. What torch computes there, by the reference
operations, may be slower than the CPU by a factor of ten; then `auto` takes the CPU, and says so in `doctor`, `show`,
`fit` and in the notes of a load. `--backend` overrules it.

**This table is an estimate: nothing in it was measured on a GPU.** `python -m tools.write_auto_docs` makes it with the
functions that a load asks, on pretended cards, from which a desktop takes {taken}, beside a CPU that reads
{cpu:.0f} GB/s. A token takes as long as its matrices are read, at {kernel_share} of what a copy reaches on the GPU and
{cpu_share} of what all cores read on the CPU. To that come {node} µs for each kernel, since a step is one CUDA graph,
and at least {graph} ms are the host's, or as much more where layers are recurrent (`localrun/fit/decode_time.py` says
where that is from). Where torch does more than look up embeddings, there is no graph: a kernel takes {kernel:.0f} µs,
and {launch:.0f} µs of the host. What torch computes takes {torch:.0f} µs an operation, and as long as it reads and
writes. Who has a card finds out with `python -m benchmarks.gpu_minutes`.

A cell says where the model runs, tokens a second, the codec of the cache and the longest context. `CPU: m (n)`: the CPU
comes to m tokens a second, the GPU with torch to n. `GPU with torch`: torch computes parts of the model, and the GPU is
faster all the same. `-`: it does not fit the card, and runs on the CPU where main memory holds it.

"""


@dataclass(frozen=True, slots=True)
class Card:
    """A graphics card by its data sheet."""

    name: str
    gib: float
    gbps: float
    arch: int
    processors: int
    clock_hz: float

    @property
    def gpu(self) -> Gpu:
        total = int(self.gib * (1 << 30))
        return Gpu(self.name, self.arch, 13000, total, None, self.processors, self.clock_hz, 1e9 * self.gbps)


CARDS = (
    Card("RTX 4060, 8 GB", 8.0, 272, 89, 24, 2.46e9),
    Card("RTX 3060, 12 GB", 12.0, 360, 86, 28, 1.78e9),
    Card("RTX 5060 Ti, 16 GB", 16.0, 448, 120, 36, 2.57e9),
    Card("RTX 4090, 24 GB", 24.0, 1008, 89, 128, 2.52e9),
)


class PretendedCuda(CudaBackend):
    """The CUDA backend on a card that is not there."""

    is_emulated = False
    arch = 0  # of the card

    def __init__(self, card: Card) -> None:
        self.card, self.arch = card, card.arch

    @property
    def gpu(self) -> Gpu:
        return self.card.gpu

    @property
    def torch_name(self) -> str:
        return "cuda"

    def memory(self, main: Memory) -> Memory:
        return Memory(self.gpu.total, int(self.gpu.total - TAKEN))

    @property
    def rates(self) -> Rates:
        limits = self.limit_probe(1).measure()
        return Rates(1e9 * limits.read_gbps, 1e9 * limits.int8_gmacs, 1e9 * limits.bf16_gmacs)


@dataclass(frozen=True, slots=True)
class Choice:
    """A model on a card: its plan there, None where it does not fit, and seconds of a token there and on the CPU."""

    plan: MemoryPlan | None
    parts: tuple[str, ...] = ()  # that are torch's there
    on_gpu: float = 0.0
    on_cpu: float = 0.0

    @property
    def takes_gpu(self) -> bool:
        return self.plan is not None and (not self.parts or self.on_gpu <= self.on_cpu)

    def __str__(self) -> str:
        if self.plan is None:
            return "-"
        if not self.takes_gpu:
            return f"CPU: {1 / self.on_cpu:.0f} ({1 / self.on_gpu:.0f})"
        torch = " with torch" if self.parts else ""
        return f"GPU{torch}: {1 / self.on_gpu:.0f}, {self.plan.codec.name}, {self.plan.ctx:,}"


@cache
def choice(card: Card, name: str) -> Choice:
    """The choice of `auto` for a catalogue model at its usual precision."""
    backend, shape, precision = PretendedCuda(card), shape_named(name), precision_of(name)
    model, free = record_shapes(shape.config), backend.memory(Memory(0, 0)).available
    try:
        plan = plan_load(LoadRequest(shape.config, weight_bytes(backend, shape, precision), free, backend))
    except DoesNotFitError:
        return Choice(None)
    times = DecodeTimes(backend, backend.rates, CPU_RATES, bits_of(precision))
    parts = tuple(backend.without_kernels(model))
    return Choice(plan, parts, times.on_gpu(model), times.on_cpu(model))


def weight_bytes(backend: PretendedCuda, shape: ModelShape, precision: str) -> int:
    """Bytes of all weights as the backend holds them."""
    qtype, bits = type_of(precision), bits_of(precision)
    if qtype is not None:
        bits *= backend.matrix_bytes(qtype, SQUARE, SQUARE) * 8 / SQUARE**2 / QUANT_TYPES[qtype].bits
    return int(shape.held_params * bits / 8)


def shape_named(name: str) -> ModelShape:
    shape = catalogue_shape(read_catalogue()[name])
    assert shape is not None
    return shape


def precision_of(name: str) -> str:
    offered = read_catalogue()[name].get("precisions", [])
    return "Q4_K_M" if "Q4_K_M" in offered or not offered else offered[0]


def models() -> list[str]:
    """Models of the catalogue whose shape is known and can run."""
    shapes = {name: catalogue_shape(entry) for name, entry in read_catalogue().items()}
    return [name for name, shape in shapes.items() if shape is not None and not shape.obstacle]


def page() -> str:
    """The whole page."""
    header = ["model", "precision", *(card.name for card in CARDS)]
    rows = [[name, precision_of(name), *(str(choice(card, name)) for card in CARDS)] for name in models()]
    head = HEAD.format(
        taken=gib(TAKEN),
        cpu=CPU_RATES.read_bytes / 1e9,
        kernel_share=percent(KERNEL_SHARE),
        cpu_share=percent(READ_SHARE),
        kernel=KERNEL_SECONDS * 1e6,
        launch=LAUNCH_SECONDS * 1e6,
        node=NODE_SECONDS * 1e6,
        graph=GRAPH_SECONDS * 1e3,
        torch=TORCH_SECONDS * 1e6,
    )
    return head + "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * len(header), *rows])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
