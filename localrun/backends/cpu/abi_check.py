"""Comparison of a library's sizes, offsets and numbers with those that `abi.py` and `abi_step.py` declare, at load."""

import ctypes
from ctypes import POINTER, Structure, Union, c_char_p, c_int64

from localrun.backends.cpu import abi, abi_step
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import MAX_CANDIDATES
from localrun.ops.types import NUMERICS_VERSION

STRUCTURES: dict[str, type[Structure]] = {
    "lr_matrix": abi.Matrix,
    "lr_value": abi.Value,
    "lr_embed": abi.Embed,
    "lr_embed_mapped": abi.EmbedMapped,
    "lr_add_image_rows": abi.AddImageRows,
    "lr_norm": abi.Norm,
    "lr_adapter": abi.Adapter,
    "lr_linear": abi.Linear,
    "lr_rope_append": abi.RopeAppend,
    "lr_attention": abi.Attention,
    "lr_logits": abi.LogitsOp,
    "lr_routes": abi.Routes,
    "lr_route": abi.Route,
    "lr_experts": abi.Experts,
    "lr_combine": abi.Combine,
    "lr_sigmoid_mul": abi.SigmoidMul,
    "lr_gelu_mul": abi.GeluMul,
    "lr_scaling": abi.Scale,
    "lr_will_need": abi.WillNeed,
    "lr_layer_norm": abi.LayerNorm,
    "lr_self_attention": abi.SelfAttention,
    "lr_xielu": abi.Xielu,
    "lr_clamp": abi.Clamp,
    "lr_short_conv": abi.ShortConv,
    "lr_gated_delta_rule": abi.GatedDeltaRule,
    "lr_selective_scan": abi.SelectiveScan,
    "lr_head_linear": abi.HeadLinear,
    "lr_latent_append": abi.LatentAppend,
    "lr_instruction": abi.Instruction,
    "lr_kv_pool": abi_step.KVPoolC,
    "lr_kv_codes": abi_step.KVCodesC,
    "lr_cache_layer": abi_step.CacheLayerC,
    "lr_sequence": abi_step.SequenceC,
    "lr_adjust": abi_step.Adjust,
    "lr_candidates": abi_step.Candidates,
    "lr_draw": abi_step.DrawC,
    "lr_step": abi_step.Step,
    "lr_program": abi_step.ProgramC,
}
CONSTANTS = {
    "LR_BLOCK_TOKENS": BLOCK_TOKENS,
    "LR_STRIDE": abi.STRIDE,
    "LR_MAX_HEAD_DIM": abi.MAX_HEAD_DIM,
    "LR_MAX_KEY_DIM": abi.MAX_KEY_DIM,
    "LR_MAX_WEIGHTS": abi.MAX_WEIGHTS,
    "LR_MAX_CANDIDATES": MAX_CANDIDATES,
    "LR_SCALE_DIMS": abi.SCALE_DIMS,
    "LR_MAX_TAPS": abi.MAX_TAPS,
    "LR_DELTA_PANEL": abi.DELTA_PANEL,
    "LR_SCRATCH_BYTES": abi.SCRATCH_BYTES,
    "LR_ADAPTER_SPAN": abi.ADAPTER_SPAN,
    "LR_NUMERICS_VERSION": NUMERICS_VERSION,
    "LR_OK": abi.OK,
    "LR_CANCELLED": abi.CANCELLED,
    "LR_NO_MEMORY": abi.NO_MEMORY,
    "LR_FORMAT_Q8": abi.FORMAT_Q8,
    "LR_FORMAT_Q16": abi.FORMAT_Q16,
    "LR_FORMAT_BF16": abi.FORMAT_BF16,
    "LR_PROBE_INT8": abi.PROBE_INT8,
    "LR_PROBE_F16": abi.PROBE_F16,
    **{f"LR_QK_NORM_{name.upper()}": code for name, code in abi.QK_NORMS.items()},
    **{f"LR_ACT_{name.upper()}": code for name, code in abi.ACTIVATIONS.items()},
    **{f"LR_KV_{name.upper()}": code for name, code in abi.KV_CODES.items()},
    **{f"LR_OP_{name.upper()}": code for code, name in enumerate(abi.OPS)},
}


class _Entry(Structure):
    _fields_ = (("name", c_char_p), ("value", c_int64), ("bytes", c_int64))


Table = dict[str, tuple[int, int]]  # by name: offset or value, and size


def expected() -> Table:
    """Layouts of structures as `abi.py` and `abi_step.py` declare them."""
    table: Table = {name: (value, 0) for name, value in CONSTANTS.items()}
    for name, structure in STRUCTURES.items():
        table[name] = (0, ctypes.sizeof(structure))
        for field in _names(structure):
            descriptor = getattr(structure, field)
            table[f"{name}.{field}"] = (descriptor.offset, descriptor.size)
    return table


def found(cdll: ctypes.CDLL) -> Table:
    """Layouts of structures as the library declares them."""
    cdll.lr_abi.restype = POINTER(_Entry)
    entries = cdll.lr_abi()
    table: Table = {}
    while (entry := entries[len(table)]).name:
        table[entry.name.decode()] = (int(entry.value), int(entry.bytes))
    return table


def differences(cdll: ctypes.CDLL) -> list[str]:
    """One line for everything that the two do not agree on; empty for a library of this version's sources."""
    here, there = expected(), found(cdll)
    names = sorted(here.keys() | there.keys())
    return [f"{name} is {there.get(name)}, not {here.get(name)}" for name in names if here.get(name) != there.get(name)]


def _names(structure: type[Structure]) -> list[str]:
    """Fields of a structure, with those of a union in its place."""
    names: list[str] = []
    for name, kind, *_ in structure._fields_:
        names += [field for field, *_ in kind._fields_] if issubclass(kind, Union) else [name]
    return names
