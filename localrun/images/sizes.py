"""Size rules: to how many pixels a family of models scales an image, and how many rows that makes."""

import math
from dataclasses import replace
from typing import Protocol

from localrun.base.dataclass import dataclass
from localrun.base.errors import ImageError

GEMMA4_BUDGETS = (70, 140, 280, 560, 1120)  # rows of an image that the models were trained with


@dataclass(frozen=True, slots=True)
class ScaledSize:
    """Pixels of an image after scaling, and the rows that it becomes."""

    width: int
    height: int
    columns: int  # of rows: pixels by the side of the square that becomes one row
    lines: int

    @property
    def n_rows(self) -> int:
        return self.columns * self.lines


class SizeRule(Protocol):
    """How a family scales images of any size."""

    def scaled(self, width: int, height: int, most_rows: int) -> ScaledSize:
        """Size of an image of `width` × `height` pixels in at most `most_rows` rows; ImageError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class SmartResize:
    """Stretch to multiples of `factor` with an area between two bounds (Qwen2-VL: arXiv 2409.12191, and later)."""

    factor: int  # pixels of a row's side: patch · merge
    min_pixels: int
    max_pixels: int
    most_ratio: int = 200  # of the longer side to the shorter one

    def scaled(self, width: int, height: int, most_rows: int) -> ScaledSize:
        if max(width, height) > self.most_ratio * min(width, height):
            told = f"an image of {width:,} × {height:,} pixels is more than {self.most_ratio} times as long as wide"
            raise ImageError("TOO_LONG", told, "cut out the part that matters")
        bounded = replace(self, max_pixels=min(self.max_pixels, most_rows * self.factor**2))
        scaled = self.size(*bounded.sides(width, height))
        return checked(scaled, width, height, most_rows)

    def sides(self, width: int, height: int) -> tuple[int, int]:
        """Multiples of `factor` for an image of any size."""
        near = [round(side / self.factor) * self.factor for side in (width, height)]
        if near[0] * near[1] > self.max_pixels:
            shrink = math.sqrt((height * width) / self.max_pixels)
            lengths = (math.floor(side / shrink / self.factor) * self.factor for side in (width, height))
            return max(self.factor, next(lengths)), max(self.factor, next(lengths))
        if near[0] * near[1] < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (height * width))
            return (
                math.ceil(width * grow / self.factor) * self.factor,
                math.ceil(height * grow / self.factor) * self.factor,
            )
        return near[0], near[1]

    def size(self, width: int, height: int) -> ScaledSize:
        return ScaledSize(width, height, width // self.factor, height // self.factor)


@dataclass(frozen=True, slots=True)
class FillBudget:
    """Scale, up or down, to the most squares of `factor` pixels within a budget of rows (Gemma 4)."""

    factor: int  # pixels of a row's side: patch · pooled patches
    budget: int  # one of GEMMA4_BUDGETS

    def scaled(self, width: int, height: int, most_rows: int) -> ScaledSize:
        budget = max((one for one in GEMMA4_BUDGETS if one <= min(most_rows, self.budget)), default=GEMMA4_BUDGETS[0])
        scale = math.sqrt(budget * self.factor**2 / (width * height))
        columns, lines = (math.floor(scale * side / self.factor) for side in (width, height))
        if not columns and not lines:
            told = f"an image of {width:,} × {height:,} pixels has no size in {budget} rows"
            raise ImageError("TOO_LONG", told, "cut out the part that matters")
        if not lines:
            columns, lines = min(width // height, budget), 1
        elif not columns:
            columns, lines = 1, min(height // width, budget)
        scaled = ScaledSize(columns * self.factor, lines * self.factor, columns, lines)
        return checked(scaled, width, height, most_rows)


def checked(scaled: ScaledSize, width: int, height: int, most_rows: int) -> ScaledSize:
    """The size, if it has no more rows than it may have."""
    if scaled.n_rows > most_rows:
        told = f"an image of {width:,} × {height:,} pixels takes {scaled.n_rows:,} tokens; {most_rows:,} are allowed"
        raise ImageError("TOO_MANY_ROWS", told, "allow more tokens an image, or cut out the part that matters")
    return scaled
