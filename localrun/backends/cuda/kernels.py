"""Everything that is compiled for a GPU: one row a file and set of macros.

The tests compile each row for every architecture, and benchmarks/cuda_compile.py says how long that takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from localrun.backends.cuda.limits import shared_bytes
from localrun.backends.gpu import attention_blocks
from localrun.backends.gpu.layer_cache import codec_defines
from localrun.backends.gpu.logits import LAST, PARTS
from localrun.backends.gpu.mixture_memory import MANY
from localrun.backends.gpu.supports import MAX_KEYS
from localrun.backends.gpu.weight_layouts import LAYOUTS, MIXED, CodeLayout, mixed_defines
from localrun.base.dataclass import dataclass
from localrun.ops.kv import KV_CODECS, KVCodec

BLOCKS = attention_blocks.CUDA
CODED = tuple(codec for codec in KV_CODECS.values() if codec.k_bits < attention_blocks.F32)  # f16 first
HEAD_DIMS = (128, 32, 64, 80, 96, 112, 256, 512)
STATE_KEYS = (128, 64)  # of a head's state; every model of the catalogue has 128
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)  # Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50


@dataclass(frozen=True, slots=True)
class Unit:
    """A file of kernels/cuda and the macros it is compiled with; `what` says in a word what they stand for."""

    file: str
    what: str = ""
    defines: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file} {self.what}".strip()


def units() -> tuple[Unit, ...]:
    """All of them, in the order of their files' names."""
    every = (
        *(
            Unit("attention.cu", f"of heads of {dim} {codec.name}", BLOCKS.defines(dim, codec))
            for codec in CODED
            for dim in HEAD_DIMS
        ),
        *(Unit("attention_f32.cu", f"of heads of {dim}", {"DIM": dim}) for dim in HEAD_DIMS),
        *(
            Unit("attention_tiles.cu", f"of heads of {dim} {codec.name}", tile_defines(dim, codec))
            for codec in CODED
            for dim in HEAD_DIMS
            if BLOCKS.has_tiles(dim, codec)
        ),
        *(Unit("delta_rule.cu", f"of {n} keys", {"KEYS": n}) for n in STATE_KEYS),
        Unit("elementwise.cu"),
        Unit("gated_norm.cu"),
        Unit("intrinsics.cu"),
        Unit("linear_bf16.cu"),
        Unit("linear_bf16.cu", "after a gate", {"ACT": 1}),
        Unit("logits.cu", defines={"PART": PARTS[0]}),
        Unit("logits.cu", "at the end", {"PART": LAST}),
        Unit("mixture.cu", defines={"KEYS": MAX_KEYS}),
        Unit("norm.cu"),
        *(Unit("rope_append.cu", f"to {codec.name}", codec_defines(codec)) for codec in KV_CODECS.values()),
        *(Unit("selective_scan.cu", f"of {n} keys", {"KEYS": n}) for n in STATE_KEYS),
        *(Unit("short_conv.cu", f"of {n} taps", {"TAPS": n}) for n in (4, 3)),
        *weight_units(),
    )
    return tuple(sorted(every, key=lambda unit: unit.file))


def tile_defines(head_dim: int, codec: KVCodec) -> dict[str, int]:
    macro, n_warps = BLOCKS.tile_warps(head_dim, shared_bytes(ARCHITECTURES[-1]))
    return BLOCKS.defines(head_dim, codec) | {macro: n_warps}


def weight_units() -> Iterator[Unit]:
    """Units of the kernels that read weights, for every layout."""
    after: dict[str, int] = {"ACT": 1}
    beside: dict[str, int] = {"ACT": 1, "SIDES": 2}
    ways: dict[str, dict[str, dict[str, int]]] = {
        "linear.cu": {"": {}, "after a gate": after, "gate beside up": beside},
        "linear_gate.cu": {"": beside},
        "linear_many.cu": {
            **{f"{n_x} rows": {"N_X": n_x} for n_x in (16, 32, 64)},
            "64 rows after a gate": {"N_X": 64, **after},
        },
        "linear_dp4a.cu": {"": {}},
        "dequantize.cu": {"": {}},
        "experts.cu": {"": {}, "gate beside up": beside},
        "experts_many.cu": {f"{MANY} rows": {"N_X": MANY}, f"{MANY} rows after a gate": {"N_X": MANY, **after}},
    }
    float_ways: dict[str, dict[str, int]] = {"": {}, "after a gate": after}
    of_floats = {"linear_float.cu": float_ways, "experts_float.cu": float_ways}
    for layout in LAYOUTS:
        for file, which in (ways if isinstance(layout, CodeLayout) else of_floats).items():
            for way, defines in which.items():
                yield Unit(file, f"{layout.name} {way}".strip(), layout.defines | defines)
        yield Unit("embed.cu", layout.name, layout.defines)
    named = {layout.name: layout for layout in LAYOUTS if isinstance(layout, CodeLayout)}
    for first, second in MIXED:
        yield Unit("linear_mixed.cu", f"{first} beside {second}", mixed_defines(named[first], named[second]))
