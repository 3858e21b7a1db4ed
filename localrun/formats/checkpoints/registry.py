"""Quantised checkpoints by `quant_method`: which are supported, and how their matrices are joined."""

from collections import Counter
from collections.abc import Callable

from localrun.base.dataclass import dataclass
from localrun.base.sanitize import clean
from localrun.formats.checkpoints.awq import join_awq, join_awq_gemv
from localrun.formats.checkpoints.bitsandbytes import join_bitsandbytes
from localrun.formats.checkpoints.compressed import join_compressed
from localrun.formats.checkpoints.declared import MLX, Config, quantization_of
from localrun.formats.checkpoints.fp8 import join_fp8
from localrun.formats.checkpoints.gemma import join_gemma
from localrun.formats.checkpoints.gptq import join_auto_round, join_auto_round_v2, join_gptq, join_gptq_v2
from localrun.formats.checkpoints.joined import Joined, Tensors, misfit
from localrun.formats.checkpoints.latent_halves import is_half, with_halves
from localrun.formats.checkpoints.mlx import join_mlx
from localrun.formats.checkpoints.mxfp4 import join_mxfp4
from localrun.formats.checkpoints.nvfp4 import join_nvfp4
from localrun.formats.checkpoints.quark import join_quark
from localrun.formats.checkpoints.schemes import weights_of


@dataclass(frozen=True, slots=True)
class Method:
    """Values of `quant_method` with the same format.

    `join` builds its tensors, `label` names it in menus where its config has no better word; `formats` and `held` are
    for the docs: what the tensors hold, and how it is held in memory.
    """

    names: tuple[str, ...]
    join: Callable[[Tensors, Config], Joined]
    label: str
    formats: str
    held: str


_AWQ_HELD = "INT4_ZP_G128, or INT4_ZP_G32 for other groups"
_GPTQ_HELD = (
    "to 4 bits Q4_0 and 8 bits Q8_0 if symmetric; if not, to 4 bits INT4_ZP_G128, INT4_ZP_G32 or Q4_0, and 8 bits "
    "INT8_ZP_G32; with desc_act likewise, its columns sorted by group"
)
_BITS_HELD = "BF16, F16 or F32, as the model's other weights are"
_ROWS = (
    Method(("mxfp4",), join_mxfp4, "mxfp4", "MXFP4 of gpt-oss's experts", "MXFP4"),
    Method(
        (MLX, "metal"),
        join_mlx,
        "",
        "affine of 1, 2, 3, 4, 5, 6 and 8 bits, mxfp4, nvfp4 and mxfp8; also different ones of each layer",
        "groups of 64 or more INT2_G64 to INT8_G64 (1 bit INT2_G64, 3 bits INT4_G64), of 32 Q4_1, Q5_1, INT6_G32 and "
        "INT8_G32; mxfp4 MXFP4, nvfp4 NVFP4, mxfp8 MXFP8",
    ),
    Method(
        (
            *(
                "fp8",
                "fbgemm_fp8",
                "compressed-tensors float-quantized",
                "quark fp8_e4m3",
                "auto-round fp",
                "auto-round fp8",
                "auto-round fp8_static",
            ),
            *(
                f"modelopt {kind}"
                for kind in ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB", "FP8_PB_WO", "FP8_BLOCK_SCALES")
            ),
        ),
        join_fp8,
        "fp8",
        "FP8 (E4M3, E5M2) with a scale for blocks, rows or the whole matrix, or without one",
        "F8_G128 with scales of blocks or rows, F8_E4M3 with one of the matrix; MXFP8 with powers of two for 32",
    ),
    Method(
        (
            "compressed-tensors nvfp4-pack-quantized",
            *(f"modelopt {kind}" for kind in ("NVFP4", "W4A16_NVFP4", "W4A8_NVFP4_FP8", "MIXED_PRECISION")),
        ),
        join_nvfp4,
        "nvfp4",
        "NVFP4 with a scale of the whole matrix, beside matrices in FP8, MXFP4 or floats",
        "NVFP4",
    ),
    Method(
        ("compressed-tensors mxfp4-pack-quantized", "modelopt MXFP4", "modelopt W4A8_MXFP4_FP8", "quark fp4"),
        join_nvfp4,
        "mxfp4",
        "MXFP4 beside matrices in FP8, NVFP4 or floats",
        "MXFP4",
    ),
    Method(
        ("mxfp8", "compressed-tensors mxfp8-quantized", "modelopt MXFP8"),
        join_nvfp4,
        "mxfp8",
        "MXFP8 likewise",
        "MXFP8",
    ),
    Method(
        tuple(
            f"compressed-tensors {kind}"
            for kind in ("pack-quantized", "int-quantized", "naive-quantized", "mixed-precision", "dense")
        ),
        join_compressed,
        "",
        "whole numbers of 1 to 8 bits with a scale for groups, rows or the whole matrix, with zero points or without; "
        "beside matrices in FP8, MXFP8, NVFP4 or MXFP4",
        "to 4 bits Q4_0, 5 to 8 bits Q8_0; with zero points to 4 bits INT4_ZP_G128, INT4_ZP_G32 or Q4_0, to 7 bits "
        "Q8_0, 8 bits INT8_ZP_G32; "
        "with actorder group likewise, columns sorted by group",
    ),
    Method(
        ("awq", *(f"awq {kind}" for kind in ("gemm", "exllama", "exllamav2", "ipex"))),
        join_awq,
        "awq",
        "AWQ of 4 bits with zero points, in the order of its gemm kernels",
        _AWQ_HELD,
    ),
    Method(("awq gemv",), join_awq_gemv, "awq", "AWQ in the order of its gemv kernels", _AWQ_HELD),
    Method(
        ("quark uint4 per_group", "quark int4 per_group"),
        join_quark,
        "quark int4",
        "Quark's 4 bits for groups of columns, signed or with zero points",
        f"Q4_0 where zero is in the middle, else {_AWQ_HELD}",
    ),
    Method(
        ("gptq", "gptq gptq"),
        join_gptq,
        "gptq",
        "GPTQ of 2, 3, 4 and 8 bits whose zero points are kept less one",
        _GPTQ_HELD,
    ),
    Method(("gptq gptq_v2",), join_gptq_v2, "gptq", "GPTQ, version 2 of the format", _GPTQ_HELD),
    Method(
        ("auto-round", *(f"auto-round {kind}" for kind in ("auto", "gptq", "auto_gptq"))),
        join_auto_round,
        "autoround",
        "AutoRound of 2 to 8 bits, packed as GPTQ",
        _GPTQ_HELD,
    ),
    Method(
        ("auto-round auto_round", "auto-round gptqmodel"),
        join_auto_round_v2,
        "autoround",
        "AutoRound of 2 to 8 bits, packed as version 2 of GPTQ",
        _GPTQ_HELD,
    ),
    Method(("auto-round awq", "auto-round auto_awq"), join_awq, "autoround", "AutoRound, packed as AWQ", _AWQ_HELD),
    Method(
        ("gemma",),
        join_gemma,
        "qat",
        "Gemma's checkpoints for phones: 2, 4 and 8 bits, also of embeddings",
        "to 4 bits INT4_SYM_F32_G128 and 8 bits INT8_SYM_F32_G128, or _G32 where a scale is for no multiple of 128",
    ),
    Method(
        ("bitsandbytes nf4",),
        join_bitsandbytes,
        "nf4",
        "NF4, with scales that are codes themselves or not, in bytes or stored as floats; gpt-oss's experts one by one",
        f"NF4_G64 with a scale for 64 in rows of whole blocks, else {_BITS_HELD}",
    ),
    Method(("bitsandbytes fp4",), join_bitsandbytes, "fp4", "FP4 likewise", _BITS_HELD),
    Method(("bitsandbytes int8",), join_bitsandbytes, "llm.int8", "LLM.int8", "INT8_SYM_F32_G128, or _G32"),
    Method(
        ("auto-round llm_compressor",),
        join_compressed,
        "autoround",
        "AutoRound, packed as compressed-tensors",
        "as there",
    ),
)
METHODS: dict[str, Method] = {name: method for method in _ROWS for name in method.names}


