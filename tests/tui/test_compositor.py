"""What is painted in parts is what Textual itself would paint as a whole."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.chat_app import ENDS, ask, chat_app, chat_screen, live_view, ready, send
from localrun_testing.pilots import drive, until
from localrun_testing.scripted_client import ANSWER, Script
from textual._compositor import ChopsUpdate, Compositor
from textual.app import App
from textual.content import Content
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widget import Widget

from localrun_tui.screens.chat import live_answer
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.status_line import StatusLine
from localrun_tui.themes import DARK
from localrun_tui.widgets.compositor import LeanCompositor

CROPS = [
    *itertools.product([(0, 0), (3, 5), (79, 11), (40, 20)], [(1, 1), (7, 1), (80, 1), (30, 9), (80, 24)]),
]


@pytest.fixture(autouse=True)
def painted_by_textual() -> None:
    """Nothing here: what is ours is under test, whatever LOCALRUN_FULL_REDRAW says."""


class Paper:
    """The cells of a terminal, as the updates of the app leave them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = [[" "] * 80 for _ in range(24)]
        self.n_parts = 0
        self.last_rows: set[int] = set()  # that the last update painted
        render = LeanCompositor.render_update

        def watched(compositor: LeanCompositor, *arguments: Any, **options: Any) -> Any:
            update = render(compositor, *arguments, **options)
            if isinstance(update, ChopsUpdate):
                self.n_parts += 1
                self.last_rows = {y for y, _, _ in update.spans}
                self._paint(update)
            elif update is not None:
                self.rows = [list(row) for row in whole(compositor)]
            return update

        monkeypatch.setattr(LeanCompositor, "render_update", watched)

    @property
    def text(self) -> list[str]:
        return ["".join(row) for row in self.rows]

    def _paint(self, update: ChopsUpdate) -> None:
        for y, left, right in update.spans:
            for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=True):
                if piece is not None and x <= right and end > left:
                    strip = piece.crop(0, min(end, right) - x)
                    self.rows[y][x : x + strip.cell_length] = list(strip.text)


def whole(compositor: Compositor) -> list[str]:
    """All rows as Textual itself renders them."""
    chops = Compositor._render_chops(compositor, compositor.size.region, lambda y: True)
    return ["".join(piece.text for piece in row.values()) for row in chops]


def test_parts_of_the_screen_are_painted_as_textual_does() -> None:
    app, _ = chat_app(Script(ANSWER, thinking="What is asked?"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "What is a KV cache?")
        compositor = chat_screen(pilot)._compositor
        assert type(compositor) is LeanCompositor
        assert chat_screen(pilot).transcript.vertical_scrollbar in compositor.visible_widgets
        for (x, y), (width, height) in CROPS:
            crop = Region(x, y, width, height).intersection(compositor.size.region)
            lean = compositor._render_chops(crop, lambda row: True)
            textual = Compositor._render_chops(compositor, crop, lambda row: True)
            for row in crop.line_range:
                edges = itertools.pairwise(compositor.cuts[row])
                asked = [start for start, end in edges if start < crop.right and end > crop.x]
                assert asked
                assert [lean[row][start] for start in asked] == [textual[row][start] for start in asked]

    drive(app, steps)


@pytest.mark.parametrize("few_cores", [False, True])
@pytest.mark.parametrize("times", [1, 6], ids=["short", "scrolled"])
def test_an_answer_that_grew_in_parts_is_on_the_terminal_as_a_whole(
    times: int, few_cores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_answer, "_AHEAD", 1.25 if few_cores else 0.0)
    app, _ = chat_app(Script((ANSWER + "\n") * times, delay=0.002))
    paper = Paper(monkeypatch)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "What is a KV cache?")
        assert paper.text == whole(chat_screen(pilot)._compositor)

    drive(app, steps)
    assert paper.n_parts > 5


