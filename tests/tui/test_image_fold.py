"""Before a message is sent its image is shown in cells, and every size of it with tokens and seconds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import INFO, ScriptedClient
from PIL import Image
from rich.console import Console
from textual.pilot import Pilot

from localrun.base.views import SizeView
from localrun.chat.files import read_files
from localrun_tui.screens.chat.image_fold import ImageFold
from localrun_tui.widgets.picture import HALF, SHADES, Picture, fitted, halved, shaded

SIZES = {"small": SizeView(120, 1.5), "medium": SizeView(250, 3.0), "full": SizeView(1000, 12.0)}


@pytest.fixture(autouse=True)
def many_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "color_system", "truecolor")


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "sunset.png"
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:20] = (250, 120, 10)
    Image.fromarray(pixels).save(path)
    return path


async def attach(pilot: Pilot[Any], path: Path) -> None:
    await ready(pilot)
    screen = chat_screen(pilot)
    screen.composer.attached.take(read_files(str(path), path.parent, await screen.session.images()))
    await until(pilot, lambda: fold(pilot).picture.image)


def fold(pilot: Pilot[Any]) -> ImageFold:
    return chat_screen(pilot).query_one(ImageFold)


def drawn(pilot: Pilot[Any]) -> str:
    widget = chat_screen(pilot).query_one(Picture)
    return "\n".join(widget.render_line(y).text for y in range(widget.size.height))


def colours(pilot: Pilot[Any], y: int) -> set[str]:
    """Colours of a line of the picture."""
    styles = [one.style for one in chat_screen(pilot).query_one(Picture).render_line(y) if one.text == HALF]
    return {colour.name for style in styles if style for colour in (style.color, style.bgcolor) if colour}


def test_an_image_is_shown_with_its_sizes_and_the_chosen_one_is_sent(picture: Path) -> None:
    app, client = chat_app(client=ScriptedClient(sizes=SIZES))

    async def steps(pilot: Pilot[Any]) -> None:
        await attach(pilot, picture)
        await until_text(pilot, "▣ sunset.png 60 × 40 · 1,000 tokens, ≈ 12.0 s")
        await until(pilot, lambda: HALF in drawn(pilot))
        assert colours(pilot, 0) == {"#fa780a"}
        assert colours(pilot, 7) == {"#000000"}
        assert "● full    1,000 tokens, ≈ 12.0 s" in screen_text(app)
        await pilot.press("f9")
        await until_text(pilot, "● medium  250 tokens, ≈ 3.0 s")
        assert "· 250 tokens, ≈ 3.0 s" in screen_text(app), "on the chip, too"
        await pilot.press("f9")
        await until_text(pilot, "● small   120 tokens, ≈ 1.5 s")
        await pilot.press(*"/image", "enter")
        await until(pilot, lambda: not fold(pilot).display)
        await ask(pilot, "what is it?")
        assert not fold(pilot).image

    drive(app, steps)
    assert [image.most_rows for image in client.requests[0].images] == [128]


def test_a_size_is_typed(picture: Path) -> None:
    app, _ = chat_app(client=ScriptedClient(sizes=SIZES))

    async def steps(pilot: Pilot[Any]) -> None:
        await attach(pilot, picture)
        await pilot.press(*"/image tiny", "enter")
        await until(pilot, lambda: "that is no size" in notice(pilot))
        await pilot.press("ctrl+u", *"/image medium", "enter")
        await until_text(pilot, "● medium  250")

    drive(app, steps)


def test_fifty_images_leave_room_for_the_text(picture: Path) -> None:
    folder = picture.parent / "many"
    folder.mkdir()
    for number in range(50):
        Image.fromarray(np.full((4, 4, 3), number, dtype=np.uint8)).save(folder / f"{number:02}.png")
    app, client = chat_app(client=ScriptedClient(sizes=SIZES))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = chat_screen(pilot)
        screen.composer.attached.take(read_files("many/*.png", picture.parent, await screen.session.images()))
        await until_text(pilot, "44 more")
        await until_text(pilot, "49.png 4 × 4")
        assert screen.composer.editor.region.height == 1
        assert screen.composer.editor.region.bottom < 23, "on the screen"
        await ask(pilot, "which is the brightest?")

    drive(app, steps)
    assert len(client.requests[0].images) == 50


def test_it_follows_the_size_of_the_screen(picture: Path) -> None:
    app, _ = chat_app(client=ScriptedClient(sizes=SIZES))

    async def steps(pilot: Pilot[Any]) -> None:
        await attach(pilot, picture)
        await until(pilot, lambda: fold(pilot).display)
        for size, is_shown in (((80, 16), False), ((120, 40), True), ((30, 24), True), ((80, 24), True)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: fold(pilot).display == is_shown)  # noqa: B023
            assert chat_screen(pilot).composer.editor.region.height == 1
        await until(pilot, lambda: HALF in drawn(pilot))

    drive(app, steps)


def test_an_image_whose_copy_is_gone_is_named(picture: Path, tmp_path: Path) -> None:
    app, _ = chat_app(client=ScriptedClient(sizes=SIZES), folder=tmp_path / "chats")

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = chat_screen(pilot)
        attached = read_files(str(picture), picture.parent, await screen.session.images())
        for one in (tmp_path / "chats" / "images").iterdir():
            one.unlink()
        screen.composer.attached.take(attached)
        await until_text(pilot, "the copy of the image is gone")

    drive(app, steps)


def test_a_model_that_does_not_see_is_named_at_once(picture: Path) -> None:
    app, client = chat_app(client=ScriptedClient(sizes=SIZES))

    async def steps(pilot: Pilot[Any]) -> None:
        await attach(pilot, picture)
        await ask(pilot, "what is it?")
        client.info = replace(INFO, name="reader", why_blind="choose a model that sees")
        session = chat_screen(pilot).session
        assert session.present is not None
        await session.load(session.present)
        await until(pilot, lambda: "reader sees no images: it gets the names only of sunset.png" in notice(pilot))
        await attach(pilot, picture)
        await until_text(pilot, "⚠ reader sees no images: choose a")

    drive(app, steps, LARGE)


@pytest.mark.parametrize("theme", ["localrun-dark", "localrun-light"])
def test_few_colours_make_it_shades(picture: Path, theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = chat_app(client=ScriptedClient(sizes=SIZES))
    monkeypatch.setattr(Console, "color_system", "standard")

    async def steps(pilot: Pilot[Any]) -> None:
        app.theme = theme
        await attach(pilot, picture)
        await until(pilot, lambda: set(drawn(pilot)) & set("░▒▓█"))
        first, last = drawn(pilot).splitlines()[0].strip(), drawn(pilot).splitlines()[-1].rstrip()
        assert first[0] == "▒"
        assert last == ("" if theme == "localrun-dark" else "█" * 24)

    drive(app, steps)


@pytest.mark.parametrize(
    ("size", "box", "cells"),
    [
        ((60, 40), (34, 8), (24, 8)),
        ((1, 1000), (34, 8), (1, 8)),
        ((1000, 1), (34, 8), (34, 1)),
        ((1, 1), (3, 2), (3, 2)),
    ],
)
def test_an_image_fits_its_box(size: tuple[int, int], box: tuple[int, int], cells: tuple[int, int]) -> None:
    assert fitted(size, *box) == cells


def test_cells_have_the_pixels_of_the_image() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    lines = halved(Image.fromarray(pixels), 5, 3)
    for y, line in enumerate(lines):
        for x, segment in enumerate(line):
            assert segment.style is not None
            assert segment.style.color is not None
            assert segment.style.bgcolor is not None
            assert tuple(segment.style.color.triplet or ()) == tuple(pixels[2 * y, x])
            assert tuple(segment.style.bgcolor.triplet or ()) == tuple(pixels[2 * y + 1, x])


@pytest.mark.parametrize("is_dark", [True, False])
def test_shades_go_from_dark_to_bright(is_dark: bool) -> None:
    ramp = Image.fromarray(np.linspace(0, 255, 5, dtype=np.uint8)[None].repeat(2, 0))
    (line,) = shaded(ramp.convert("RGB"), 5, 1, is_dark)
    assert line == (SHADES if is_dark else SHADES[::-1])
