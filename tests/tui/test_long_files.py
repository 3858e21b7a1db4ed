"""A file that is too long for a message: a look into it, a part of it, and reading it in parts."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import chat_app, chat_screen, notice, ready, send, type_text
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import INFO, Script, ScriptedClient
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from localrun.base.content import FilePart, TextPart
from localrun.base.errors import PromptTooLongError
from localrun.base.events import Done, Event, Prefill
from localrun.base.request import Request
from localrun.chat import attachments
from localrun.chat.long_text.condensed import Condensed
from localrun.chat.long_text.condensed_file import ReadingProgress, ReadingWatch, condense_file
from localrun.chat.long_text.ways_to_read import ReadingWay
from localrun_tui.screens.chat.suggestions import SuggestionMenu
from localrun_tui.screens.dialogs.read_screen import ReadScreen
from localrun_tui.state import file_reading
from localrun_tui.state.long_text import LongText

FOUND = "ERROR the disk is full"
LINES = [f"line {number} is fine" for number in range(1, 9_001)]
LINES[4_499] = FOUND


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attachments, "MAX_BYTES", 1 << 17)
    path = tmp_path / "server.log"
    path.write_text("\n".join(LINES))
    return path


class Reader(ScriptedClient):
    """Notes the error where a part has it; answers all else with what its scripts say."""

    def events(self, request: Request) -> Iterator[Event]:
        text = str(request.messages[-1]["content"])
        if "Below is a part of" in text:
            self.scripts.insert(len(self.requests), Script(FOUND if FOUND in text else "NOTHING"))
        yield from super().events(request)


def dialog(pilot: Pilot[Any]) -> ReadScreen:
    assert isinstance(pilot.app.screen, ReadScreen)
    return pilot.app.screen


async def opened(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, ReadScreen))
    await until_text(pilot, "9,000 lines")


async def begin_reading(pilot: Pilot[Any]) -> None:
    """Ask what is wrong in the log, and read it in parts."""
    await ready(pilot)
    await type_text(pilot, "/read server.log what is wrong?")
    await pilot.press("enter")
    await opened(pilot)
    await until_text(pilot, "tokens to read")
    await pilot.press("up", "enter")


def attached(pilot: Pilot[Any]) -> list[str]:
    return [file.name for file in chat_screen(pilot).composer.attachments]


def test_a_long_file_is_read_in_parts_for_the_question_that_was_typed(log: Path) -> None:
    app, client = chat_app(client=Reader([Script("The disk was full.")]))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "What went wrong? @server.log")
        await until_text(pilot, "▌server.log")
        await pilot.press("enter")
        await opened(pilot)
        assert dialog(pilot).query_one("#asked", Input).value == "What went wrong?"
        await until_text(pilot, "tokens to read, ~")
        await pilot.press("down", "enter")
        await until(pilot, lambda: attached(pilot) == ["server.log in parts"])
        await pilot.press("enter")
        await until_text(pilot, "The disk was full.")

    drive(app, steps)
    (file,) = digests(client)
    assert FOUND in file
    assert file.count("[lines") == 1


def digests(client: ScriptedClient) -> list[str]:
    """The notes that went along with the last message."""
    parts = client.requests[-1].messages[-1]["content"]
    return [str(part["text"]) for part in parts if part["type"] == "file"]


def test_a_part_is_looked_at_and_attached(log: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/attach server.log")
        await pilot.press("enter")
        await opened(pilot)
        await pilot.press(*"disk")
        await until_text(pilot, f"4500: {FOUND}")
        assert "line 4499 is fine" in screen_text(app)
        await pilot.press(*"et")
        await until_text(pilot, "none of its 9,000 lines has “disket”")
        assert FOUND not in screen_text(app)
        dialog(pilot).query_one("#part", Input).value = "9001-"
        await until_text(pilot, "has nothing of its 9,000 lines")
        dialog(pilot).query_one("#part", Input).value = "-3"
        await until_text(pilot, "line 8998 is fine")
        await pilot.press("enter")
        await until(pilot, lambda: attached(pilot) == ["server.log:-3"])

    drive(app, steps, LARGE)


def test_a_click_marks_a_way_and_a_second_one_takes_it(log: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/read server.log What went wrong?")
        await pilot.press("enter")
        await opened(pilot)
        await until_text(pilot, "in parts")
        ways = dialog(pilot).query_one("#ways", OptionList)
        await pilot.click(ways, offset=(5, ways.size.height - 1))
        await until(pilot, lambda: ways.highlighted == 1)
        await pilot.click(ways, offset=(5, 0))
        await until(pilot, lambda: ways.highlighted == 0)
        assert not attached(pilot)
        await pilot.click(ways, offset=(5, 0), times=2)
        await until(pilot, lambda: attached(pilot) == ["server.log condensed"])

    drive(app, steps, LARGE)


def test_lines_with_words_of_the_question_are_offered_and_the_question_is_kept(log: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/read server.log")
        await pilot.press("enter")
        await opened(pilot)
        await pilot.press("tab", *"Which errors?")
        await until_text(pilot, "or as Part, at once: /error/ 1 line")
        await pilot.press("shift+tab", *"/error/", "enter")
        await until(pilot, lambda: attached(pilot) == ["server.log:/error/"])
        assert chat_screen(pilot).composer.editor.text == "Which errors?"

    drive(app, steps)


def test_a_question_is_looked_at_once_however_fast_its_keys_came(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes a thread, and counts tokens in the engine."""
    asked: list[str] = []
    ways = LongText.ways

    def count(text: LongText, typed: str, question: str) -> list[ReadingWay]:
        asked.append(question)
        return ways(text, typed, question)

    monkeypatch.setattr(LongText, "ways", count)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/read server.log")
        await pilot.press("enter")
        await opened(pilot)
        assert "choose a way" not in screen_text(app)
        question = "What went wrong?"
        for end in range(1, len(question) + 1):
            dialog(pilot).query_one("#asked", Input).value = question[:end]
        await pilot.press("tab")
        await until_text(pilot, "tokens to read")
        await until_text(pilot, "↑↓ and Enter choose a way")
        assert asked == [question]

    drive(app, steps, SMALL)


