"""Decoders against the gguf package, bit for bit; where it has none, against the layout of the struct."""

import struct
from contextlib import nullcontext
from statistics import NormalDist
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest
import torch
from gguf import GGMLQuantizationType, quants
from localrun_testing.pretend_gpu import pretended_gpu
from torch.utils._python_dispatch import TorchDispatchMode

from localrun.base.errors import ModelFileError, UsageError
from localrun.formats.decode_table import NF4_VALUES
from localrun.formats.quant import BY_GGUF_ID, QUANT_TYPES, QuantType

Blocks = npt.NDArray[np.uint8]

OF_SAFETENSORS = ("U8", "U16", "U32", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0")
AFFINE = {"INT2_G64": 2, "INT4_G64": 4, "INT5_G64": 5, "INT6_G32": 6, "INT6_G64": 6, "INT8_G32": 8, "INT8_G64": 8}
ZERO_POINTS = {"INT4_ZP_G32": 4, "INT4_ZP_G128": 4, "INT8_ZP_G32": 8}
WITH_F32_SCALES = [name for name in QUANT_TYPES if "_F32_" in name]
OF_CHECKPOINTS = (*AFFINE, *ZERO_POINTS, *WITH_F32_SCALES, "NF4_G64", "F8_G128", "MXFP8")
WITHOUT_ORACLE = ("F64", "I8", "I16", "I32", "I64", "Q8_K", "Q1_0", "Q2_0", *OF_SAFETENSORS, *OF_CHECKPOINTS)
WITH_ORACLE = [name for name in QUANT_TYPES if name not in WITHOUT_ORACLE]
INTEGER_FORMATS = {"I8": "b", "U8": "B", "U16": "H", "U32": "I", "I16": "h", "I32": "i", "I64": "q"}
SPECIAL_HALVES = (0x0000, 0x8000, 0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF, 0x7BFF, 0xFBFF, 0x0400)
# Where the fp16 scales of a block are, so that special values can be put there.
SCALE_OFFSETS = {
    "Q1_0": (0,), "Q2_0": (0,),
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,), "IQ3_XXS": (0,),
    "IQ3_S": (0,), "IQ1_S": (0,), "IQ4_NL": (0,), "IQ4_XS": (0,), "TQ1_0": (52,), "TQ2_0": (64,), "F16": (0,),
    **dict.fromkeys(AFFINE, (0, 2)),
    **dict.fromkeys(ZERO_POINTS, (0,)),
}  # fmt: skip

LLAMA_CPP_MADE = (  # a block, and the first of its numbers in quarters of 1.5
    ("Q1_0", "0036a42b92659fba84103cfa21bc13fae2f2", (-1, -1, 1, -1, -1, 1, -1, 1, 1, 1, -1, 1, -1, 1, -1, -1)),
    ("Q2_0", "0036f9c67ed85107136610ad7de1da29b2d2", (0, 1, 2, 2, 1, 0, -1, 2, 1, 2, 2, 0, -1, 1, 0, 2)),
)


