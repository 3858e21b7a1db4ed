"""What is told about an answer and the cache: right, in plain words, and readable without colour."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.answers_under_way import answer_to
from localrun_testing.chat_app import ENDS, ask, chat_app, chat_screen, live_view, ready, send
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, INFO, RATES, VIEW, Script, ScriptedClient
from localrun_testing.waiting import PATIENCE
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import OptionList

from localrun.base.content import CallPart
from localrun.base.events import Done, Event, Meanwhile, Prefill, Token
from localrun.base.request import Request
from localrun.base.tool_events import CallsMade
from localrun.base.units import ms
from localrun.base.views import CacheView, GroupView, ServerLoad
from localrun.chat.prompt_progress import PromptProgress
from localrun.chat.turn import Answer
from localrun.diagnose.facts import stages
from localrun_tui.screens.chat import figures
from localrun_tui.screens.chat.answer_figures import draft_lines
from localrun_tui.screens.chat.cache_view import STATES, group_lines
from localrun_tui.screens.chat.figure_lines import phase_bars
from localrun_tui.screens.chat.inspector import Lines
from localrun_tui.screens.chat.live_phases import LivePhases, phases_of
from localrun_tui.screens.chat.status_line import stats_parts
from localrun_tui.screens.explain.explain_screen import ExplainScreen
from localrun_tui.screens.models.precision_menu import PrecisionMenu
from localrun_tui.state import session
from localrun_tui.widgets.meters import bar, meter


def test_unknown_figures_are_left_out() -> None:
    assert next(part.plain for part in stats_parts({"completion_tokens": 1, "ttft_ms": 1.0})) == "1 token"
    parts = stats_parts({"completion_tokens": 3, "decode_tps": None, "cached_tokens": None, "ttft_ms": 800.0})
    assert [part.plain for part in parts] == ["3 tokens", "began after 800 ms"]


def test_the_status_line_and_the_inspector_count_the_same_wait() -> None:
    """The time to the first token has the template in it, which an answer under way does not tell apart."""
    stats = {"completion_tokens": 3, "render_ms": 28.0, "tokenize_ms": 9.7, "ttft_ms": 209.0, "prefill_ms": 159.0}
    waited = sum(took for stage, took in stages(stats).items() if stage != "decode")
    assert [part.plain for part in stats_parts(stats)] == ["3 tokens", f"began after {ms(waited)}"]
    assert ms(waited) == "209 ms"


def test_every_block_is_one_sign_and_signs_differ_without_colour() -> None:
    signs = {state: sign for state, (sign, _, _) in STATES.items()}
    assert len(set(signs.values()) | {"░"}) == len(signs) + 1
    group = GroupView("4 layers", 4, None, "q8", 1 << 20, "rrdcccw")
    title, picture, *form = [line.plain for line in group_lines(group, 12, 80, 64)]
    assert title == "4 layers  6 blocks"  # two of them in 16 bit
    assert picture == "".join(signs[state] for state in group.states) + "░" * 5
    assert form == ["64 tokens a block: 4 quantised (q8), the first and the newest in f16"]
    assert group_lines(replace(group, states=""), 12, 80, 64)[0].plain.endswith("  no block yet")
    few = group_lines(replace(group, states="c"), 12, 80, 64)
    assert few[-1].plain == "64 tokens a block: those between quantised (q8), the first and the newest in f16"


def test_many_blocks_wrap_to_the_width() -> None:
    group = GroupView("1 layer", 1, None, "f16", 1, "c" * 100)
    lines = group_lines(group, 128, 40, 64)
    assert lines[0].plain == "1 layer  100 blocks, 100 bytes"
    assert [line.cell_length for line in lines[1:4]] == [40, 40, 40]


def test_bars_and_meters_read_without_colour() -> None:
    assert bar(0.5, 4).plain == "██░░"
    assert bar(0.0, 4).plain == "░░░░"
    assert bar(7.0, 4).plain == "████"
    assert bar(0.3, 4).plain == "█▎░░"
    assert meter(7900, 8192, 4).plain == "███▉ 96% !"
    assert meter(0, 0, 4).plain == "░░░░ 0%"


def test_the_phases_of_an_answer_under_way_are_shown() -> None:
    reads = (Prefill(512, 512, 2048), Prefill(1024, 512, 2048))
    slow = Script(prefill=reads, prefill_delay=0.1, never_reads_all=True)
    app, _ = chat_app(slow, Script("abcde", piece=1, never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await send(pilot, "x")
        await until_text(pilot, "512 read: ")
        text = screen_text(app)
        assert "512 of 2,048 prompt tokens reused" in text
        assert re.search(r"This answer +[\d.]+ m?s, reading", text)
        assert re.search(r"prefill .*◀", text)
        assert "Nothing yet" not in text
        await pilot.press("escape")
        await until_text(pilot, "Last answer")
        await pilot.press("ctrl+r")
        await until_text(pilot, "5 tokens so far")
        text = screen_text(app)
        assert "first token after" in text
        assert re.search(r"decode .*◀", text)
        await pilot.press("escape")
        await until_text(pilot, "Last answer")

    drive(app, steps, LARGE)


def test_phases_are_computed_only_while_the_inspector_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Answer] = []

    def count(answer: Answer, now: float) -> LivePhases:
        answers.append(answer)
        return phases_of(answer, now)

    monkeypatch.setattr(figures, "phases_of", count)
    app, _ = chat_app(Script("abcde", piece=1, never_ends=True))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "x")
        await until_text(pilot, "abcde")
        assert not answers
        await pilot.press("ctrl+g")
        await until_text(pilot, "5 tokens so far")
        assert answers
        await pilot.press("escape")

    drive(app, steps)


def test_phases_of_minutes_and_hours_stay_on_their_lines() -> None:
    lines = phase_bars({"wait": 12.0, "prefill": 63_000.0, "decode": 14_000_000.0}, "prefill", 40)
    assert [line.cell_length for line in lines] == [40] * 3
    assert [line.plain[-12:].strip() for line in lines] == ["12.0 ms", "1 min 03 s ◀", "3 h 53 min"]


def test_the_phases_of_an_answer_are_those_of_the_generation_under_way() -> None:
    answer = answer_to("hi")
    began = answer.began

    def times(now: float) -> dict[str, float]:
        return {name: round(took) for name, took in phases_of(answer, now).times.items()}

    assert times(began + 1.0) == {"before": 1000}
    answer.prompt = PromptProgress(Prefill(640, 128, 2048), began + 2.0, began + 3.0)
    assert times(began + 4.0) == {"before": 2000, "prefill": 2000}
    assert phases_of(answer, began + 4.0).facts == (
        "128 of 2,048 prompt tokens reused",
        "512 read: 512 tok/s, 1.8 s left",
    )
    answer.take(Token(1, "a", "answer"))
    wrote = answer.wrote_from
    assert wrote is not None
    assert times(wrote + 5.0)["decode"] == 5000
    answer.take(CallsMade(Done(COMPLETION, ()), (CallPart("c", "time", "{}"),)))
    assert times(began + 9.0) == {"before": 9000}
    assert phases_of(answer, began + 9.0).doing == "calling"


def test_the_panel_shows_timeline_cache_and_memory_of_the_message_in_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_known_rates", lambda: RATES)
    app, _ = chat_app(Script("x" * 320))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await until_text(pilot, "Nothing yet: ask something")
        await ask(pilot, "x")
        await until_text(pilot, "Memory")
        text = screen_text(app)
        for words in (
            "decode-bound",
            "A smaller precision helps",
            "30 layers, window 512",
            "outside the window",
            "KV cache",
            "1,216 of 1,474 prompt tokens",
        ):
            assert words in text
        below = str(chat_screen(pilot).inspector.query_one("#inspector-lines").render())
        assert "whole process   3.58 GiB   3.63 GiB" in below  # at most, so far

    drive(app, steps, LARGE)


def explained_topic(app: App[Any]) -> str | None:
    """The topic of Explain, if that is open."""
    if not isinstance(app.screen, ExplainScreen):
        return None
    highlighted = app.screen.query_one(OptionList).highlighted_option
    return highlighted.id if highlighted is not None else None


@pytest.mark.parametrize(
    ("words", "topic"),
    [
        ("prefill ", "phases"),
        ("prompt tokens", "reuse"),
        ("1,500 of 8,192 tokens", "cache"),
        ("whole process", "memory"),
        ("of weights", "precision"),
    ],
)
def test_a_click_on_a_figure_opens_its_page_of_explain(words: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_known_rates", lambda: RATES)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await ask(pilot, "x")
        await until_text(pilot, "Memory")
        lines = chat_screen(pilot).inspector.query_one(Lines)
        shown = str(lines.render()).splitlines()
        row = next(row for row, line in enumerate(shown) if words in line)
        await pilot.click(lines, offset=(shown[row].index(words), row))
        await until(pilot, lambda: explained_topic(app) == topic)

    drive(app, steps, (120, 60))


def test_enter_opens_the_page_about_what_took_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_known_rates", lambda: RATES)
    app, _ = chat_app(Script("x" * 320))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await ask(pilot, "x")
        await until_text(pilot, "A smaller precision helps")
        chat_screen(pilot).inspector.focus()
        await pilot.press("enter")
        await until(pilot, lambda: explained_topic(app) == "precision")

    drive(app, steps, LARGE)


def test_guessed_tokens_are_counted_where_there_were_any() -> None:
    (none,) = draft_lines({"drafted_tokens": 0, "draft_searches": 3}, 60)
    assert none.plain == "no tokens guessed: none were worth their time"
    assert draft_lines({}, 60) == draft_lines({"drafted_tokens": 0}, 60) == []
    (off,) = draft_lines({"drafted_tokens": 0, "drafts_off": "drafts are off"}, 60)
    assert off.plain == "no tokens guessed: drafts are off"
    stats = {"drafted_tokens": 1200, "accepted_tokens": 1100, "completion_tokens": 2001, "draft_gain": 1.8}
    lines = draft_lines(stats, 38)
    assert all(line.cell_length <= 38 for line in lines)
    words = "1,100 of 1,200 guessed tokens right, 2.22 tokens a step"
    gain = "≈1.80 times as fast as without (estimated from its steps)"
    assert " ".join(line.plain.strip() for line in lines) == f"{words}, {gain}"
    older = {name: value for name, value in stats.items() if name != "draft_gain"}
    assert " ".join(line.plain.strip() for line in draft_lines(older, 38)) == words


class Growing(ScriptedClient):
    """Holds more once its answer is over."""

    def events(self, request: Request) -> Iterator[Event]:
        self.cache = replace(VIEW, n_tokens=111)
        yield from super().events(request)
        self.cache = replace(VIEW, n_tokens=222)


def test_the_cache_is_shown_as_it_is_after_the_answer() -> None:
    app, _ = chat_app(client=Growing([Script("abcdefgh", piece=1, delay=0.08)]))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await ask(pilot, "x")
        await until_text(pilot, "222 of 8,192 tokens")

    drive(app, steps, LARGE)


def test_another_chat_shows_nothing_of_the_last_one() -> None:
    """Neither its blocks nor its figures, and while it is answered neither its rate nor its tokens in use."""
    app, _ = chat_app(Script("one"), ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await ask(pilot, "x")
        await until_text(pilot, "1,500 of 8,192 tokens")
        await pilot.press("ctrl+n")
        await until_text(pilot, "KV cache  0 of 8,192 tokens")
        text = screen_text(app)
        assert "no block yet" in text
        assert "300 MiB kept of chats so far" in text
        assert "8,192 left" in text
        assert "began after" not in text
        await send(pilot, "y")
        await live_view(pilot)
        await until_text(pilot, "● writing")
        await pilot.press("ctrl+n")
        await until_text(pilot, "● answering in another chat")
        await until_text(pilot, "8,192 left")
        assert "tok/s" not in screen_text(app)
        await pilot.press("escape")

    drive(app, steps, LARGE)


def test_an_engine_that_does_not_tell() -> None:
    app, _ = chat_app(client=ScriptedClient(cache=None))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await until_text(pilot, "This engine does not tell what it holds.")
        await until_text(pilot, "2.33 GiB of weights, on cpu, KV cache as q8,")

    drive(app, steps, LARGE)


def test_what_an_engine_holds_is_not_unknown_before_it_was_asked() -> None:
    gate = threading.Event()

    class Slow(ScriptedClient):
        def view(self) -> CacheView | None:
            assert gate.wait(PATIENCE)
            return None

    app, _ = chat_app(client=Slow())

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await until_text(pilot, "Asking the engine what it holds…")
        gate.set()
        await until_text(pilot, "This engine does not tell what it holds.")

    drive(app, steps, LARGE)


def test_a_server_says_its_load_and_itself_and_nothing_is_made_up() -> None:
    lines = Lines("x")
    info = replace(INFO, backend="remote", engine="remote", server_says=("engine: vLLM 0.32.0", "not said: tools"))
    lines.show({"backend": "remote", "ttft_ms": 90.0, "connect_ms": 2.0}, ServerLoad(running=2), None, info)
    shown = [line.plain for line in lines.lines(60)]
    assert {"Server now", "2 answered now", "engine: vLLM 0.32.0", "not said: tools"} <= set(shown)
    assert not [line for line in shown if "KV cache" in line or "waiting" in line]
    lines.show({"backend": "remote"}, None, None, info)
    assert "It runs on a server, which says nothing of it." in [line.plain for line in lines.lines(60)]


def test_the_scripted_view_is_of_a_windowed_model() -> None:
    assert {state for group in VIEW.groups for state in group.states} == set(STATES)


def test_a_slow_answer_says_below_it_why_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    """In words of a person; one that was fast says nothing."""
    monkeypatch.setattr(session, "_known_rates", lambda: RATES)
    slow = replace(
        COMPLETION,
        prompt_tokens=2644,
        cached_tokens=12,
        cache=replace(COMPLETION.cache, computed_tokens=2632),
        timings=replace(COMPLETION.timings, ttft_ms=9e3, prefill_ms=8.9e3),
        meanwhile=Meanwhile(changed_at=12),
    )
    app, _ = chat_app(Script("one"), Script("two", completion=slow))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "x")
        await until_text(pilot, "one")
        assert "slow" not in screen_text(app)
        await ask(pilot, "y")
        await until_text(pilot, "a slow start: the chat was read again, since its beginning, or system prompt, changed")

    drive(app, steps, LARGE)


def test_the_inspector_says_in_a_sentence_what_is_slow_and_a_key_loads_another_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_known_rates", lambda: replace(RATES, read_bytes=16e9))
    slow = replace(COMPLETION, timings=replace(COMPLETION.timings, decode_ms=20_000.0))
    app, _ = chat_app(Script("x" * 320, completion=slow), Script("x" * 320))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await ask(pilot, "hello")
        await until_text(pilot, "Slow: this is as fast as this computer's")
        assert "F7 loads it" in screen_text(app)
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.screen, PrecisionMenu))
        await pilot.press("escape")
        await ask(pilot, "again")
        await until_text(pilot, "It began soon and was written faster")

    drive(app, steps, LARGE)