def join_quantised(tensors: Tensors, metadata: Config) -> Joined:
    """The tensors that a checkpoint stores in several, by the names of an unquantised one.

    Raises ModelFileError for parts that do not fit together. Empty for an unsupported method.
    """
    found = quantization_of(metadata)
    method = METHODS.get(found.method)
    return method.join(tensors, found.config) if method else {}


def joined_tensors(parts: Tensors, metadata: Config) -> tuple[Tensors, Joined]:
    """The tensors of a checkpoint as the model sees them, and how those are read that its files have otherwise.

    Raises ModelFileError as the method does, and where tensors do not fit together.
    """
    quantised = join_quantised(parts, metadata)
    return with_halves(with_joined(parts, quantised), quantised, metadata)


def with_joined(tensors: Tensors, joined: Joined) -> Tensors:
    """All tensors as the model sees them: joined ones instead of their parts.

    ModelFileError for one that is there whole as well.
    """
    parts = {part.name for one in joined.values() for part in one.parts}
    kept = {name: info for name, info in tensors.items() if name not in parts}
    if twice := next((name for name in joined if name in kept), ""):
        raise misfit(kept[twice], "is in the files twice, once as it is and once quantised")
    return kept | {name: one.info for name, one in joined.items()}


def held_as(tensors: Tensors, held_bits: Callable[[str], float]) -> str:
    """A note about the types of joined matrices, and their bits per weight in memory; empty where there are none."""
    packed = (info for info in tensors.values() if info.is_joined and len(info.shape) > 1 and not is_half(info))
    types = Counter(info.qtype for info in packed)
    each = [f"{qtype}, {held_bits(qtype):.4g} bits a weight ({n:,} matrices)" for qtype, n in types.most_common()]
    return f"its packed weights are held as {'; '.join(each)}" if each else ""


def precision_label(metadata: Config) -> str:
    """Short name of the quantisation: `int4 g64`, `awq int4 g128`, `mxfp4`; empty for none."""
    found = quantization_of(metadata)
    label = METHODS[found.method].label if found.method in METHODS else _word(found.method)
    weights = next((weights for _, weights in weights_of(found.config)), found.config)
    mode, group = weights.get("mode"), weights.get("group_size")
    bits = next((weights[key] for key in ("bits", "num_bits") if type(weights.get(key)) is int), None)
    if isinstance(mode, str) and mode != "affine":
        return _word(mode)
    is_int = label != "fp8" and weights.get("type", weights.get("data_type", "int")) == "int"
    if bits is None or not 0 < bits <= 32 or not is_int:
        return label
    return f"{label} int{bits} {f'g{group}' if type(group) is int and 0 < group <= 1 << 16 else 'rows'}".strip()


def _word(text: str) -> str:
    """A value of somebody's config, as a label shows it."""
    return clean(text[:20], keep_newlines=False)
