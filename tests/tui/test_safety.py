"""Nothing that a model, a file, a name or a title says steers the terminal: what reaches it is scanned."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.chat_app import ask, chat_app, chat_screen, ready, views
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, INFO, VIEW, Script, ScriptedClient
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from localrun.base.content import FilePart, as_content
from localrun.base.errors import EngineError
from localrun.base.events import CacheFigures, Prefill
from localrun.base.views import GroupView, MemoryPart
from localrun.chat.journal import ChatStore
from localrun.chat.left_out import Attached
from localrun.chat.tree import Message
from localrun_tui.markdown.text import MarkdownText
from localrun_tui.screens.chat.links import is_web
from localrun_tui.screens.chat.message_notes import note_of
from localrun_tui.screens.chat.message_view import MessageView

SEQUENCES = (
    "\x1b]0;PWN\x07",  # window title
    "\x1b]52;c;cHduZWQ=\x1b\\",  # clipboard
    "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",  # a link with a hidden target
    "\x1b[2J\x1b[H",  # clear the screen
    "\x1b[31m",
    "\x1bP+q544e\x1b\\",  # DCS
    "\x1bc",  # reset
    "\x9b31m",
    "\x9d0;PWN\x9c",
    "\x0e\x0f\x05\x08\x0c\r",
    "\x1b_APC\x1b\\",
    "\u202eevil\u2066",
    "&#27;[31m &#x9b;2J &#x202e; &#13;",  # entities name characters too
    "\udc1b[31m",
    "\U000e0041",
)
FORBIDDEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]")
CONTEXTS = (
    *("{}", "text {} text", "# {}", "- {}", "> {}", "`{}`", "**{}**", "```\n{}\n```", "```{}\nx\n```"),
    *("| {} |\n|-|\n| {} |", "[{}](http://a.example)", "[x](<http://a.example/{}>)", "![{}](http://a.example)"),
    "<http://a.example/{}>",
)


def reaches_terminal(text: MarkdownText, width: int = 40) -> str:
    return "\n".join(line.plain for line in text.lines(width))


@pytest.mark.parametrize("context", CONTEXTS)
def test_sequences_split_at_every_position_never_get_through(context: str) -> None:
    for sequence in SEQUENCES:
        page = context.replace("{}", sequence)
        start = page.index(sequence)
        for cut in range(start, start + len(sequence) + 1):
            text = MarkdownText(page[:cut])
            text.lines(40)
            text.append(page[cut:])
            assert not FORBIDDEN.search(reaches_terminal(text)), (page, cut)
            assert not FORBIDDEN.search("".join([text.source, *text.codes()])), "what is copied may be pasted"


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from([*SEQUENCES, "a ", "\n", "**", "`", "[", "](", "|", "\x1b", "]", "\\", "\x9c"]), max_size=12
    )
)
def test_random_streams_never_get_through(pieces: list[str]) -> None:
    text = MarkdownText()
    for piece in pieces:
        text.append(piece)
        assert not FORBIDDEN.search(reaches_terminal(text))


@given(st.text(alphabet=st.characters(codec=None, categories=None), max_size=200), st.integers(1, 9))
def test_any_unicode_at_all_never_gets_through(page: str, size: int) -> None:
    text = MarkdownText()
    for start in range(0, len(page), size):
        text.append(page[start : start + size])
    assert not FORBIDDEN.search(reaches_terminal(text))


def written(app: App[Any]) -> str:
    """What a repaint of the whole screen sends to the terminal, without our own colours."""
    width, height = app.size
    update: Any = app.screen._compositor.render_update(full=True)
    rendered = update.render_segments(app.console)
    assert width
    assert height
    ours = re.compile(r"\x1b\[[0-9;]*[mHGKJ]|\x1b\[\?\d+[hl]")
    return ours.sub("", rendered).replace("\n", "")


EVIL = "".join(SEQUENCES)


class Views(App[None]):
    """Messages of every kind with evil in every field."""

    def compose(self) -> ComposeResult:
        yield MessageView(Message("1", None, "user", as_content(f"hi {EVIL}")), f"You{EVIL}")
        stats: dict[str, object] = {"error": EVIL, "model": EVIL}
        message = Message("2", "1", "assistant", as_content(EVIL), thinking=EVIL, stats=stats, interrupted=True)
        view = MessageView(message, EVIL, (1, 2))
        view.document.note = note_of(message, EVIL, None)
        view.document.thinking_open = True
        yield view


def test_every_field_of_a_message_is_cleaned() -> None:
    app = Views()

    async def steps(pilot: Pilot[Any]) -> None:
        text = written(app)
        assert not FORBIDDEN.search(text), FORBIDDEN.findall(text)
        assert "PWN" not in text

    drive(app, steps)


def test_the_whole_app_with_an_evil_engine_chat_and_file(tmp_path: Path) -> None:
    view = replace(VIEW, groups=(GroupView(EVIL, 1, None, EVIL, 1, f"rcdw{EVIL}"),), memory=(MemoryPart(EVIL, 1, 2),))
    info = replace(INFO, name=EVIL, precision=EVIL, backend=EVIL, kv_codec=EVIL, notes=(EVIL,))
    script = Script(
        f"answer {EVIL}",
        thinking=EVIL,
        piece=1,
        prefill=(Prefill(1, 1, 2, EVIL),),
        completion=replace(COMPLETION, cache=CacheFigures(cache_note=EVIL), kv_codec=EVIL, model=EVIL),
    )
    failing = Script(fails=EngineError(f"bad {EVIL}", EVIL))
    app, _ = chat_app(client=ScriptedClient([script, failing], info=info, cache=view), folder=tmp_path)
    store = ChatStore(tmp_path)
    store.create(title=f"old {EVIL}", model=EVIL).add_user(EVIL)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        seen = [written(app)]
        chat_screen(pilot).composer.attached.take(Attached([FilePart(f"file{EVIL}", EVIL)], f"left out: {EVIL}"))
        await pilot.pause()
        seen.append(written(app))
        await ask(pilot, f"question {EVIL}")
        seen.append(written(app))
        await pilot.press("ctrl+g")
        await until_text(pilot, "Memory")
        await pilot.press("ctrl+l")
        await until_text(pilot, "old")
        await ask(pilot, "again")
        seen.append(written(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        seen.append(written(app))
        await pilot.press("escape")
        chat_screen(pilot).composer.edit("1", as_content(f"edit {EVIL}"))
        await pilot.pause()
        seen.append(written(app))
        views(pilot)[0].action_copy()
        await until(pilot, lambda: app.clipboard)
        assert not FORBIDDEN.search(app.clipboard)
        for text in seen:
            assert not FORBIDDEN.search(text), FORBIDDEN.findall(text)
            assert "PWN" not in text
        assert "answer" in seen[2]
        assert "bad" in seen[3]
        assert screen_text(app)

    drive(app, steps, LARGE)


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "file:///etc/passwd", "http://", "ssh://a.example", "http://a\x1b[31m", "//a.example", "x"],
)
def test_only_web_addresses_are_opened(link: str) -> None:
    assert not is_web(link)
    assert is_web("https://a.example/b?c=d")