def random_blocks(qtype: QuantType, n_blocks: int, seed: int) -> Blocks:
    """Random bytes; an eighth of the blocks get special fp16 scales, an eighth all ones or all zeros."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (n_blocks, qtype.block_bytes), dtype=np.uint8)
    eighth = n_blocks // 8
    for offset in SCALE_OFFSETS.get(qtype.name, ()):
        special = rng.choice(np.array(SPECIAL_HALVES, "<u2"), eighth)
        blocks[:eighth, offset : offset + 2] = special.view(np.uint8).reshape(-1, 2)
    blocks[eighth : eighth * 2] = rng.choice(np.array([0, 255], np.uint8), (eighth, 1))
    return blocks


def assert_same_bits(found: torch.Tensor, expected: npt.NDArray[np.float32]) -> None:
    values = found.numpy().reshape(expected.shape)
    same = (values.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(values) & np.isnan(expected))
    assert same.all(), f"{(~same).sum()} of {same.size} differ, the first at {np.argwhere(~same)[0]}"


def check_against_gguf(name: str, n_blocks: int) -> None:
    qtype = QUANT_TYPES[name]
    blocks = random_blocks(qtype, n_blocks, seed=n_blocks)
    with np.errstate(all="ignore"):
        expected = quants.dequantize(blocks, GGMLQuantizationType[name]).reshape(n_blocks, qtype.block_size)
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (n_blocks, qtype.block_size)), expected)


@pytest.mark.parametrize("name", WITH_ORACLE)
def test_decodes_like_gguf(name: str) -> None:
    check_against_gguf(name, 6000)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_ORACLE)
def test_decodes_like_gguf_on_many_blocks(name: str) -> None:
    check_against_gguf(name, 100_000)


@pytest.mark.parametrize(("name", "code"), INTEGER_FORMATS.items())
def test_decodes_integers(name: str, code: str) -> None:
    qtype = QUANT_TYPES[name]
    blocks = random_blocks(qtype, 4000, seed=1)
    expected = np.array([struct.unpack("<" + code, block.tobytes()) for block in blocks]).astype(np.float32)
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (4000,)), expected)


def test_decodes_float64() -> None:
    values = np.array([0.0, -0.0, 1 / 3, 1e300, -1e300, 1e-42, np.inf, np.nan, 16777217.0])
    blocks = np.frombuffer(values.tobytes(), np.uint8).copy()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float32)
    assert_same_bits(QUANT_TYPES["F64"].decode(torch.from_numpy(blocks), (9,)), expected)


@np.errstate(all="ignore")
def test_decodes_q8_k() -> None:
    """float d · int8 qs[256] · int16 bsums[16], which are not part of the value."""
    blocks = random_blocks(QUANT_TYPES["Q8_K"], 500, seed=2)
    expected = [
        [np.float32(scale) * np.float32(code) for code in codes]
        for scale, *codes in (struct.unpack("<f256b", block[:260].tobytes()) for block in blocks)
    ]
    assert_same_bits(QUANT_TYPES["Q8_K"].decode(torch.from_numpy(blocks), (500, 256)), np.array(expected))


@np.errstate(all="ignore")
@pytest.mark.parametrize(
    ("name", "bits", "numbers"), [("Q1_0", 1, (-1, 1)), ("Q2_0", 2, (-1, 0, 1, 2))], ids=["Q1_0", "Q2_0"]
)
def test_decodes_types_that_the_gguf_package_does_not(name: str, bits: int, numbers: tuple[int, ...]) -> None:
    """half d · fields of so many bits, those of a byte from its lowest on; each stands for a multiple of d."""
    qtype = QUANT_TYPES[name]
    blocks = random_blocks(qtype, 500, seed=7)
    expected = []
    for block in blocks:
        d, packed = np.frombuffer(block[:2].tobytes(), "<f2").astype(np.float32)[0], int.from_bytes(block[2:], "little")
        fields = (packed >> bits * place & (1 << bits) - 1 for place in range(qtype.block_size))
        expected.append([np.float32(numbers[field]) * d for field in fields])
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (500, qtype.block_size)), np.array(expected))


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", AFFINE)
def test_decodes_affine_groups(name: str) -> None:
    """half scale · half minimum · codes that follow each other bit by bit."""
    qtype, bits = QUANT_TYPES[name], AFFINE[name]
    blocks = random_blocks(qtype, 500, seed=8)
    expected = []
    for block in blocks:
        scale, minimum = np.frombuffer(block[:4].tobytes(), "<f2").astype(np.float32)
        stream = int.from_bytes(block[4:], "little")
        codes = (stream >> bits * place & (1 << bits) - 1 for place in range(qtype.block_size))
        expected.append([scale * np.float32(code) + minimum for code in codes])
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (500, qtype.block_size)), np.array(expected))


@np.errstate(all="ignore")
def test_decodes_nf4() -> None:
    """float scale · nibbles, that of the lower half first, each the name of a quantile of a normal distribution."""
    assert pytest.approx([quantile(code) for code in range(16)], abs=1e-6) == NF4_VALUES
    qtype = QUANT_TYPES["NF4_G64"]
    blocks = random_blocks(qtype, 500, seed=11)
    expected = []
    for block in blocks:
        (scale,), stream = np.frombuffer(block[:4].tobytes(), "<f4"), int.from_bytes(block[4:], "little")
        expected.append([scale * np.float32(NF4_VALUES[stream >> 4 * place & 15]) for place in range(64)])
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (500, 64)), np.array(expected))


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", WITH_F32_SCALES)
def test_decodes_groups_with_f32_scales(name: str) -> None:
    """float scale · float minimum or byte zero point or neither · codes that follow each other bit by bit."""
    qtype, bits = QUANT_TYPES[name], int(name[3])
    beside = 1 if "_ZP_" in name else 0 if "_SYM_" in name else 4
    blocks = random_blocks(qtype, 500, seed=12)
    expected = []
    for block in blocks:
        (scale,), stream = np.frombuffer(block[:4].tobytes(), "<f4"), int.from_bytes(block[4 + beside :], "little")
        codes = [stream >> bits * place & (1 << bits) - 1 for place in range(qtype.block_size)]
        zero = int(block[4]) if beside == 1 else 0 if beside else 1 << (bits - 1)
        minimum = np.frombuffer(block[4:8].tobytes(), "<f4")[0] if beside == 4 else None
        numbers = [scale * np.float32(code - zero) for code in codes]
        expected.append([number if minimum is None else number + minimum for number in numbers])
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (500, qtype.block_size)), np.array(expected))


def quantile(code: int) -> float:
    """As bitsandbytes makes its table (functional.create_normal_map): quantiles of both signs, and 0, scaled to 1."""
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + (0.5 - offset) * place / 8) for place in range(8)]
    below = [-normal.inv_cdf(offset + (0.5 - offset) * place / 7) for place in range(7)]
    return sorted([*above, 0.0, *below])[code] / max(above)


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", ZERO_POINTS)
def test_decodes_groups_with_a_zero_point(name: str) -> None:
    """half scale · byte zero point · codes that follow each other bit by bit."""
    qtype, bits = QUANT_TYPES[name], ZERO_POINTS[name]
    blocks = random_blocks(qtype, 500, seed=10)
    expected = []
    for block in blocks:
        scale, stream = (
            np.frombuffer(block[:2].tobytes(), "<f2").astype(np.float32)[0],
            int.from_bytes(block[3:], "little"),
        )
        codes = (stream >> bits * place & (1 << bits) - 1 for place in range(qtype.block_size))
        expected.append([scale * np.float32(code - int(block[2])) for code in codes])
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (500, qtype.block_size)), np.array(expected))


@np.errstate(all="ignore")
@pytest.mark.parametrize(("name", "scale_type"), [("F8_G128", "<f4"), ("MXFP8", "u1")])
def test_decodes_groups_of_e4m3(name: str, scale_type: str) -> None:
    """A float or the exponent of a power of two, and codes of a sign, four bits of exponent and three of fraction."""
    qtype = QUANT_TYPES[name]
    blocks = random_blocks(qtype, 500, seed=9)
    expected = []
    for block in blocks:
        (scale,) = np.frombuffer(block[: -qtype.block_size].tobytes(), scale_type)
        if name == "MXFP8":
            scale = np.float32(np.nan if scale == 255 else 2.0 ** (int(scale) - 127))
        expected.append([scale * e4m3(int(code)) for code in block[-qtype.block_size :]])
    assert_same_bits(qtype.decode(torch.from_numpy(blocks), (500, qtype.block_size)), np.array(expected))


def e4m3(code: int) -> np.float32:
    exponent, fraction = code >> 3 & 15, code & 7
    size = 2.0 ** (exponent - 7) * (1 + fraction / 8) if exponent else 2.0**-6 * fraction / 8
    return np.float32(np.nan if code & 127 == 127 else -size if code >> 7 else size)


def test_decodes_what_llama_cpp_made_of_one_and_two_bits() -> None:
    """Blocks and the numbers that its dequantize_row_q1_0 and q2_0 give for them (its tree of 2026-10)."""
    for name, block, quarters in LLAMA_CPP_MADE:
        qtype = QUANT_TYPES[name]
        found = qtype.decode(torch.tensor(list(bytes.fromhex(block)), dtype=torch.uint8), (qtype.block_size,))
        assert found[: len(quarters)].tolist() == [0.375 * number for number in quarters]


def test_sizes_and_ids_are_those_of_gguf() -> None:
    for row in QUANT_TYPES.values():
        if row.gguf_id is not None and row.name != "Q2_0":  # the package has not yet heard of it
            assert gguf.GGML_QUANT_SIZES[GGMLQuantizationType(row.gguf_id)] == (row.block_size, row.block_bytes)
            assert GGMLQuantizationType(row.gguf_id).name == row.name
            assert BY_GGUF_ID[row.gguf_id] is row
    assert {t.name for t in GGMLQuantizationType} - set(QUANT_TYPES) == {"Q8_1"}  # no file's weights use it


@pytest.mark.parametrize("name", list(QUANT_TYPES))
def test_reads_odd_pieces_of_memory(name: str) -> None:
    """Bytes that start anywhere, three dimensions, more than one chunk."""
    qtype = QUANT_TYPES[name]
    n_blocks = 3 * (1 << 20) // qtype.block_size // 2 if name in ("Q4_K", "F16") else 24
    blocks = torch.from_numpy(random_blocks(qtype, n_blocks, seed=3))
    shape = (2, n_blocks // 4, 2 * qtype.block_size)
    shifted = torch.empty(blocks.numel() + 1, dtype=torch.uint8)[1:]
    shifted.copy_(blocks.flatten())
    values = qtype.decode(shifted, shape)
    assert values.shape == shape
    assert values.dtype == torch.float32
    assert values.is_contiguous()
    parts = [qtype.decode(block, (qtype.block_size,)) for block in blocks[-5:]]
    assert_same_bits(values.reshape(n_blocks, -1)[-5:], torch.stack(parts).numpy())


def test_decodes_nothing() -> None:
    assert QUANT_TYPES["Q4_K"].decode(torch.empty(0, dtype=torch.uint8), (0, 256)).shape == (0, 256)


def test_refuses_bytes_that_do_not_fit_the_shape() -> None:
    with pytest.raises(ModelFileError, match="35 bytes"):
        QUANT_TYPES["Q8_0"].decode(torch.zeros(35, dtype=torch.uint8), (32,))
    with pytest.raises(UsageError, match="multiple of 32"):
        QUANT_TYPES["Q8_0"].decode(torch.zeros(34, dtype=torch.uint8), (2, 16))


ENCODED = [name for name, row in QUANT_TYPES.items() if row.encodes]


@pytest.mark.parametrize("name", ENCODED)
def test_encodes_like_gguf(name: str) -> None:
    weights = torch.randn(6, 512, generator=torch.Generator().manual_seed(4))
    qtype = QUANT_TYPES[name]
    raw = qtype.encode(weights)
    expected = quants.quantize(weights.numpy(), GGMLQuantizationType[name])
    assert raw.numpy().tobytes() == expected.tobytes()
    assert raw.dtype == torch.uint8
    assert raw.numel() == qtype.nbytes((6, 512))


def test_encode_says_what_it_cannot_write() -> None:
    with pytest.raises(UsageError, match="Q4_K can be read but not written"):
        QUANT_TYPES["Q4_K"].encode(torch.zeros(256))
    with pytest.raises(UsageError, match="multiple of 32"):
        QUANT_TYPES["Q8_0"].encode(torch.zeros(33))


class ForbidWideTypes(TorchDispatchMode):
    """Fails on a float64 or complex result, which Apple GPUs do not have."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            assert result.dtype is not torch.float64
            assert not result.dtype.is_complex
        return result


@pytest.mark.parametrize("name", [name for name in QUANT_TYPES if name != "F64"])
def test_uses_no_type_that_apple_gpus_lack(name: str) -> None:
    blocks = torch.from_numpy(random_blocks(QUANT_TYPES[name], 8, seed=5))
    with ForbidWideTypes():  # type: ignore[no-untyped-call]
        QUANT_TYPES[name].decode(blocks, (8, QUANT_TYPES[name].block_size))


@pytest.mark.parametrize("name", list(QUANT_TYPES))
def test_decodes_the_same_on_cuda(name: str) -> None:
    """Without a GPU a stand-in shows that no part of it stays in main memory."""
    qtype = QUANT_TYPES[name]
    blocks = torch.from_numpy(random_blocks(qtype, 2000, seed=6))
    shape = (2000, qtype.block_size)
    expected = qtype.decode(blocks, shape).numpy()
    with nullcontext() if torch.cuda.is_available() else pretended_gpu():
        assert_same_bits(qtype.decode(blocks.to("cuda"), shape).cpu(), expected)
