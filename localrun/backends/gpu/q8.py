"""Activations as the int8 tensor cores read them: a signed byte a number, and a scale for 32 of them."""

from __future__ import annotations

import torch
from torch import Tensor

from localrun.backends.gpu.device import Argument
from localrun.base.dataclass import dataclass

GROUP = 32  # columns of a scale
RUN = 64  # columns of a tile of weights
MIN_ABSMAX = 1e-30  # below this a group counts as zero: 127 / max would overflow


@dataclass(frozen=True, slots=True)
class Q8:
    """Quantised rows. Rows that only pad, and columns beyond the last, are zeros.

    codes: int8 [rows, columns rounded up to 64]. Within 64 columns, byte 16t + 4i + j is column 16i + 4t + j: the four
        bytes of each run of 16 that lane t gives to the tensor cores are side by side.
    groups: int32 [columns / 32, rows rounded up to 8, 2]: the bits of the f32 scale, and the sum of the codes
    """

    codes: Tensor
    groups: Tensor

    @classmethod
    def of(cls, n_cols: int, rows: int, device: torch.device) -> Q8:
        """Zeroed memory for this many rows."""
        width = -(-n_cols // RUN) * RUN
        codes = torch.zeros(rows, width, dtype=torch.int8, device=device)
        groups = torch.zeros(width // GROUP, -(-rows // 8) * 8, 2, dtype=torch.int32, device=device)
        return cls(codes, groups)

    def quantize(self, x: Tensor) -> None:
        """Put x, f32 [n, columns], in the first n rows; what the kernel `quantize` does, in torch.

        A code is the nearest to x · (127 / max|x|), halves to even, and the scale max|x| / 127. A group that holds a
        NaN or an infinity has it as its scale, whatever its codes: no result of the row passes for a number.
        """
        groups = torch.nn.functional.pad(x, (0, self.codes.shape[1] - x.shape[1])).unflatten(1, (-1, GROUP))
        greatest = groups.abs().amax(-1)  # a NaN is above all
        fine = greatest.isfinite() & (greatest >= MIN_ABSMAX)
        most = torch.full_like(greatest, 127)  # torch computes 127 / tensor as 127 · (1 / tensor), rounded twice
        inverse = torch.where(fine, most / greatest, 0.0).unsqueeze(2)
        codes = torch.where(fine.unsqueeze(2), torch.round(groups * inverse), 0.0).to(torch.int8)
        scales = torch.where(greatest < MIN_ABSMAX, 0.0, greatest / 127)
        self.codes[: len(x)] = codes.flatten(1).view(len(x), -1, 4, 4, 4).transpose(2, 3).flatten(1)
        self.groups[:, : len(x), 0] = scales.T.view(torch.int32)
        self.groups[:, : len(x), 1] = codes.sum(-1, dtype=torch.int32).T

    def is_of(self, x: Tensor) -> bool:
        """Whether these are the codes of x, f32 [rows, columns], to the bit."""
        rows, n_cols = x.shape
        wanted = Q8.of(n_cols, rows, torch.device("cpu"))
        wanted.quantize(x.cpu())
        return torch.equal(self.codes.cpu(), wanted.codes) and torch.equal(self.groups.cpu(), wanted.groups)

    def decoded(self, n_cols: int) -> Tensor:
        """Values of the codes, f32 [rows, n_cols]."""
        codes = self.codes.view(len(self.codes), -1, 4, 4, 4).transpose(2, 3).reshape(len(self.codes), -1, GROUP)
        scales = self.groups[:, : len(codes), 0].contiguous().view(torch.float32).T
        return (codes.float() * scales.unsqueeze(2)).flatten(1)[:, :n_cols]


def q8_arguments(q8: Q8 | None) -> tuple[Argument, ...]:
    """Codes, groups, columns with their padding, rows with theirs."""
    return (None, None, 0, 0) if q8 is None else (q8.codes, q8.groups, q8.codes.shape[-1], q8.groups.shape[1])