def test_a_log_is_condensed_at_once_and_its_text_is_seen_before(log: Path) -> None:
    app, client = chat_app(Script("The disk was full."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/read server.log What went wrong?")
        await pilot.press("enter")
        await opened(pilot)
        await until_text(pilot, "9,000 lines, 8,999 alike in 1 kind, 1 shown as they are")
        await until_text(pilot, f"▌ [4,500] {FOUND}")
        shown = screen_text(app)
        assert shown.index(FOUND) < shown.index("Condensed: "), "errors come first for the eye"
        assert re.search(r"condensed +≈[\d,]+ tokens to read, ~", shown)
        assert re.search(r"in parts +[\d,]+ parts, ≈", shown)
        await pilot.press("down")
        await until_text(pilot, "line 2 is fine")
        await pilot.press("down", "enter")
        await until(pilot, lambda: attached(pilot) == ["server.log condensed"])
        await pilot.press("enter")
        await until_text(pilot, "Counted in server.log condensed, not by the model:")
        assert re.search(rf"The disk was full\.\s+Counted in .*\s+1 × {FOUND}  \(line 4,500\)", screen_text(app))

    drive(app, steps, LARGE)
    (file,) = digests(client)
    assert f"[4,500] {FOUND}" in file
    assert "[×8,999, 1–9,000] line # is fine" in file


def test_escape_ends_the_reading_and_keeps_what_was_read(log: Path) -> None:
    class Slow(Reader):
        def events(self, request: Request) -> Iterator[Event]:
            if len(self.requests) == 2:
                self.scripts[2:] = [Script(never_ends=True)]
                yield from ScriptedClient.events(self, request)
            else:
                yield from super().events(request)

    app, client = chat_app(client=Slow([Script()]))

    async def steps(pilot: Pilot[Any]) -> None:
        await begin_reading(pilot)
        await until_text(pilot, "part 3 of ")
        await until(pilot, lambda: len(client.requests) == 3)
        await pilot.press("escape")
        await until(pilot, lambda: attached(pilot) == ["server.log in parts"])
        (file,) = chat_screen(pilot).composer.attachments
        assert isinstance(file, FilePart)
        assert "2 of " in file.text
        assert re.search(r"2 of \d+ parts read, up to line", " ".join(notice(pilot).split()))
        assert chat_screen(pilot).composer.editor.text == "what is wrong?"

    drive(app, steps)


def test_why_the_kinds_of_lines_stand_in_the_place_of_notes_is_still_said_later(log: Path) -> None:
    app, _ = chat_app(Script("line 17 is fine " * 9))

    async def steps(pilot: Pilot[Any]) -> None:
        await begin_reading(pilot)
        await until(pilot, lambda: attached(pilot) == ["server.log condensed"])
        pilot.app.clear_notifications()
        assert "the kinds of all lines stand in their place" in " ".join(notice(pilot).split())

    drive(app, steps, LARGE)


def test_reading_shows_how_far_it_is_within_a_part_and_a_stop_before_its_end_leads_back(log: Path) -> None:
    half = Script(prefill=(Prefill(0, 0, 100), Prefill(40, 0, 100)), never_reads_all=True)
    app, client = chat_app(half)

    async def steps(pilot: Pilot[Any]) -> None:
        await begin_reading(pilot)
        await until_text(pilot, ": 40% · ")
        assert "part 1 of " in screen_text(app)
        assert " left" in screen_text(app)
        await pilot.press("escape")
        await until_text(pilot, "the first part was not read to its end")
        assert dialog(pilot).query_one("#asked").has_focus
        await pilot.press("up", "enter")  # condensed
        await until(pilot, lambda: attached(pilot) == ["server.log condensed"])

    drive(app, steps)
    assert len(client.requests) == 1


def test_a_reading_that_is_to_stop_says_so_until_it_has(log: Path) -> None:
    is_seen = threading.Event()

    class Busy(ScriptedClient):
        def events(self, request: Request) -> Iterator[Event]:
            for event in super().events(request):
                if isinstance(event, Done):
                    is_seen.wait()
                yield event

    app, _ = chat_app(client=Busy([Script(never_ends=True)]))

    async def steps(pilot: Pilot[Any]) -> None:
        try:
            await begin_reading(pilot)
            await until_text(pilot, "its note")
            await pilot.press("escape")
            await until_text(pilot, "stopping: ")
        finally:
            is_seen.set()
        await until_text(pilot, "the first part was not read to its end")
        assert "stopping" not in screen_text(app)

    drive(app, steps)


def test_ctrl_c_ends_the_reading_and_not_the_app(log: Path) -> None:
    half = Script(prefill=(Prefill(0, 0, 100), Prefill(40, 0, 100)), never_reads_all=True)
    app, _ = chat_app(half)

    async def steps(pilot: Pilot[Any]) -> None:
        await begin_reading(pilot)
        await until_text(pilot, ": 40% · ")
        await pilot.press("ctrl+c")
        await until_text(pilot, "the first part was not read to its end")

    drive(app, steps)


@pytest.mark.parametrize("typed", ["/read server.log:2-8000 why?", "/attach server.log:2-8000"])
def test_a_part_that_is_too_long_is_shown_with_what_reading_it_takes(typed: str, log: Path) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, typed)
        await pilot.press("enter")
        await opened(pilot)
        assert dialog(pilot).query_one("#part", Input).value == "2-8000"
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ReadScreen))
        chat_screen(pilot).composer.write("")
        await type_text(pilot, "/read server.log:2-9 why?")
        await pilot.press("enter")
        await until(pilot, lambda: attached(pilot) == ["server.log:2-9"])

    drive(app, steps)


