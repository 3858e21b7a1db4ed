"""Weights as Q2_K, with smaller errors than llama.cpp's own encoder leaves: two bits are worth a search.

A block of 256 numbers has 16 groups of 16. A code c (0 … 3) of a group stands for d·s·c - dmin·m: s and m (0 … 15) are
the group's, d and dmin (fp16) the block's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

BLOCK, GROUP = 256, 16
LARGEST_CODE, LARGEST_SCALE = 3, 15
STARTS = (2.0, 2.5, 3.0, 3.5)  # steps of the scale from a group's least to its greatest
REFITS = 2  # times that s and m of the groups, and then d and dmin, are set to what fits best
NEAR = (-1, 0, 1)  # how far s and m may move at a time


def encode_q2_k(weights: Tensor) -> Tensor:
    """f32 [n, cols] -> uint8 [blocks, 84]; cols is a multiple of 256. A block with what is no number gets NaN."""
    import torch

    groups = weights.reshape(-1, BLOCK // GROUP, GROUP)
    scale, minimum = fit_groups(groups)
    d = (scale.amax(1) / LARGEST_SCALE).to(torch.float16)
    dmin = (minimum.amax(1) / LARGEST_SCALE).to(torch.float16)
    s, m = nearest(scale, d), nearest(minimum, dmin)
    for _ in range(REFITS):
        s, m = refit_groups(groups, d, dmin, s, m)
        d, dmin = refit_block(groups, d, dmin, s, m)
    d[~weights.reshape(-1, BLOCK).isfinite().all(1)] = torch.nan
    codes = codes_of(groups, d.float()[:, None] * s, dmin.float()[:, None] * m).to(torch.uint8)
    quarters = codes.reshape(-1, 2, 4, 32)  # a byte holds the numbers i, 32 + i, 64 + i and 96 + i of 128
    packed = quarters[:, :, 0] | quarters[:, :, 1] << 2 | quarters[:, :, 2] << 4 | quarters[:, :, 3] << 6
    scales = s.to(torch.uint8) | m.to(torch.uint8) << 4
    supers = torch.stack((d, dmin), dim=1).view(torch.uint8)
    return torch.cat((scales, packed.reshape(-1, 64), supers), dim=1)


def fit_groups(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Scale and minimum of each group with the least squared error found; the minimum is subtracted, at least 0.

    groups: f32 [blocks, 16, 16] -> two of [blocks, 16].
    """
    import torch

    low, high = groups.amin(2).clamp_max(0), groups.amax(2)
    best_scale, best_minimum = torch.zeros_like(low), torch.zeros_like(low)
    best_error = groups.square().sum(2)
    for steps in STARTS:
        scale, minimum = (high - low).clamp_min(0) / steps, -low
        for _ in range(2):  # codes that suit the line, and the line that suits the codes
            codes = codes_of(groups, scale, minimum)
            scale, minimum = line_through(groups, codes)
        error = (codes_of(groups, scale, minimum) * scale[:, :, None] - minimum[:, :, None] - groups).square().sum(2)
        better = error < best_error
        best_scale = torch.where(better, scale, best_scale)
        best_minimum = torch.where(better, minimum, best_minimum)
        best_error = torch.where(better, error, best_error)
    return best_scale, best_minimum


def line_through(groups: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """The scale ≥ 0 and the minimum ≥ 0 with the least squares of scale·code - minimum - number, by group."""
    import torch

    n = groups.shape[2]
    sum_c, sum_cc, sum_x, sum_cx = codes.sum(2), codes.square().sum(2), groups.sum(2), (codes * groups).sum(2)
    spread = n * sum_cc - sum_c.square()
    scale = torch.where(spread > 0, (n * sum_cx - sum_c * sum_x) / spread.clamp_min(1e-20), torch.zeros_like(sum_x))
    minimum = (scale * sum_c - sum_x) / n
    through_zero = (sum_cx / sum_cc.clamp_min(1e-20)).clamp_min(0)  # where the best minimum would have to be added
    return torch.where(minimum < 0, through_zero, scale.clamp_min(0)), minimum.clamp_min(0)


def refit_groups(groups: Tensor, d: Tensor, dmin: Tensor, s: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    """The pair near s, m with the least squared error, for each group."""
    import torch

    best_s, best_m = s, m
    best_error = torch.full_like(s, torch.inf)
    for ds in NEAR:
        for dm in NEAR:
            tried_s, tried_m = (s + ds).clamp(0, LARGEST_SCALE), (m + dm).clamp(0, LARGEST_SCALE)
            scale, minimum = d.float()[:, None] * tried_s, dmin.float()[:, None] * tried_m
            codes = codes_of(groups, scale, minimum)
            error = (codes * scale[:, :, None] - minimum[:, :, None] - groups).square().sum(2)
            better = error < best_error
            best_s, best_m = torch.where(better, tried_s, best_s), torch.where(better, tried_m, best_m)
            best_error = torch.where(better, error, best_error)
    return best_s, best_m


def refit_block(groups: Tensor, d: Tensor, dmin: Tensor, s: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    """d and dmin (fp16) with the least squared error of each block, for the codes that it has now."""
    import torch

    codes = codes_of(groups, d.float()[:, None] * s, dmin.float()[:, None] * m)
    a = (s[:, :, None] * codes).flatten(1)  # the numbers are a·d - b·dmin
    b = m[:, :, None].expand_as(groups).flatten(1)
    x = groups.flatten(1)
    aa, bb, ab = a.square().sum(1), b.square().sum(1), (a * b).sum(1)
    ax, bx = (a * x).sum(1), (b * x).sum(1)
    spread = aa * bb - ab.square()
    safe = spread > 1e-6 * aa * bb
    fitted_d = torch.where(safe, (ax * bb - ab * bx) / spread, ax / aa.clamp_min(1e-20))
    fitted_min = torch.where(safe, (ab * ax - aa * bx) / spread, torch.zeros_like(ax))
    bad = (fitted_d < 0) | (fitted_min < 0)
    return (
        torch.where(bad, d.float(), fitted_d).to(torch.float16),
        torch.where(bad, dmin.float(), fitted_min).to(torch.float16),
    )


def codes_of(groups: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """The codes 0 … 3 nearest to the numbers, as f32."""
    import torch

    inverse = torch.where(scale > 0, 1 / scale, torch.zeros_like(scale))[:, :, None]
    return torch.round((groups + minimum[:, :, None]) * inverse).clamp(0, LARGEST_CODE)


def nearest(values: Tensor, unit: Tensor) -> Tensor:
    """values / unit as whole numbers 0 … 15, f32."""
    import torch

    wide = unit.float()[:, None]
    inverse = torch.where(wide > 0, 1 / wide, torch.zeros_like(wide))
    return torch.round(values * inverse).clamp(0, LARGEST_SCALE)
