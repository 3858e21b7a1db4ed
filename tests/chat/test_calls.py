"""Calls of tools within an answer: kept as parts of its message, and given to the model as messages of their own."""

from dataclasses import replace

import pytest
from localrun_testing.scripted_client import COMPLETION, INFO

from localrun.base.content import CallPart, Content, ResultPart, TextPart
from localrun.base.events import Done, Token, ToolCall
from localrun.base.request import Sampling
from localrun.base.tool_events import CallsMade, ToolDone, ToolStarted, TurnEvent
from localrun.chat.conversation import Chat
from localrun.chat.journal import ChatStore
from localrun.chat.requests import NO_RESULT, request_messages
from localrun.chat.turn import Answer, TurnOptions, begin_turn, continue_turn, may_go_on

CALL = CallPart("c1", "read_file", '{"path": "a"}', thought_end=4)
RESULT = ResultPart("c1", "read_file", "milk", seconds=0.5, bytes=4)
MADE = Done(
    replace(
        COMPLETION,
        text="Let me see.",
        thinking="hm",
        tool_calls=(ToolCall("c1", "read_file", CALL.arguments),),
        token_ids=(7, 8),
    ),
    (1, 2),
)
TURN: list[TurnEvent] = [
    Token(7, "hm", "thinking"),
    Token(8, "Let me see.", "answer"),
    Token(None, "\n\n", "answer"),
    Token(None, "\n\n", "thinking"),
    CallsMade(MADE, (CALL,)),
    ToolStarted("c1"),
    ToolDone(RESULT),
    Token(9, "ah", "thinking"),
    Token(10, "Milk.", "answer"),
    Done(replace(COMPLETION, text="Let me see.\n\nMilk.", thinking="hm\n\nah", token_ids=(9, 10)), (1, 2, 7, 8, 5)),
]
CONTENT: Content = (TextPart("Let me see."), CALL, RESULT, TextPart("Milk."))


@pytest.fixture
def chat(tmp_path: object) -> Chat:
    return ChatStore(None).create()


def answer_to(chat: Chat, events: list[TurnEvent]) -> Answer:
    question = chat.add_user("what is in it?").id
    request, _ = begin_turn(chat, question, TurnOptions(Sampling()), 0)
    answer = Answer(chat, question, request, INFO)
    for event in events:
        answer.take(event)
    return answer


def test_an_answer_is_kept_with_its_calls_and_results(chat: Chat) -> None:
    kept = answer_to(chat, TURN).keep()
    assert kept is not None
    assert (kept.content, kept.thinking) == (CONTENT, "hm\n\nah")
    assert kept.ids == (1, 2, 7, 8, 5, 9, 10), "the ids of the last generation, with its prompt"


def test_a_draft_continues_with_tool_calls(chat: Chat) -> None:
    texts = [""]
    answer = answer_to(chat, [])
    for event in TURN[:-1]:
        answer.take(event)
        assert answer.text.startswith(texts[-1].rstrip("\n")), event
        texts.append(answer.text)
    assert answer.phase == "writing"


def test_it_says_that_a_tool_runs(chat: Chat) -> None:
    assert answer_to(chat, TURN[:6]).phase == "calling"
    assert answer_to(chat, TURN[:7]).phase == "starting"


def test_the_model_is_given_each_generation_and_each_result(chat: Chat) -> None:
    answer_to(chat, TURN).keep()
    chat.add_user("thanks")
    function = {"name": "read_file", "arguments": CALL.arguments}
    assert request_messages(chat.visible(), chat.system)[1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "read_file", "content": "milk"},
        {"role": "assistant", "content": "Milk.", "reasoning_content": "ah"},
        {"role": "user", "content": "thanks"},
    ]


def test_calls_and_results_that_do_not_match_are_not_lost(chat: Chat) -> None:
    other = replace(CALL, id="c2", thought_end=0)
    question = chat.add_user("hi").id
    odd: Content = (RESULT, other, CALL, RESULT, other, TextPart("so"), RESULT)
    messages = request_messages([chat.add_answer(question, odd)])
    assert [(m["role"], m["content"]) for m in messages] == [
        ("assistant", ""),
        ("tool", NO_RESULT),
        ("tool", "milk"),
        ("assistant", ""),
        ("tool", NO_RESULT),
        ("assistant", "so"),
    ]


def test_an_answer_that_was_stopped_after_a_result_goes_on_with_another_generation(chat: Chat) -> None:
    stopped = answer_to(chat, TURN[:7]).keep()
    assert stopped is not None
    assert (stopped.content, stopped.interrupted) == (CONTENT[:-1], True)
    assert may_go_on(stopped)
    request = continue_turn(chat, stopped, TurnOptions(Sampling()))
    assert (request.continues, request.messages[-1]["role"]) == (False, "tool")
    assert stopped.parent is not None
    again = Answer(chat, stopped.parent, request, INFO, stopped)
    for event in TURN[7:]:
        again.take(event)
    kept = again.keep()
    assert kept is not None
    assert kept.content == CONTENT


def test_an_answer_goes_on_within_its_text_and_then_calls(chat: Chat) -> None:
    cut = chat.add_answer(chat.add_user("hi").id, "Let me ", stats={"stop_reason": "length"})
    assert cut.parent is not None
    again = Answer(chat, cut.parent, continue_turn(chat, cut, TurnOptions(Sampling())), INFO, cut)
    again.take(Token(8, "see.", "answer"))
    again.take(CallsMade(replace(MADE, completion=replace(MADE.completion, text="see.")), (CALL,)))
    assert again.content[0] == TextPart("Let me see.")