def test_a_question_is_needed_and_a_small_screen_has_room(log: Path) -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/read server.log")
        await pilot.press("enter")
        await opened(pilot)
        await pilot.press("enter")  # all of it is too long to be attached
        await until(pilot, lambda: dialog(pilot).query_one("#asked", Input).has_focus)
        await pilot.press("enter")
        await until_text(pilot, "takes a question")
        assert "Escape leaves" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ReadScreen))
        assert attached(pilot) == []

    drive(app, steps, SMALL)
    assert client.requests == []


def test_a_message_with_a_file_that_does_not_fit_offers_a_part_of_it(tmp_path: Path) -> None:
    """The message is sent again with the part in the place of the file."""
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree")
    too_long = Script(fails=PromptTooLongError("too long", n_tokens=9000, ctx=8192))
    app, client = chat_app(too_long, Script("Short enough."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, f"/attach {tmp_path / 'notes.txt'}")
        await pilot.press("enter")
        await until(pilot, lambda: attached(pilot))
        await type_text(pilot, "sum up")
        await pilot.press("enter")
        await until_text(pilot, "A part of notes.txt")
        await until(pilot, lambda: not app.screen.deaf)  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadScreen))
        dialog(pilot).query_one("#part", Input).value = "-1"
        dialog(pilot).query_one("#part").focus()
        await until_text(pilot, "three")
        await pilot.press("enter")
        await until_text(pilot, "Short enough.")

    drive(app, steps)
    assert digests(client) == ["three"]


