"""A terminal in a few lines, to hold what is written against what is to be seen: cells with their style."""

import re

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|(\n)|([^\x1b\n])", re.S)


class TinyTerminal:
    """Knows what the app writes: places, styles, parts that scroll, erasing. `fills`: with the background set."""

    def __init__(self, width: int, height: int, fills: bool) -> None:
        self.width, self.height, self.fills = width, height, fills
        self.rows = [[("?", "unknown")] * width for _ in range(height)]
        self._x = self._y = 0
        self._style = ""
        self._part = 0, height - 1

    def feed(self, text: str) -> None:
        end = 0
        for match in _TOKEN.finditer(text):
            assert match.start() == end, text[end : match.start()]
            end = match.end()
            if match[2]:
                self._obey(match[2], [int(n or 0) for n in match[1].split(";")], match[1])
            elif match[4]:
                self._write(match[4])
        assert end == len(text)

    def splits(self, y: int, start: int, end: int) -> bool:
        """Whether a wide sign stands across one of these places."""
        return any(x < self.width and not self.rows[y][x][0] for x in (start, end))

    def _write(self, sign: str) -> None:
        cells = [(sign, self._style)] + [("", self._style)] * (cell_len(sign) - 1)
        self.rows[self._y][self._x : self._x + len(cells)] = cells
        self._x += len(cells)
        assert len(self.rows[self._y]) == self.width

    def _obey(self, what: str, numbers: list[int], written: str) -> None:
        n = max(numbers[0], 1)
        match what:
            case "H":
                self._y, self._x = n - 1, max((*numbers, 1)[1], 1) - 1
            case "C":
                self._x += n
            case "m":
                codes = written.removeprefix("0;") if written.startswith("0") else written
                fresh = written.startswith("0") or not written
                self._style = (
                    ("" if codes in ("0", "") else codes) if fresh else ";".join(filter(None, [self._style, codes]))
                )
            case "r":
                self._part = (n - 1, numbers[1] - 1) if len(numbers) > 1 else (0, self.height - 1)
            case "S":
                top, bottom = self._part
                blank = [self._empty()] * self.width
                self.rows[top : bottom + 1] = [*self.rows[top + n : bottom + 1], *[list(blank) for _ in range(n)]]
            case "X":
                self.rows[self._y][self._x : self._x + n] = [self._empty()] * n
            case _:
                raise AssertionError(f"{what} is not known here")

    def _empty(self) -> tuple[str, str]:
        return " ", self._style if self.fills else ""
