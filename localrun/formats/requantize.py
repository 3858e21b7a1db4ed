"""Weights quantised while they are read: a source whose float matrices appear as Q8_0, Q4_0 or Q2_K."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.encode_q2_k import encode_q2_k
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantizing_source import RequantizingSource
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    from torch import Tensor

FLOAT_TYPES = ("F32", "F16", "BF16")
SMALL_FLOAT_TYPES = ("F8_E4M3", "F8_G128", "MXFP8")  # of checkpoints
PRECISIONS = {"int8": "Q8_0", "int4": "Q4_0", "int2": "Q2_K"}
ODD_ROWS_TYPE = "Q4_0"  # where rows are no whole blocks of that type
VOCABULARY_TYPE = "Q8_0"  # of embedding and output: they are few, and four bits hurt them most
MAPPED_NAME = "embed_tokens_per_layer.weight"  # stays in its file
VOCABULARY_NAMES = ("embed_tokens.weight", "lm_head.weight", "token_embd.weight", "output.weight")
GROUP = 32
SHRINKS = [0.72 + 0.02 * step for step in range(18)]  # of the largest value that a 4-bit scale is made to reach


@dataclass(frozen=True)
class RequantizedSource(RequantizingSource):
    """`source` with its float matrices in `qtype`.

    Tensors of three dimensions are matrices one after the other. `turned`: they are [n, columns, rows] there, and
    appear as [n, rows, columns] where they are encoded; `read_turned` reads them.
    """

    qtype: str
    turned: bool = False

    def encode(self, weights: Tensor, qtype: str) -> Tensor:
        return ENCODERS[qtype](weights)

    def as_read(self, info: TensorInfo) -> TensorInfo:
        shape = info.shape
        is_matrix = len(shape) in (2, 3) and not info.name.endswith("bias")  # those of all experts are rows
        if not is_matrix or info.qtype not in FLOAT_TYPES + SMALL_FLOAT_TYPES or info.name.endswith(MAPPED_NAME):
            return info
        if len(shape) == 3 and self.turned and not info.name.endswith(".weight"):  # MLX's are not turned
            info, shape = replace(info, is_turned=True), (shape[0], shape[2], shape[1])
        if shape[-1] % GROUP:
            return info
        whole = shape[-1] % QUANT_TYPES[self.qtype].block_size == 0
        qtype = VOCABULARY_TYPE if info.name.endswith(VOCABULARY_NAMES) else self.qtype if whole else ODD_ROWS_TYPE
        return replace(info, shape=shape, qtype=qtype, nbytes=QUANT_TYPES[qtype].nbytes(shape))


def encode_on_one_thread_each() -> None:
    """Limit torch to one thread, for layouts that encode rows in threads of their own."""
    import torch

    torch.set_num_threads(1)


def encode_q8_0(weights: Tensor) -> Tensor:
    """f32 [n, cols] -> uint8 [blocks, 34]: an fp16 scale and 32 codes, rounded to nearest with the scale as stored."""
    import torch

    blocks = weights.reshape(-1, GROUP)
    scale = (blocks.abs().amax(1) / 127).to(torch.float16)
    codes = torch.round(blocks * inverse(scale)[:, None]).clamp(-127, 127).to(torch.int8)
    return torch.cat((scale[:, None].view(torch.uint8), codes.view(torch.uint8)), dim=1)


def encode_q4_0(weights: Tensor) -> Tensor:
    """f32 [n, cols] -> uint8 [blocks, 18]: the fp16 scale with the least squared error, and 32 codes of 4 bits.

    Codes stand for (code - 8)·scale. Tried are scales that let the largest value reach -8, or fall short of it by up
    to a quarter, each of them then set to the least-squares fit of its codes.
    """
    import torch

    blocks = weights.reshape(-1, GROUP)
    extreme = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))  # [n, 1], with its sign
    best_scale = torch.zeros(len(blocks), dtype=torch.float16)
    best_error = torch.full((len(blocks),), torch.inf)
    for shrink in SHRINKS:
        codes = q4_codes(blocks, (extreme[:, 0] * shrink / -8).to(torch.float16))
        fitted = (blocks * codes).sum(1) / codes.square().sum(1).clamp_min(1e-20)
        scale = fitted.to(torch.float16)
        error = (q4_codes(blocks, scale) * scale.float()[:, None] - blocks).square().sum(1)
        better = error < best_error
        best_scale, best_error = torch.where(better, scale, best_scale), torch.where(better, error, best_error)
    best_scale[~extreme[:, 0].isfinite()] = torch.nan  # no error of such a block is the least
    codes = (q4_codes(blocks, best_scale) + 8).to(torch.uint8)
    nibbles = codes[:, :16] | (codes[:, 16:] << 4)
    return torch.cat((best_scale[:, None].view(torch.uint8), nibbles), dim=1)


def q4_codes(blocks: Tensor, scale: Tensor) -> Tensor:
    """The whole numbers -8 … 7 nearest to blocks / scale, as f32."""
    import torch

    return torch.round(blocks * inverse(scale)[:, None]).clamp(-8, 7)


def inverse(scale: Tensor) -> Tensor:
    """1 / scale as f32, 0 where the scale is 0."""
    import torch

    wide = scale.float()
    return torch.where(wide == 0, torch.zeros_like(wide), 1 / wide)


ENCODERS = {"Q8_0": encode_q8_0, "Q4_0": encode_q4_0, "Q2_K": encode_q2_k}
