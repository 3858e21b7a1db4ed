"""What is written to the terminal makes it show each picture, however little that is."""

import io
import os
import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.chat_app import chat_app, ready
from localrun_testing.paper import TinyTerminal
from localrun_testing.pilots import drive
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.geometry import Size
from textual.strip import Strip

from localrun_tui.widgets.minimal_update import MinimalUpdate, ShownRows
from localrun_tui.widgets.row_diff import cells_of

WIDTH, HEIGHT = 30, 12
STYLES = [
    Style.parse(text) for text in ("on #101318", "#ffffff on #101318", "bold #ff0000 on #222222", "underline on red")
]
SIGNS = "abc  漢字é─█"
STRANGE = ["👩‍💻", "e\u0301", "\u200b", "🙂"]


def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False)


def random_row(rng: random.Random, width: int = WIDTH) -> Strip:
    segments = []
    for _ in range(rng.randint(1, 4)):
        text = "".join(rng.choice(SIGNS) for _ in range(rng.randint(0, width)))
        if rng.random() < 0.1:
            text += rng.choice(STRANGE)
        segments.append(Segment(text, rng.choice(STYLES)))
    row = Strip(segments).crop(0, width)
    return row.extend_cell_length(width, STYLES[0])


def pictures(rng: random.Random, n: int) -> Iterator[list[tuple[int, int, Strip]]]:
    """Pieces of pictures: some scroll, some change a part of a row, some nothing."""
    rows = [random_row(rng) for _ in range(HEIGHT)]
    yield [(y, 0, row) for y, row in enumerate(rows)]
    for _ in range(n):
        kind = rng.choice(["scroll", "scroll a part", "piece", "row", "nothing"])
        top, bottom = sorted(rng.sample(range(HEIGHT + 1), 2)) if kind == "scroll a part" else (0, HEIGHT)
        if kind.startswith("scroll"):
            by = rng.randint(1, 4)
            part = [*rows[top:bottom], *(random_row(rng) for _ in range(by))][by:]
            rows[top:bottom] = part
            yield [(y, 0, rows[y]) for y in range(top, bottom)]
        elif kind == "piece":
            y, x = rng.randrange(HEIGHT), rng.randrange(WIDTH - 3)
            yield [(y, x, random_row(rng, rng.randint(1, WIDTH - x)))]
        elif kind == "row":
            y = rng.randrange(HEIGHT)
            rows[y] = random_row(rng)
            yield [(y, 0, rows[y])]
        else:
            yield [(y, 0, row) for y, row in enumerate(rows)]


def shown(terminal: TinyTerminal) -> list[list[tuple[str, str]]]:
    """Of a space only its background is seen, and lines that are drawn on it."""

    def seen(sign: str, style: str) -> str:
        return re.sub(r"(^|;)(1|38;2;\d+;\d+;\d+)(?=;|$)", "", style).strip(";") if sign == " " else style

    return [[(sign, seen(sign, style)) for sign, style in row] for row in terminal.rows]


@pytest.mark.parametrize("fills", [True, False])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_the_terminal_shows_what_a_whole_picture_would(fills: bool, seed: int) -> None:
    """One terminal gets differences, another every picture whole."""
    rng = random.Random(seed)
    size = Size(WIDTH, HEIGHT)
    paper, screen, whole = ShownRows(fills), TinyTerminal(WIDTH, HEIGHT, fills), TinyTerminal(WIDTH, HEIGHT, fills)
    wide = console()
    for pieces in pictures(rng, 12):
        if any(sign in strip.text for _, _, strip in pieces for sign in ("\u200b", "\u0301", "\u200d", "🙂")):
            continue  # terminals disagree about these
        if any(whole.splits(y, x, x + strip.cell_length) for y, x, strip in pieces):
            continue  # and about half a sign; the app lays out none
        screen.feed(paper.draw(pieces, size, wide))
        for y, x, strip in pieces:
            whole.feed(f"\x1b[{y + 1};{x + 1}H{strip.render(wide)}")
        assert shown(screen) == shown(whole)


def test_strange_signs_are_written_with_their_whole_row() -> None:
    paper, size = ShownRows(True), Size(WIDTH, 1)
    for sign in STRANGE:
        before, after = (Strip([Segment(f"{letter} {sign} end")]).extend_cell_length(WIDTH) for letter in "ab")
        paper.draw([(0, 0, before)], size, console())
        assert f"a {sign} end"[2:] in paper.draw([(0, 0, after)], size, console())


def test_what_scrolls_is_moved_by_the_terminal() -> None:
    size, lines = Size(WIDTH, HEIGHT), [f"line number {n} of many".ljust(WIDTH) for n in range(HEIGHT + 1)]
    rows = [Strip([Segment(line, STYLES[1])]) for line in lines]
    for fills, most in ((True, 75), (False, 85)):
        paper = ShownRows(fills)
        paper.draw([(y, 0, row) for y, row in enumerate(rows[:-1])], size, console())
        written = paper.draw([(y, 0, row) for y, row in enumerate(rows[1:])], size, console())
        assert "S\x1b[r" in written
        assert len(written) < len(lines[0]) + most
        assert paper.draw([(y, 0, row) for y, row in enumerate(rows[1:])], size, console()) == ""


def test_everything_is_redrawn_after_foreign_output() -> None:
    paper, size, row = ShownRows(True), Size(5, 1), Strip([Segment("hello")])
    first = paper.draw([(0, 0, row)], size, console())
    assert paper.draw([(0, 0, row)], size, console()) == ""
    paper.forget()
    assert paper.draw([(0, 0, row)], size, console()) == first
    assert "hello" in paper.draw([(0, 0, row)], Size(5, 2), console())


def test_a_space_has_a_background_only_unless_it_is_drawn_on() -> None:
    plain, under = (
        Strip([Segment("a b", Style.parse(f"{word} #ff0000 on #000000"))]) for word in ("bold", "underline")
    )
    colors = console()._color_system
    assert [cell.fg for cell in cells_of(plain, colors)][1] == ""
    assert [cell.fg for cell in cells_of(under, colors)][1] != ""


@pytest.mark.parametrize(("variable", "whole"), [("1", True), ("0", False), ("", False)])
def test_a_variable_has_textual_write_what_it_drew(variable: str, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_FULL_REDRAW", variable)
    written: set[bool] = set()
    monkeypatch.setattr(App, "_display", lambda app, screen, update: written.add(isinstance(update, MinimalUpdate)))
    app, _ = chat_app()
    drive(app, ready)
    assert (True in written) is not whole


@pytest.mark.skipif(os.name == "nt", reason="there is no pty on this OS (windows)")
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_an_answer_costs_the_line_no_more_than_three_times_its_text(
    columns: int, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.app_bytes import drawn_bytes, text_for

    monkeypatch.delenv("LOCALRUN_FULL_REDRAW", raising=False)
    drawn, came = drawn_bytes(text_for(100, 6), 100, columns, lines)
    assert drawn <= 3 * came
