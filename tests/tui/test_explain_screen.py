"""Explain: parameters are turned by keys and by the mouse, and all numbers follow."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.chat_app import ENDS, chat_app, chat_screen, ready, send, type_text
from localrun_testing.fake_client import FakeClient
from localrun_testing.model_screens import known_machine
from localrun_testing.pilots import SMALL, drive, page_down_to, screen_text, until, until_text
from localrun_testing.scripted_client import INFO, ScriptedClient
from textual.pilot import Pilot
from textual.widgets import Static

from localrun.base.request import LoadOptions
from localrun.diagnose.explain.topic_report import TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.predict.sizes import SIZES
from localrun.diagnose.predict.what_if import WhatIf
from localrun_tui.screens.explain.drawing import report_content
from localrun_tui.screens.explain.explain_screen import ExplainScreen
from localrun_tui.screens.explain.machine_state import loaded_size
from localrun_tui.screens.explain.measurable import measurable
from localrun_tui.screens.explain.parameters import BY_FIELD, CONTEXTS, PARAMETERS, turned

WIDE = (200, 50)
BUILTIN = REPOSITORY / "localrun" / "builtin" / "localrun-tiny.gguf"


def screen(pilot: Pilot[Any]) -> ExplainScreen:
    found = pilot.app.screen
    assert isinstance(found, ExplainScreen)
    return found


async def opened(pilot: Pilot[Any]) -> ExplainScreen:
    await ready(pilot)
    await pilot.press("f5")
    await until_text(pilot, "GiB left")
    return screen(pilot)


@pytest.mark.parametrize("size", [SMALL, WIDE])
def test_numbers_follow_the_knobs(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        explain = await opened(pilot)
        await pilot.press("s")
        await until_text(pilot, "6.82 GiB + 6.25 GiB KV")  # 13B in 4.5 bits; 8,192 tokens of 819,200 bytes
        await until_text(pilot, "✘ 0.74 GiB too much")  # of 10 that are free, and what the loaded model would leave
        await pilot.press("k")
        await until_text(pilot, "6.82 GiB + 3.17 GiB KV")
        await pilot.press("h")
        await until_text(pilot, "KV heads GQA 8")
        await pilot.press("left", "left", "p")
        await until_text(pilot, "Context 2,048")
        assert explain.what == WhatIf(SIZES["13B"], "INT2", "GQA", "q8", 2048)
        await pilot.press("P", "c")
        await until_text(pilot, "no KV")
        slow = screen_text(app)
        await pilot.press("c")
        await until(pilot, lambda: screen_text(app) != slow)
        await pilot.click("#chats")
        await until_text(pilot, "Chats 2")
        assert len(screen_text(app).splitlines()) == size[1]
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat_screen(pilot))

    drive(app, steps, size)


def test_advice_names_keys_and_has_no_backticks() -> None:
    advice = "`--kv q8` holds twice as much, and `localrun bench --compare A B` compares two"
    report = TopicReport("memory", "What it takes", "", (), (), conclusion=advice)
    text = report_content(report, 40).plain
    assert "→ F7: kv q8 holds twice" in text
    assert "localrun bench --compare A B compares" in " ".join(text.split())
    assert "`" not in text


def test_times_say_that_the_machine_was_busy_when_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch, idle=False)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        for words in ("tokens read in ≤", ", then ≥", "≥: measured while others computed"):
            await until_text(pilot, words)

    drive(app, steps)


def test_parameters_memory_and_times_are_whole_in_60_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch, idle=False)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await opened(pilot)  # with what is left
        await until(pilot, lambda: re.search(r"Time .* tok/s", screen_text(app)))
        await pilot.press("P", "k", "w", "w", "w", "w", *["right"] * len(CONTEXTS))
        await until_text(pilot, "Context 131,072")
        await until_text(pilot, "k KV q8\n")
        assert "s Size " in screen_text(app)
        assert "w Window 16,384 b Chats 1 " in screen_text(app)

    drive(app, steps, (60, 20))


def test_lines_are_as_long_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topics beside them take more of it in a wide terminal."""
    known_machine(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        explain = await opened(pilot)
        for width in (99, 100, 120, 99):
            await pilot.resize_terminal(width, 40)
            await until(pilot, lambda: room(explain) - 12 < longest(explain) <= room(explain))

    def room(explain: ExplainScreen) -> int:
        return explain.query_one("#report").scrollable_content_region.width

    def longest(explain: ExplainScreen) -> int:
        return max(len(line) for line in str(explain.query_one("#drawing", Static).render()).splitlines())

    drive(app, steps, (120, 40))


def test_every_topic_is_there_by_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        explain = await opened(pilot)
        for name, words in WORDS.items():
            await until_text(pilot, f"▌ {words.name}")
            await until_text(pilot, words.title)
            assert explain.topic == name
            await page_down_to(pilot, words.text.rsplit(" ", 1)[1])  # its last word
            await pilot.press("down")

    drive(app, steps)


def test_a_command_goes_to_its_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/explain caches")
        await pilot.press("enter")
        await until_text(pilot, "one of cache, phases")
        await pilot.press("ctrl+u")
        await type_text(pilot, "/explain window")
        await pilot.press("enter")
        await until_text(pilot, "▌ Window")

    drive(app, steps)


def test_knobs_go_round_and_the_slider_ends() -> None:
    for parameter in PARAMETERS:
        what = WhatIf(SIZES["7B"], ctx=CONTEXTS[0])
        seen = [what]
        for _ in parameter.values(what):
            seen.append(turned(seen[-1], parameter, 1))
        if parameter.field == "ctx":
            assert [one.ctx for one in seen] == [*CONTEXTS, CONTEXTS[-1]]
        else:
            said = [parameter.said(one) for one in seen]
            assert said[-1] == said[0]
            assert len({*said}) == len(said) - 1
        assert parameter.said(turned(seen[1], parameter, -1)) == parameter.said(seen[0])


def test_the_loaded_model_is_a_size_like_the_others() -> None:
    info = replace(INFO, name="builtin", path=str(BUILTIN), precision="Q8_0", weights_bytes=7_000_000)
    size = loaded_size(info)
    assert size is not None
    what = turned(WhatIf(SIZES["70B"]), BY_FIELD["size"], 1, size)
    assert (what.size, what.weights, what.weights_bytes) == (size, "Q8_0", 7_000_000)
    assert turned(what, BY_FIELD["weights"], 1, size).weights == "FP32"
    back = turned(what, BY_FIELD["size"], 1, size)
    assert (back.size, back.weights) == (SIZES["1B"], "INT4")
    assert loaded_size(replace(info, path=str(Path("nowhere.gguf")))) is None
    assert loaded_size(None) is None


@pytest.mark.parametrize("size", [SMALL, WIDE])
def test_a_topic_is_measured_on_the_loaded_model(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        await pilot.press("down", "m")
        await until_text(pilot, "Measured here: Qwen3 4B")
        await until_text(pilot, "So it is.")
        assert "7.50 ms" in screen_text(app)
        assert client.measured == ["phases"]
        await pilot.press("up")
        await until(pilot, lambda: "So it is." not in screen_text(app))

    drive(app, steps, size)


def test_a_measurement_is_cancelled_and_nothing_else_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, client = chat_app(client=ScriptedClient(hangs="cache"))

    async def steps(pilot: Pilot[Any]) -> None:
        explain = await opened(pilot)
        await pilot.press("m")
        await until_text(pilot, "Esc cancels")
        await until_text(pilot, " steps, ")
        assert "Measure here" not in screen_text(app), "one at a time"
        await pilot.press("k")
        await until_text(pilot, "KV q8")
        await pilot.press("escape")
        await until_text(pilot, "Measure here")
        assert app.screen is explain
        assert "Esc cancels" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat_screen(pilot))
        assert client.measured == ["cache"]

    drive(app, steps)


def test_an_answer_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, client = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "hello")
        await until_text(pilot, "Hello!")
        await pilot.press("f5")
        await until_text(pilot, "GiB left")
        await pilot.press("m")
        await until_text(pilot, "an answer is on its way")
        assert client.measured == []

    drive(app, steps)


def test_a_server_measures_nothing() -> None:
    assert measurable(None, lambda: False) is None
    elsewhere: Any = FakeClient(LoadOptions(Path()), lambda request: "")
    assert measurable(elsewhere, lambda: False) is None


def test_the_cache_is_in_the_codec_that_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)
    app, _ = chat_app(client=ScriptedClient(info=replace(INFO, path=str(BUILTIN), kv_codec="k8v4")))

    async def steps(pilot: Pilot[Any]) -> None:
        explain = await opened(pilot)
        assert explain.what.codec == "k8v4"

    drive(app, steps)
