"""`chat` and `run -c` on what is kept: requests, branches, history, and what happens when something goes wrong."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from localrun_testing.faces import Faces, script, type_in

from localrun.base.errors import EngineDiedError, PromptTooLongError
from localrun.base.events import Event
from localrun.base.request import Request
from localrun.chat.journal import Chat, ChatStore
from localrun.cli.session import CancelOnInterrupt

Patch = pytest.MonkeyPatch


def contents(request: Request) -> list[str]:
    return [str(message["content"]) for message in request.messages]


@pytest.fixture
def chats(home: Path) -> ChatStore:
    return ChatStore(home / "chats")


def only(chats: ChatStore) -> Chat:
    (summary,) = chats.summaries()
    return chats.peek(summary.id)


def shown(chat: Chat) -> list[str]:
    return [message.text for message in chat.tree.path(chat.tree.head)]


def test_a_typed_chat_is_kept(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    type_in(monkeypatch, "one", "two")
    code, out, err = faces.run("chat", "--system", "S")
    assert (code, out) == (0, "You said one.\nYou said two.\n")
    chat = only(chats)
    assert shown(chat) == ["one", "You said one.", "two", "You said two."]
    assert (chat.system, chat.model, chat.title) == ("S", "builtin", "one")
    assert chat.tree[chat.tree.head or ""].stats["completion_tokens"] == 13
    first, second = faces.clients[0].requests
    assert (first.known_ids, first.now, first.chat_id) == ((), chat.created, chat.id)
    assert second.known_ids == (1000, 1001, 1002, *range(13))
    assert contents(second) == ["S", "one", "You said one.", "two"]
    assert "reused 0 of 3 tokens" in err
    assert "context 16 of 128" in err


def test_what_another_program_writes_meanwhile_is_told(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    def typed() -> Iterator[str]:
        yield "one"
        other = ChatStore(chats.folder).open(only(chats).id)
        other.add_answer(other.add_user("theirs?").id, "theirs.")
        yield "two"
        first = next(message for message in other.tree.messages() if message.role == "assistant")
        other.add_answer(other.add_user("a branch?", first.id).id, "a branch.")
        yield "three"
        chats.delete(other.id)
        yield "four"

    type_in(monkeypatch, typed=typed())
    code, _, err = faces.run("chat")
    assert code == 0
    below, branch, deleted = "meanwhile, and this goes below it:", "on another branch: /branch", "deleted this chat"
    assert f"{below})\nYou: theirs?\nModel: theirs.\n" in err
    assert err.count("Another localrun") == 3
    assert err.index(below) < err.index(branch) < err.index(deleted)
    assert contents(faces.clients[0].requests[1])[-3:] == ["theirs?", "theirs.", "two"]
    assert shown(only(chats))[-2:] == ["four", "You said four."]


def test_retry_means_the_last_question_of_another_program(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    chat = chats.create()
    first = chat.add_user("first?")

    def typed() -> Iterator[str]:
        other = ChatStore(chats.folder).open(chat.id)
        other.add_answer(first.id, "first.")
        other.add_answer(other.add_user("second?").id, "second.")
        yield "/retry"

    type_in(monkeypatch, typed=typed())
    _, _, err = faces.run("chat", "-c")
    assert "your last message there has no answer" in err
    assert "You: first?\nModel: first.\nYou: second?\nModel: second.\n" in err
    assert contents(faces.request) == ["first?", "first.", "second?"]


@pytest.mark.parametrize("arguments", [(), ("--no-history",)])
def test_a_piped_chat_is_not_kept(faces: Faces, monkeypatch: Patch, home: Path, arguments: tuple[str, ...]) -> None:
    script(monkeypatch, "one\n/list\n")
    code, out, _ = faces.run("chat", *arguments)
    assert (code, out) == (0, "You said one.\n")
    assert not (home / "chats").exists()
    assert faces.request.chat_id == ""


def test_a_piped_chat_is_kept_when_asked(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    script(monkeypatch, "one\n")
    assert faces.run("chat", "--history")[0] == 0
    script(monkeypatch, "two\n")
    assert faces.run("chat", "-c")[0] == 0
    assert faces.clients[-1].options.chat_id == only(chats).id
    assert shown(only(chats)) == ["one", "You said one.", "two", "You said two."]
    type_in(monkeypatch, "three")
    assert faces.run("chat", "--no-history")[0] == 0
    assert shown(only(chats))[-2:] == ["two", "You said two."]
    assert faces.run("chat", "-c", "--no-history")[0] == 2


def test_run_continue_goes_on_with_the_last_chat(faces: Faces, chats: ChatStore) -> None:
    code, out, err = faces.run("run", "--no-stdin", "-c", "one")
    assert (code, out) == (0, "You said one.\n")
    assert "this is a new one" in err
    code, out, err = faces.run("run", "--no-stdin", "--continue", "two", "--json")
    assert code == 0
    assert json.loads(out)["text"] == "You said two."
    assert contents(faces.request) == ["one", "You said one.", "two"]
    assert faces.request.known_ids
    assert faces.clients[-1].options.chat_id == only(chats).id
    assert faces.run("run", "--no-stdin", "three")[0] == 0, "a run without -c is not kept"
    assert faces.clients[-1].options.chat_id == ""
    assert shown(only(chats)) == ["one", "You said one.", "two", "You said two."]
    assert faces.run("run", "--no-stdin", "-c", "--raw", "x")[0] == 2
    faces.run("run", "--no-stdin", "-c", "--system", "S", "four")
    assert contents(faces.request)[0] == "S"
    assert only(chats).system == "S"


def test_the_model_of_the_chat_answers_again(
    faces: Faces, chats: ChatStore, capsys: pytest.CaptureFixture[str]
) -> None:
    faces.run("run", "--no-stdin", "-c", "one")
    chat = chats.open(chats.summaries()[0].id)
    chat.set(model="gone-7b")
    code, _, err = faces.run("run", "--no-stdin", "-c", "two")
    assert code == 0
    assert "gone-7b, the model of this chat, is not on disk" in err
    assert only(chats).model == "builtin"


def test_branches_are_walked_by_number(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    answers = iter(["first", "second", "third", "last"])
    faces.answer = lambda request: next(answers)
    type_in(
        monkeypatch, "/branch", "q", "/retry", "/edit other", "/branch", "/branch 1", "/branch", "/branch 9", "go on"
    )
    _, out, err = faces.run("chat")
    assert out.split() == ["first", "second", "third", "last"]
    assert "this chat has no branches" in err
    assert "  1   turn 1, you: q\n  2 * turn 1, you: other\n" in err
    assert (
        "  1 * turn 1, you: q\n  2   turn 1, you: other\n  3   turn 1, answer: first\n  4 * turn 1, answer: second"
        in err
    )
    assert "there is no branch 9" in err
    assert contents(faces.request) == ["q", "second", "go on"]
    chat = only(chats)
    assert [chat.tree[one].text for one in chat.tree.children(None)] == ["q", "other"]


def test_commands_on_the_history(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    type_in(
        monkeypatch, "about tides", "/title Tides", "/new", "about stars", "/list", "/search tide", "/open 2", "/show",
        "more", "/open 77", "/open", "/search", "/search nothingness", "/system none", "/policy", "/policy x",
        "/policy roll",
    )  # fmt: skip
    code, _, err = faces.run("chat", "--system", "S")
    assert code == 0
    assert "1  " in err
    assert "2  Tides  about tides" in err
    assert "You: about tides\nModel: You said about tides.\n" in err
    assert contents(faces.request) == ["S", "about tides", "You said about tides.", "more"]
    for words in ("no chat 77", "needs a number", "needs WORDS", "(nothing found)", "(system: none)", "no policy x"):
        assert words in err
    assert "* stop  Stop and ask" in err
    assert "* roll  Roll on" in err
    tides = chats.peek(chats.summaries()[0].id)
    assert (tides.title, tides.policy, tides.system) == ("Tides", "roll", "")
    assert len(chats.summaries()) == 2


def test_a_failed_turn_is_kept_aside_and_can_be_asked_again(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    def answer(request: Request) -> str:
        if len(faces.clients[0].requests) == 1:
            raise EngineDiedError("the engine died", "say it again")
        return "fine"

    faces.answer = answer
    type_in(monkeypatch, "one", "/retry", "two")
    code, out, err = faces.run("chat")
    assert (code, out) == (0, "fine\nfine\n")
    assert "the engine died\n  say it again" in err
    assert [contents(request) for request in faces.clients[0].requests] == [["one"], ["one"], ["one", "fine", "two"]]
    assert shown(only(chats)) == ["one", "fine", "two", "fine"]


def test_a_message_after_a_failed_one_does_not_follow_it(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    def answer(request: Request) -> str:
        if contents(request)[-1] == "bad":
            raise EngineDiedError("died")
        return "fine"

    faces.answer = answer
    type_in(monkeypatch, "one", "bad", "two")
    faces.run("chat")
    assert contents(faces.request) == ["one", "fine", "two"]
    assert sorted(message.text for message in only(chats).tree.messages()) == ["bad", "fine", "fine", "one", "two"]


def test_half_an_answer_of_an_engine_that_died_is_kept(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    from localrun_testing.fake_client import FakeClient

    real = FakeClient.events

    def events(self: FakeClient, request: Request, cancelled: threading.Event) -> Iterator[Event]:
        for number, event in enumerate(real(self, request, cancelled)):
            if number == 6:
                raise EngineDiedError("died")
            yield event

    monkeypatch.setattr(FakeClient, "events", events)
    type_in(monkeypatch, "one")
    faces.run("chat")
    last = only(chats).tree.path(only(chats).tree.head)[-1]
    assert (last.role, last.text, last.interrupted) == ("assistant", "You ", True)


def test_a_question_without_answer_is_found_when_the_chat_is_opened(
    faces: Faces, monkeypatch: Patch, chats: ChatStore
) -> None:
    chat = chats.create()
    chat.add_answer(chat.add_user("one").id, "fine")
    chat.add_user("killed while it was answered")
    type_in(monkeypatch, "/retry")
    _, _, err = faces.run("chat", "-c")
    assert "/retry asks it again" in err
    assert contents(faces.request) == ["one", "fine", "killed while it was answered"]
    chat.add_user("and again, by a program that still had it open")
    faces.run("run", "--no-stdin", "-c", "x")
    assert contents(faces.request) == ["one", "fine", "x"]


def too_long_above(n_messages: int, faces: Faces) -> None:
    def answer(request: Request) -> str:
        if len(request.messages) > n_messages and request.overflow == "stop":
            raise PromptTooLongError("the prompt has 110 tokens; that is too long", "shorten it", 110)
        return "fine"

    faces.answer = answer


@pytest.mark.parametrize("choice", ["d", "drop", " D "])
def test_a_full_context_asks_and_drops_turns(faces: Faces, monkeypatch: Patch, chats: ChatStore, choice: str) -> None:
    too_long_above(3, faces)
    type_in(monkeypatch, "1", "2", "3", choice, "4", "/show")
    code, _, err = faces.run("chat")
    assert code == 0
    assert "This chat no longer fits. 19 tokens so far and 91 of this message make 110; the context holds 128" in err
    assert "d  Drop the oldest: the model no longer sees the 2 oldest turns (19 of 110 tokens); 91 tokens to" in err
    assert "r  Roll on: " in err
    assert "the model no longer sees" in err
    assert contents(faces.request) == ["3", "fine", "4"]
    assert "--- the model no longer sees what is above ---\nYou: 3" in err
    chat = only(chats)
    assert chat.policy == "drop"
    assert shown(chat) == ["1", "fine", "2", "fine", "3", "fine", "4", "fine"], "the history keeps everything"


def test_a_full_context_may_roll_or_stop(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    too_long_above(1, faces)
    type_in(monkeypatch, "1", "2", "s", "3", "r", "4")
    _, out, err = faces.run("chat")
    assert "the prompt has 110 tokens" in err
    assert faces.request.overflow == "roll"
    assert contents(faces.request) == ["1", "fine", "3", "fine", "4"]
    assert out == "fine\n" * 3
    assert only(chats).policy == "roll"


def test_a_script_is_not_asked_about_a_full_context(faces: Faces, monkeypatch: Patch) -> None:
    too_long_above(1, faces)
    script(monkeypatch, "1\n2\n3\n")
    code, out, _ = faces.run("chat")
    assert (code, out) == (5, "fine\n")
    script(monkeypatch, "1\n/policy drop\n2\n3\n")
    assert faces.run("chat")[:2] == (0, "fine\nfine\nfine\n")


def test_turns_are_dropped_before_an_answer_would_be_cut(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    """By what the engine counted: 3 + 13 tokens a turn say it, and a context of 128."""
    faces.answer = lambda request: "x" * 45
    type_in(monkeypatch, "/policy drop", "a" * 60, "b" * 60, "c" * 60, "d" * 60)
    _, _, err = faces.run("chat")
    assert "the model no longer sees the" in err
    assert len(faces.request.messages) < 7


def test_a_person_hears_how_far_a_long_prompt_was_read(faces: Faces, monkeypatch: Patch) -> None:
    from localrun_testing.fake_client import FakeClient

    from localrun.base.events import Prefill

    real = FakeClient.events

    def events(self: FakeClient, request: Request, cancelled: threading.Event) -> Iterator[Event]:
        yield from (Prefill(done, 0, 9000) for done in (3000, 6000, 9000))
        yield from real(self, request, cancelled)

    monkeypatch.setattr(FakeClient, "events", events)
    monkeypatch.setattr("localrun.cli.console.FIRST_NOTE_SECONDS", 0.0)
    monkeypatch.setattr("localrun.cli.console.NEXT_NOTE_SECONDS", 0.0)
    assert "reading" not in faces.run("run", "--no-stdin", "x")[2], "nobody waits at a pipe"
    monkeypatch.setattr("localrun.cli.console.is_terminal", lambda stream: True)
    _, out, err = faces.run("run", "--no-stdin", "x")
    assert out == "You said x.\n"
    assert err.count("(reading the prompt: ") == 2
    assert "6,000 of 9,000 tokens" in err


def test_nothing_writable_is_said_and_the_chat_goes_on(faces: Faces, monkeypatch: Patch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "file"))
    type_in(monkeypatch, "one", "/list")
    code, out, err = faces.run("chat")
    assert (code, out) == (0, "You said one.\n")
    assert "chats are not kept" in err
    assert "one" in err.split("not kept")[1], "this chat is listed while it lasts"


def test_a_full_disk_is_said_once(faces: Faces, monkeypatch: Patch, home: Path) -> None:
    import os

    (home / "chats").mkdir(parents=True)
    real = os.open

    def no_space(path: str, flags: int, *rest: int) -> int:
        if str(path).endswith(".jsonl"):
            raise OSError(28, "No space left on device")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", no_space)
    type_in(monkeypatch, "one", "two")
    code, out, err = faces.run("chat")
    assert (code, out) == (0, "You said one.\nYou said two.\n")
    assert err.count("No space left on device: what you write now is not kept") == 1


LINES = st.one_of(
    st.sampled_from(
        ["hello", "//slash", "/new", "/undo", "/retry", "/edit x", "/branch", "/branch 1", "/branch 2", "/show",
         "/list", "/open 1", "/open 2", "/search hello", "/title T", "/system S", "/policy drop", "/policy roll",
         "fail", "half"]
    ),
    st.text(st.characters(blacklist_characters="\n"), min_size=1, max_size=12).map(lambda text: f"/{text}"),
)  # fmt: skip


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=12))
def test_any_input_keeps_the_chat_running_and_on_disk(faces: Faces, home: Path, lines: list[str]) -> None:
    def answer(request: Request) -> str:
        asked = contents(request)[-1]
        if asked == "fail":
            raise EngineDiedError("died")
        roles = [message["role"] for message in request.messages if message["role"] != "system"]
        assert roles == ["user", *["assistant", "user"] * (len(roles) // 2)]
        return "" if asked == "half" else f"You said {asked}."

    faces.answer = answer
    with pytest.MonkeyPatch.context() as patch:
        type_in(patch, *(line for line in lines if line.strip() not in ("/quit", "/save") and "/save" not in line))
        code, _, err = faces.run("chat")
    assert code == 0, err
    assert "Traceback" not in err
    store = ChatStore(home / "chats")
    for summary in store.summaries():
        chat = store.open(summary.id)
        roles = [message.role for message in chat.tree.path(chat.tree.head)]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert chat.damaged == 0


def test_foreign_text_cannot_steer_the_terminal(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    evil = "\x1b]0;pwned\x07 red \x1b[31m\u202e"
    chat = chats.create(title=f"title {evil}")
    chat.add_answer(chat.add_user(f"message {evil}").id, f"answer {evil}")
    type_in(
        monkeypatch,
        "/list",
        "/open 1",
        "/show",
        "/search red",
        "/branch",
        "/undo",
        "/title",
        f"/system {evil}",
        "/help",
    )
    _, _, err = faces.run("chat")
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert "red" in err


@pytest.mark.usefixtures("hears_interrupts")
def test_where_ctrl_c_is_ignored_no_answer_is_cancelled() -> None:
    for before, pressed in ((signal.SIG_IGN, False), (signal.default_int_handler, True)):
        signal.signal(signal.SIGINT, before)
        with CancelOnInterrupt() as ctrl_c:
            signal.raise_signal(signal.SIGINT)
        assert ctrl_c.pressed is pressed
        assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("hears_interrupts")
def test_ctrl_c_when_an_answer_has_just_ended_leaves_the_chat_open(
    faces: Faces, monkeypatch: Patch, chats: ChatStore
) -> None:
    def press(*_: object) -> str:
        signal.raise_signal(signal.SIGINT)
        return "(figures)"

    type_in(monkeypatch, "one", "two")
    monkeypatch.setattr("localrun.cli.line.chat.status_line", press)
    code, out, err = faces.run("chat")
    assert (code, out) == (0, "You said one.\nYou said two.\n")
    assert err.count("(Ctrl-D or /quit leaves)") == 2
    assert shown(only(chats)) == ["one", "You said one.", "two", "You said two."]
