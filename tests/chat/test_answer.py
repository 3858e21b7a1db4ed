"""What an answer under way says of itself, event by event."""

import time

from localrun_testing.answers_under_way import answer_to
from localrun_testing.scripted_client import COMPLETION, INFO

from localrun.base.content import CallPart, ResultPart
from localrun.base.errors import EngineDiedError
from localrun.base.events import Accepted, Done, Event, Prefill, Token, ToolCallDelta
from localrun.base.tool_events import CallsMade, ToolDone
from localrun.chat.prompt_progress import PromptProgress
from localrun.chat.tree import Message


def test_each_event_brings_it_into_a_phase() -> None:
    answer = answer_to("hi")
    assert (answer.phase, answer.ttft) == ("starting", None)
    events: list[tuple[Event, str]] = [
        (Accepted(4), "starting"),
        (Prefill(0, 0, 4), "reading"),
        (Prefill(4, 0, 4), "reading"),
        (Token(1, "hm", "thinking"), "thinking"),
        (Token(2, "", "answer"), "thinking"),
        (Token(3, "Hel", "answer"), "writing"),
        (Token(4, "lo", "answer"), "writing"),
    ]
    for event, phase in events:
        answer.take(event)
        assert answer.phase == phase, event
    assert (answer.thinking, answer.text, answer.n_tokens) == ("hm", "Hello", 4)
    assert answer.first_token is not None
    assert answer.first_word is not None
    assert answer.began <= answer.first_token <= answer.first_word


def test_the_time_of_its_first_word_is_that_of_the_first_only() -> None:
    answer = answer_to("hi")
    answer.take(Token(1, "a", "answer"))
    first = answer.first_word
    answer.take(Token(2, "b", "answer"))
    assert answer.first_word == first


def test_a_rate_is_that_of_the_generation_under_way() -> None:
    answer = answer_to("hi")
    for number in range(5):
        answer.take(Token(number, "a", "answer"))
    assert answer.first_token is not None
    assert answer.tps(answer.first_token + 2.0) == 2.0
    assert answer.tps(answer.first_token) == 0.0
    answer.take(CallsMade(Done(COMPLETION, ()), (CallPart("c", "time", "{}"),)))
    assert (answer.phase, answer.tps(answer.first_token + 2.0)) == ("calling", 0.0)
    answer.take(ToolDone(ResultPart("c", "time", "now")))
    answer.take(Token(6, "b", "answer"))
    assert answer.tps(answer.first_token + 60.0) == 0.0, "one token has no rate"
    answer.take(Token(7, "b", "answer"))
    assert answer.tps(answer.first_token + 60.0) > 1 / 60, "the time of the tool does not count"


def test_an_answer_that_begins_with_a_call_began_then() -> None:
    answer = answer_to("hi")
    answer.take(ToolCallDelta(0, "c", "time", ""))
    began = answer.ttft
    assert began is not None
    answer.take(CallsMade(Done(COMPLETION, ()), (CallPart("c", "time", "{}"),)))
    answer.take(ToolDone(ResultPart("c", "time", "now")))
    answer.take(Token(1, "b", "answer"))
    assert answer.ttft == began, "the time in which a person was asked does not count"


def test_half_an_answer_is_kept_with_what_ended_it() -> None:
    answer = answer_to("hi")
    assert answer.keep() is None, "nothing came"
    answer.take(Token(1, "Hel", "answer"))
    answer.error = EngineDiedError("died")
    kept = answer.keep()
    assert kept is answer.kept
    assert kept is not None
    assert (kept.text, kept.interrupted) == ("Hel", True)
    assert kept.stats == {"model": INFO.name, "backend": INFO.backend, "error": "died"}


def test_pieces_on_disk_and_the_whole_answer_are_one_message() -> None:
    answer = answer_to("hi")
    answer.take(Token(1, "Hel", "answer"))
    answer.keep_half()
    answer.take(Token(2, "lo", "answer"))
    answer.take(Done(COMPLETION, (1, 2)))
    kept = answer.keep()
    assert kept is not None
    assert [message.text for message in answer.chat.tree.messages()] == ["hi", "Hello"]
    assert kept.stats["temperature"] == 0.5
    assert kept.stats["ttft_ms"] == 1000 * (answer.ttft or 0.0)


def test_one_that_goes_on_begins_with_what_was_there() -> None:
    answer = answer_to("hi", Message("m", None, "assistant", (), thinking="hm"))
    answer.take(Token(1, " lo", "thinking"))
    assert (answer.thinking, answer.phase) == ("hm lo", "thinking")


def test_time_left_counts_only_what_is_computed() -> None:
    assert PromptProgress(Prefill(640, 640, 1640), 1.0, 2.0).seconds_left(2.0) is None, "nothing is computed yet"
    progress = PromptProgress(Prefill(1140, 640, 1640), 1.0, 3.0)
    assert (progress.tps, progress.seconds_left(3.0), progress.seconds_left(3.5)) == (250.0, 2.0, 1.5)
    assert progress.seconds_left(60.0) == 0.0, "it takes longer than was thought"
    assert PromptProgress(Prefill(1640, 640, 1640), 1.0, 3.0).seconds_left(3.0) is None


def test_the_results_of_tools_are_read_in_their_own_time() -> None:
    answer = answer_to("hi")
    answer.take(Prefill(0, 0, 4))
    answer.take(Prefill(4, 0, 4))
    answer.take(Token(1, "a", "answer"))
    assert answer.n_held == 5
    answer.take(CallsMade(Done(COMPLETION, ()), (CallPart("c", "time", "{}"),)))
    assert answer.prompt is None
    before = time.monotonic()
    phases = []
    for event in (ToolDone(ResultPart("c", "time", "now")), Prefill(5, 5, 9)):
        answer.take(event)
        phases.append(answer.phase)
    assert phases == ["starting", "reading"]
    assert answer.prompt is not None
    assert answer.prompt.began >= before
    answer.take(Prefill(9, 5, 9))
    answer.take(Token(2, "b", "answer"))
    assert (answer.phase, answer.n_held) == ("writing", 10)
