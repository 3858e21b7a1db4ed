"""Bitsandbytes: 4-bit codes for 16 values (NF4, FP4), or 8-bit codes with a scale per row (LLM.int8).

4-bit matrices are stored flat, and their shape is in the description of the scales (`quant_state`); headers alone give
the number of elements. In a decoder one side of each matrix is the width of the embedding, which side follows from its
name, and the description has to agree; those of eyes and ears, which have other widths, stay as they are. Matrices of
NF4 stay packed where rows are whole blocks; numbers of others are those that the library multiplies: of the type that
the model's other weights have. Codes may be stored as floats (`bnb_4bit_quant_storage`), of which the bytes count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.checkpoints.expert_stacks import with_stacks
from localrun.formats.checkpoints.integers import held_type
from localrun.formats.checkpoints.joined import ROUTERS, Joined, JoinedTensor, ReadRows, Tensors, appears_as, misfit
from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.decode_table import NF4_VALUES
from localrun.formats.json_files import parse_json
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_STATE = ".quant_state.bitsandbytes__"
_EMBEDDINGS = ("embed_tokens.weight", "backbone.embeddings.weight")
_BACK = (  # whose rows are as many as the model is wide
    *(".o_proj", ".out_proj", ".down_proj", ".w2", ".fc2", ".wo", ".dense", ".output_linear"),
    ".per_layer_projection",  # of Gemma 4
)
_OF_SENSES = re.compile(r"visual|vision|audio|projector|connector")
_HELD = ("BF16", "F16")
_STORAGES = ("U8", "I8", "F16", "BF16", "F32")  # what holds the bytes of codes
_OF_LATENTS = ((".q_b_proj.", ".q_a_layernorm."), (".kv_b_proj.", ".kv_a_layernorm."))  # and the norm before each
_OF_EXPERT = re.compile(r"s\.[0-9]{1,5}$")  # of gpt-oss, such as down_projs.7
_BLOCK = 64  # numbers with a scale in what is held packed
_MAX_STATE = 1 << 16


def join_bitsandbytes(tensors: Tensors, config: Mapping[str, Any]) -> Joined:
    """Every matrix of codes with its scales. ModelFileError for parts that do not fit together."""
    found: Joined = {}
    read_once = ReadOnce()
    embedding = next((info for name, info in tensors.items() if name.endswith(_EMBEDDINGS)), None)
    for name, codes in tensors.items():
        scales = tensors.get(f"{name.removesuffix('weight')}SCB")
        is_flat = name.endswith(".weight") and f"{name}.absmax" in tensors
        if name.endswith(".weight") and codes.qtype == "I8" and scales is not None:
            if len(codes.shape) != 2 or scales.shape != codes.shape[:1] or scales.qtype != "F32":
                raise misfit(codes, f"of shape {list(codes.shape)} has scales of shape {list(scales.shape)}")
            kind = tensors.get(f"{name.removesuffix('weight')}weight_format")
            parts = (codes, scales, *([kind] if kind else []))
            held = held_type(name, codes.shape[1], codes.shape[1], scales.qtype, 8, symmetric=True)
            found[name] = Int8Rows(appears_as(name, codes.shape, held, codes), parts)
        elif is_flat and codes.qtype in _STORAGES and not _OF_SENSES.search(name):
            found[name] = four_bits(name, codes, tensors, embedding, read_once)
    return with_stacks(found, tensors)


def four_bits(
    name: str, codes: TensorInfo, tensors: Tensors, embedding: TensorInfo | None, read_once: ReadOnce
) -> JoinedTensor:
    """A 4-bit matrix. Raises ModelFileError."""
    absmax, table = tensors[f"{name}.absmax"], tensors.get(f"{name}.quant_map")
    state = next((tensors[name + _STATE + kind] for kind in ("nf4", "fp4") if name + _STATE + kind in tensors), None)
    if len(codes.shape) != 2 or codes.shape[1] != 1:
        raise misfit(codes, f"of shape {list(codes.shape)} is not one column of bytes")
    codes = replace(codes, qtype="U8", shape=(codes.nbytes, 1))
    if table is None or (table.qtype, table.shape) != ("F32", (16,)):
        raise misfit(codes, "has no table of 16 numbers (quant_map)")
    if state is None or state.qtype != "U8" or not 0 < state.nbytes <= _MAX_STATE:
        raise misfit(codes, "is described by nothing that can be read (quant_state)")
    nested = tuple(tensors.get(f"{name}.nested_{kind}") for kind in ("absmax", "quant_map"))
    if absmax.qtype not in ("F32", "U8") or len(absmax.shape) != 1 or (absmax.qtype == "U8") != all(nested):
        raise misfit(codes, f"has scales of type {absmax.qtype}, with those of scales or without")
    for part, length in zip(nested if all(nested) else (), (0, 256), strict=False):
        assert part is not None
        if part.qtype != "F32" or len(part.shape) != 1 or (length and part.shape != (length,)):
            raise misfit(part, f"cannot be of type {part.qtype} and shape {list(part.shape)}")
    width, count = width_of(name, tensors, embedding), 2 * prod(codes.shape)
    if not width or count % width or width % 2:
        raise misfit(codes, f"of {count:,} numbers is no matrix of a model that is {width:,} numbers wide")
    is_nf4 = state.name.endswith("nf4") and absmax.shape[0] * _BLOCK == count
    is_back = _OF_EXPERT.sub("", name.removesuffix(".weight")).endswith(_BACK)
    shape = (width, count // width) if is_back else (count // width, width)
    held = embedding.qtype if embedding and embedding.qtype in _HELD else "F32"
    if name.endswith(ROUTERS):
        held = "F32"
    elif is_nf4 and shape[1] % _BLOCK == 0:
        held = "NF4_G64"
    parts = (codes, absmax, table, state, *(part for part in nested if part is not None))
    return FourBits(appears_as(name, shape, held, codes), parts, read_once)


def width_of(name: str, tensors: Tensors, embedding: TensorInfo | None) -> int:
    """Columns of a matrix, or its rows: as many as the norm of the latent that it reads has, else the width of the
    model; 0 where neither is known."""
    norm = next((tensors.get(name.replace(*each)) for each in _OF_LATENTS if each[0] in name), None)
    if norm is not None and len(norm.shape) == 1:
        return norm.shape[0]
    return embedding.shape[-1] if embedding is not None and len(embedding.shape) == 2 else 0


@dataclass(frozen=True)
class FourBits(JoinedTensor):
    """`parts` are codes, scales, the table, the description and, where scales are codes, their scales and table."""

    read_once: ReadOnce = field(compare=False, repr=False)

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.parts import check_finite, read_bytes, read_numbers
        from localrun.formats.checkpoints.small_floats import in_floats

        all_rows, n_cols = self.info.shape
        block, scales = self.read_once.get(self.info.name, all_rows, n_rows, partial(self.block_scales, read_rows))
        first, count = first_row * n_cols, n_rows * n_cols
        raw = read_bytes(read_rows, self.parts[0], first // 2, -(-(first + count) // 2) - first // 2)
        if self.info.qtype == "NF4_G64":
            return self.packed_blocks(read_rows, raw, scales[first // block : (first + count) // block])
        codes = np.stack((raw >> 4, raw & 15), axis=1).ravel()[first % 2 :][:count]  # the first in the upper half
        values = read_numbers(read_rows, self.parts[2])[0][codes]
        with np.errstate(over="ignore", invalid="ignore"):
            values *= scales[np.arange(first, first + count) // block]
        check_finite(self.parts[0], values)
        return in_floats(self.info.qtype, values)

    def packed_blocks(self, read_rows: ReadRows, raw: np.ndarray, scales: np.ndarray) -> bytearray:
        """Blocks with their codes as they are, the first of a byte in its lower half. Raises ModelFileError."""
        import numpy as np

        from localrun.formats.checkpoints.parts import check_finite, read_numbers

        table = self.parts[2]
        if not np.array_equal(read_numbers(read_rows, table)[0], np.array(NF4_VALUES, np.float32)):
            raise misfit(table, "is not the table of NF4")
        check_finite(self.parts[0], scales)
        codes = (raw >> 4 | raw << 4).reshape(-1, _BLOCK // 2)
        return bytearray(np.concatenate((scales.astype("<f4").reshape(-1, 1).view(np.uint8), codes), axis=1).data)

    def block_scales(self, read_rows: ReadRows) -> tuple[int, np.ndarray]:
        """Elements per block, and the scale of each block, f32 [blocks]. Raises ModelFileError."""
        import numpy as np

        from localrun.formats.checkpoints.parts import read_bytes, read_numbers

        codes, absmax, _, state, *nested = self.parts
        try:
            told = parse_json(bytes(read_bytes(read_rows, state)), state.file, "BAD_TENSOR")
        except ModelFileError as error:
            raise misfit(state, "describes nothing: it is no JSON object") from error
        block, inner, offset = told.get("blocksize"), told.get("nested_blocksize"), told.get("nested_offset")
        if told.get("shape") != list(self.info.shape):
            raise misfit(
                codes, f"is of shape {told.get('shape')!r:.60} as it is described, not {list(self.info.shape)}"
            )
        if type(block) is not int or block < 1 or absmax.shape[0] != -(-prod(self.info.shape) // block):
            raise misfit(codes, f"has {absmax.shape[0]:,} scales, for blocks of {block!r:.20} numbers")
        if not nested:
            return block, read_numbers(read_rows, absmax).ravel()
        if type(inner) is not int or inner < 1 or type(offset) is not float:
            raise misfit(codes, "has scales of scales that are not described")
        each, table = (read_numbers(read_rows, part).ravel() for part in nested)
        if len(each) != -(-absmax.shape[0] // inner):
            raise misfit(codes, f"has {len(each):,} scales of scales, for blocks of {inner:,}")
        with np.errstate(over="ignore", invalid="ignore"):
            scales = table[read_bytes(read_rows, absmax)] * each.repeat(inner)[: absmax.shape[0]]
            scales += np.float32(offset)
        return block, scales


class Int8Rows(JoinedTensor):
    """Signed codes with the largest number of each row; `parts` are the codes and these numbers."""

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        from localrun.formats.checkpoints.codes import symmetric_blocks
        from localrun.formats.checkpoints.parts import read_bytes, read_numbers

        if len(self.parts) > 2 and read_bytes(read_rows, self.parts[2]).any():
            raise misfit(self.parts[2], "tells another order than that of rows")
        codes = read_bytes(read_rows, self.parts[0], first_row, n_rows).view(np.int8).reshape(n_rows, -1)
        largest = read_numbers(read_rows, self.parts[1])[0, first_row : first_row + n_rows]
        if self.info.qtype == "F32":
            values = codes * largest[:, None] * np.float32(1 / 127)
            return bytearray(values.astype("<f4").data)
        n_blocks = self.info.shape[1] // QUANT_TYPES[self.info.qtype].block_size
        scales = (largest * np.float32(1 / 127))[:, None].repeat(n_blocks, axis=1)
        return symmetric_blocks(codes, 8, scales)