def test_a_file_that_is_opened_while_the_model_loads_is_read_once_it_is_there(log: Path) -> None:
    gate = threading.Event()
    app, _ = chat_app(gate=gate)

    async def steps(pilot: Pilot[Any]) -> None:
        await type_text(pilot, "/read server.log Which errors?")
        await pilot.press("enter")
        await opened(pilot)
        await until_text(pilot, "the model is being loaded")
        gate.set()
        await until_text(pilot, "tokens to read")

    drive(app, steps)


@pytest.mark.parametrize("way", ["@", "/attach ", "/read "])
def test_a_file_of_any_size_says_how_far_it_is_read_and_escape_stops_it(
    way: str, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_a_stop(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, f"{way}server.log:condensed{' why' if way == '/read ' else ''}")
        if way == "@":
            await until_text(pilot, "each kind once")
        await pilot.press("enter")
        await until_text(pilot, "reading server.log: 12% of 100 bytes, ≈")
        assert "Esc stops it" in screen_text(app)
        await pilot.press("escape")
        await until_text(pilot, "server.log was not read to its end")
        assert attached(pilot) == []
        monkeypatch.setattr(attachments, "condense_file", condense_file)
        await pilot.press("ctrl+u")
        await type_text(pilot, "/attach server.log:condensed")
        await pilot.press("enter")
        await until(pilot, lambda: attached(pilot) == ["server.log:condensed"])

    drive(app, steps)


def test_a_dialog_that_is_left_stops_reading(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = wait_for_a_stop(monkeypatch)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+t", *"server.log:condensed", "enter")
        await until_text(pilot, "reading server.log: 12%")
        await pilot.press("escape")
        await until(pilot, stopped.is_set)
        await send(pilot, "still there?")
        await until_text(pilot, "Hello!")

    drive(app, steps)


def wait_for_a_stop(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A file that is read for ever; set when that was stopped."""
    stopped = threading.Event()

    def read(path: Path, watch: ReadingWatch) -> Condensed:
        progress = ReadingProgress(path.name, 100)
        progress.n_read = 12
        try:
            while True:
                watch(progress)
                time.sleep(0.2)
        finally:
            stopped.set()

    monkeypatch.setattr(attachments, "condense_file", read)
    monkeypatch.setattr(file_reading, "_SHORT", 0.0)
    return stopped


def test_a_question_that_is_read_for_is_a_draft_meanwhile(log: Path) -> None:
    app, _ = chat_app(Script("half a note", never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await begin_reading(pilot)
        composer = chat_screen(pilot).composer
        assert composer.unsent == (TextPart("/read server.log what is wrong?"),)
        await pilot.press("escape")
        await until_text(pilot, "the first part was not read")
        await pilot.press("escape")
        await until(pilot, lambda: composer.unsent == (TextPart("what is wrong?"),))
        assert not chat_screen(pilot).query_one(SuggestionMenu).display

    drive(app, steps, LARGE)


def test_a_server_that_says_no_context_leaves_a_part_its_size() -> None:
    app, _ = chat_app(client=ScriptedClient(info=replace(INFO, ctx=0)))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        text = LongText(chat_screen(pilot).session, "server.log", "\n".join(LINES))
        assert text.n_tokens(text.part("")) > len(LINES)

    drive(app, steps)
