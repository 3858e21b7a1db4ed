"""Names at the left and texts at the right, below headings: one drawing for hundreds of lines."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

from localrun_tui.markdown.wrapping import wrap
from localrun_tui.widgets.columns import say

FactSection = tuple[str, list[tuple[str, str]]]  # a heading; names with their texts


class FactList(Visual):
    """Sections of facts. A name wider than `name_width` cells wraps in its own column, as its text does.

    A widget for each line would be styled anew, all of them, whenever the focus moves.
    """

    def __init__(self, sections: Sequence[FactSection], name_width: int) -> None:
        self._sections = sections
        self._name_width = name_width

    @lru_cache(maxsize=4)  # noqa: B019  # a few widths of one screen
    def lines(self, width: int) -> list[Content]:
        """Drawn lines, at most `width` cells wide."""
        return [line for section in self._sections for line in self._section(*section, width)]

    def _section(self, title: str, facts: Iterable[tuple[str, str]], width: int) -> list[Content]:
        below = [line for name, text in facts for line in self._fact(name, text, width)]
        return [Content(), *wrap(say(title, "bold $primary"), width), *below]

    def _fact(self, name: str, text: str, width: int) -> list[Content]:
        left = wrap(say(name, "bold"), self._name_width - 1)
        right = wrap(say(text), width - self._name_width)
        n_lines = max(len(left), len(right))
        left += [Content()] * (n_lines - len(left))
        right += [Content()] * (n_lines - len(right))
        return [
            one.pad_right(max(self._name_width - one.cell_length, 0)) + other
            for one, other in zip(left, right, strict=True)
        ]

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        strips = [strip for line in self.lines(width) for strip in line.render_strips(width, 1, style, options)]
        return strips if height is None else strips[:height]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return len(self.lines(width))
