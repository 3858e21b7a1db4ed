"""An image in the cells of a terminal: two pixels a cell, or shades where there are too few colours."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from PIL.Image import Image

SHADES = " ░▒▓█"
HALF = "▀"


class Picture(Widget):
    """Shows `image` as large as fits, at the top left; a cell is taken to be twice as high as wide."""

    def __init__(self) -> None:
        super().__init__(id="picture")
        self.image: Image | None = None

    def show(self, image: Image | None) -> None:
        self.image = image
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self.image is None:
            return Strip.blank(self.size.width, self.rich_style)
        lines = self._lines(self.size.width, self.size.height)
        drawn = Strip(lines[y] if y < len(lines) else [])
        return drawn.adjust_cell_length(self.size.width, self.rich_style)

    def _lines(self, width: int, height: int) -> list[list[Segment]]:
        """The lines of the image in a box of so many cells."""
        assert self.image is not None
        columns, rows = fitted(self.image.size, width, height)
        if self.app.no_color or self.app.console.color_system not in ("256", "truecolor"):
            return [[Segment(line, self.rich_style)] for line in shaded(self.image, columns, rows, self.is_dark)]
        return halved(self.image, columns, rows)

    @property
    def is_dark(self) -> bool:
        """Whether the screen is darker than what is written on it."""
        return self.app.current_theme.dark


def fitted(size: tuple[int, int], width: int, height: int) -> tuple[int, int]:
    """Cells of an image of so many pixels in a box of `width` × `height` cells: columns and rows, at least one."""
    scale = min(width / size[0], 2 * height / size[1])
    return max(1, min(width, round(size[0] * scale))), max(1, min(height, round(size[1] * scale / 2)))


def halved(image: Image, columns: int, rows: int) -> list[list[Segment]]:
    """Lines of half blocks: the upper pixel of a cell is its foreground, the lower one its background."""
    small = image.resize((columns, 2 * rows))
    pixels = small.tobytes()
    at = [pixels[i : i + 3] for i in range(0, len(pixels), 3)]  # bytes (red, green, blue) by line and column
    lines = [at[i : i + columns] for i in range(0, len(at), columns)]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [[Segment(HALF, _style(*pair)) for pair in zip(upper, lower, strict=True)] for upper, lower in pairs]


def shaded(image: Image, columns: int, rows: int, is_dark: bool) -> list[str]:
    """Lines of shades: brighter parts are fuller on a dark screen, and emptier on a light one."""
    grey = image.convert("L").resize((columns, rows)).tobytes()
    shades = SHADES if is_dark else SHADES[::-1]
    text = "".join(shades[level * len(shades) // 256] for level in grey)
    return [text[i : i + columns] for i in range(0, len(text), columns)]


@lru_cache(maxsize=4096)
def _style(upper: bytes, lower: bytes) -> Style:
    return Style(color=Color.from_rgb(*upper), bgcolor=Color.from_rgb(*lower))