def test_what_shrinks_while_textual_looks_for_places_leaves_no_frame_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a scroll it makes its map anew, of a composer that is smaller already: then nothing seems to move."""
    app, _ = chat_app(Script(ANSWER))
    paper = Paper(monkeypatch)

    async def steps(pilot: Pilot[Any]) -> None:
        screen = chat_screen(pilot)
        composer, compositor = screen.composer, screen._compositor
        await ready(pilot)
        await ask(pilot, "What is a KV cache?")
        composer.styles.height = 7
        await until(pilot, lambda: composer.region.height == 7)
        composer.styles.height = 3
        for widget in composer.ancestors_with_self:
            if isinstance(widget, Widget):
                widget._clear_arrangement_cache()
        compositor._full_map_invalidated = True  # as a scroll does
        assert compositor.full_map[composer].region.height == 3
        await until(pilot, lambda: composer.size.height == 1)
        assert paper.text == whole(compositor)

    drive(app, steps)


def test_a_message_that_is_just_removed_may_be_painted_once_more() -> None:
    app, _ = chat_app(Script("Hello!"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hi")
        view = app.screen.query(MessageView).last()
        view.live = True  # as while it grows
        parent, view._parent = view._parent, None
        try:
            view.changed_lines(range(view.size.height))
            view.render_lines(Region(0, 0, *view.size))  # Textual's own raises NoScreen
        finally:
            view._parent = parent

    drive(app, steps)


def cells(strips: list[Strip]) -> list[list[tuple[str, object]]]:
    """Every cell with its look, however it is cut into segments; the colour of empty ones does not show."""
    return [
        [
            (char, segment.style and (segment.style.bgcolor, char != " " and segment.style))
            for segment in strip
            for char in segment.text
        ]
        for strip in strips
    ]


@pytest.mark.parametrize("filtered", [False, True])
def test_lines_of_a_growing_answer_look_as_textual_draws_them(filtered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if filtered:
        monkeypatch.setenv("NO_COLOR", "1")
    app, _ = chat_app(Script(ANSWER, delay=0.002, thinking="What is asked?", never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "hi")
        await until(pilot, lambda: "78,336" in "".join(whole(chat_screen(pilot)._compositor)))
        view = await live_view(pilot)
        assert view.is_plain

        def look() -> list[list[tuple[str, object]]]:
            own = cells(view.render_lines(view.outer_size.region))
            view._styles_cache.clear()
            assert own == cells(Widget.render_lines(view, view.outer_size.region))
            part = Region(3, 1, 20, 4)
            assert cells(view.render_lines(part)) == cells(Widget.render_lines(view, part))
            return own

        dark = look()
        app.register_theme(replace(DARK, name="another", accent="#00ff00", primary="#ff0000"))
        for theme in ("another", "localrun-light"):
            app.theme = theme
            await pilot.pause()
            assert filtered or look() != dark
        await pilot.resize_terminal(60, 24)
        await until(pilot, lambda: app.size.width == 60)
        assert len(look()[0]) < len(dark[0])
        view.focus()
        await until(pilot, lambda: not view.is_plain)
        assert view.render_lines(Region(0, 0, 5, 1))[0].text.strip(), "the border of what has the focus"

    drive(app, steps)


def test_what_lies_in_front_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(ENDS)
    paper = Paper(monkeypatch)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "hi")
        view = await live_view(pilot)
        for _ in range(30):
            view.document.feed("words and more words of it ")
            view.changed()
            await pilot.pause()
        app.notify("in front", timeout=60)
        await until(pilot, lambda: "in front" in "".join(paper.text))
        for _ in range(12):
            view.document.feed("**other** words come ")
            view.changed()
            await pilot.pause()
            assert "in front" in "".join(paper.text)
            assert paper.text == whole(chat_screen(pilot)._compositor)

    drive(app, steps)


def test_what_differs_further_up_or_waits_to_be_painted_is_painted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(ENDS)
    paper = Paper(monkeypatch)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "hi")
        screen = chat_screen(pilot)
        await until(pilot, lambda: "Hello!" in "".join(paper.text))
        monkeypatch.setattr(screen.figures, "show", lambda focused: None)
        view, status = await live_view(pilot), screen.query_one(StatusLine)
        view.document.feed(" **" + "words " * 25)
        view.changed()
        await pilot.pause()
        status.show([Content("another state")], [])
        screen._dirty_widgets.add(status)  # as its message to the screen does in a moment
        view.document.feed("end** of it")  # the stars are gone from the first line
        view.changed()
        await pilot.pause()
        assert "another state" in paper.text[-2]
        assert any("Hello! words words" in row for row in paper.text)
        assert paper.text == whole(screen._compositor)
        view.document.feed(" and")
        view.changed()
        assert {paper.text[row].split()[-1] for row in paper.last_rows} == {"and"}, "one word, one line"

    drive(app, steps)


def test_what_is_painted_while_updates_are_held_back_is_painted_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app()
    rows: set[int] = set()

    def display(app: App[Any], screen: object, update: object) -> None:
        if isinstance(update, ChopsUpdate):
            rows.update(y for y, _, _ in update.spans)
        elif update is not None:
            rows.update(range(24))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = chat_screen(pilot)
        monkeypatch.setattr(App, "_display", display)
        with app.batch_update():
            screen._compositor._dirty_regions.add(screen.size.region)
            screen._compositor_refresh()  # as Textual does after a layout
            assert not screen._compositor._dirty_regions
            assert not rows
        await until(pilot, lambda: rows == {*range(24)})

    drive(app, steps)
