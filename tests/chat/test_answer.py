"""What an answer under way says of itself, event by event."""

from localrun_testing.scripted_client import COMPLETION, INFO

from localrun.base.content import CallPart, ResultPart
from localrun.base.errors import EngineDiedError
from localrun.base.events import Accepted, Done, Event, Prefill, Token, ToolCallDelta
from localrun.base.request import Sampling
from localrun.base.tool_events import CallsMade, ToolDone
from localrun.chat.journal import ChatStore
from localrun.chat.tree import Message
from localrun.chat.turn import Answer, TurnOptions, begin_turn


def begin(begun: Message | None = None) -> Answer:
    chat = ChatStore(None).create()
    question = chat.add_user("hi").id
    request, _ = begin_turn(chat, question, TurnOptions(Sampling(temperature=0.5)), 0)
    return Answer(chat, question, request, INFO, begun)


def test_each_event_brings_it_into_a_phase() -> None:
    answer = begin()
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
    answer = begin()
    answer.take(Token(1, "a", "answer"))
    first = answer.first_word
    answer.take(Token(2, "b", "answer"))
    assert answer.first_word == first


def test_a_rate_is_that_of_the_generation_under_way() -> None:
    answer = begin()
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
    answer = begin()
    answer.take(ToolCallDelta(0, "c", "time", ""))
    began = answer.ttft
    assert began is not None
    answer.take(CallsMade(Done(COMPLETION, ()), (CallPart("c", "time", "{}"),)))
    answer.take(ToolDone(ResultPart("c", "time", "now")))
    answer.take(Token(1, "b", "answer"))
    assert answer.ttft == began, "the time in which a person was asked does not count"


def test_half_an_answer_is_kept_with_what_ended_it() -> None:
    answer = begin()
    assert answer.keep() is None, "nothing came"
    answer.take(Token(1, "Hel", "answer"))
    answer.error = EngineDiedError("died")
    kept = answer.keep()
    assert kept is answer.kept
    assert kept is not None
    assert (kept.text, kept.interrupted) == ("Hel", True)
    assert kept.stats == {"model": INFO.name, "backend": INFO.backend, "error": "died"}


def test_pieces_on_disk_and_the_whole_answer_are_one_message() -> None:
    answer = begin()
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
    answer = begin(Message("m", None, "assistant", (), thinking="hm"))
    answer.take(Token(1, " lo", "thinking"))
    assert (answer.thinking, answer.phase) == ("hm lo", "thinking")
