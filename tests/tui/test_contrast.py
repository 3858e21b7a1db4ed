"""Every text can be told from what it is written on, in both themes, and a field from what is around it."""

from collections.abc import Iterator
from typing import Any

import pytest
from localrun_testing.chat_app import chat_app, ready
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import LARGE, drive, until_text
from localrun_testing.screens_walk import walk
from localrun_testing.scripted_client import Script
from rich.color import ColorSystem
from rich.segment import Segment
from textual.app import App
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import ModalScreen

from localrun_tui.state import title_giver
from localrun_tui.widgets.fields import LineField

LEAST = 4.5  # of WCAG 2, level AA
ANSWER = """Some **bold**, `code`, *words* and [a link](http://a.b).

> quoted

```python
def f(x: int) -> str:  # a comment
    return "a" + str(1)
```

| a | b |
|---|---|
| 1 | 2 |
"""


def luminance(colour: tuple[int, int, int]) -> float:
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (value / 255 for value in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """The ratio that WCAG 2 defines."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def shown(app: App[Any]) -> Iterator[Segment]:
    """Segments of the screen; of a dialog only what is in it."""
    is_dialog = isinstance(app.screen, ModalScreen)
    region = app.screen.query_one("#box").region if is_dialog else Region(0, 0, *app.size)
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        if region.y <= y < region.bottom:
            yield from strip.crop(region.x, region.right)


def pale(app: App[Any]) -> list[tuple[str, float]]:
    """Words of the screen with too little contrast."""
    found = []
    for segment in shown(app):
        style = segment.style
        if style is None or not any(letter.isalnum() for letter in segment.text):
            continue
        if style.color is None or style.bgcolor is None or not style.color.triplet or not style.bgcolor.triplet:
            continue
        ratio = contrast(style.color.triplet, style.bgcolor.triplet)
        if ratio < LEAST:
            found.append((segment.text, round(ratio, 2)))
    return found


@pytest.mark.parametrize("theme", ["localrun-dark", "localrun-light"])
def test_every_text_can_be_read(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(title_giver, "IDLE", 3600.0)
    known_machine(monkeypatch)
    app, _ = chat_app(Script(ANSWER), Script("Gravity."))

    async def steps(pilot: Pilot[Any]) -> None:
        app.theme = theme
        async for _ in walk(app, pilot):
            assert pale(app) == []

    drive(app, steps, LARGE)


def in_16(app: App[Any], at: tuple[int, int]) -> int | None:
    """Number of the colour behind a cell, as a terminal of 16 colours gets it."""
    strip = app.screen._compositor.render_strips()[at[1]].crop(at[0], at[0] + 1)
    (segment,) = strip
    assert segment.style is not None
    assert segment.style.bgcolor is not None
    return segment.style.bgcolor.downgrade(ColorSystem.STANDARD).number


@pytest.mark.parametrize("theme", ["localrun-dark", "localrun-light"])
@pytest.mark.parametrize(
    ("key", "says"),
    [("ctrl+s", "System prompt"), ("ctrl+o", "On disk"), ("f3", "Temperature"), ("ctrl+t", "Attach a file")],
)
def test_fields_have_edges_in_16_colours(key: str, says: str, theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    known_machine(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        app.theme = theme
        await ready(pilot)
        await pilot.press(key)
        await until_text(pilot, says)
        fields = [one for one in app.screen.query(LineField) if one.display]
        assert fields
        for field in fields:
            inside = in_16(app, (field.region.right - 1, field.region.y))
            assert inside != in_16(app, (field.region.x - 1, field.region.y)), field
            assert inside != in_16(app, (field.region.right, field.region.y)), field

    drive(app, steps, LARGE)
