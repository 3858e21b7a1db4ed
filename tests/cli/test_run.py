"""`run` and `chat` with a client that stands in for an engine: words, streams, requests and exit codes."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.cli import localrun
from localrun_testing.faces import Answer, Faces, script
from localrun_testing.fake_client import FakeClient
from localrun_testing.schemas import check
from PIL import Image

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.constraint import Constraint
from localrun.base.errors import DoesNotFitError, EngineError, PromptTooLongError
from localrun.base.request import LoadOptions, Request
from localrun.base.views import PromptView
from localrun.cli import session
from localrun.client.interface import EngineClient
from localrun.client.open_client import open_client
from localrun.fit.rates import LEAST_TOKENS


def fails(text: Exception) -> Answer:
    def answer(request: Request) -> str:
        raise text

    return answer


def test_the_answer_is_all_there_is_on_stdout(faces: Faces) -> None:
    code, out, err = faces.run("run", "hello")
    assert (code, out) == (0, "You said hello.\n")
    assert err == "a note\n"


def test_an_answer_that_ends_in_a_line_break_gets_no_second_one(faces: Faces) -> None:
    faces.answer = lambda request: "two\nlines\n"
    assert faces.run("run", "x")[1] == "two\nlines\n"
    faces.answer = lambda request: ""
    assert faces.run("run", "x")[1] == ""


def test_piped_output_is_raw(faces: Faces) -> None:
    faces.answer = lambda request: "\x1b[31mred\x07"
    assert faces.run("run", "x")[1] == "\x1b[31mred\x07\n"


def test_a_terminal_gets_clean_text(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.cli.console.is_terminal", lambda stream: True)
    faces.answer = lambda request: "\x1b[31mred\x07 \x1b]0;title\x1b\\\x9b2J\u202eend"
    assert faces.run("run", "x")[1] == "red <U+202E>end\n"
    assert "\x9b" not in faces.run("run", "x", "--json")[1]


def test_a_terminal_that_names_no_model_is_told_which_one_answers(
    faces: Faces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda stream: True)
    assert (
        "builtin answers, the small model inside localrun; `localrun tui` shows larger ones" in faces.run("run", "x")[2]
    )
    assert "larger ones" not in faces.run("run", "-m", "builtin", "x")[2]


def test_json_is_one_object_of_its_schema(faces: Faces) -> None:
    code, out, err = faces.run("run", "hello", "--json")
    assert code == 0
    assert out.count("\n") == 1
    value = json.loads(out)
    assert value.pop("itl_ms_p95") is None, "a number that is none is null"
    check({**value, "itl_ms_p95": 0}, "run")
    assert value["text"] == "You said hello."
    assert err == ""


def test_jsonl_is_the_events_and_their_texts_are_the_answer(faces: Faces) -> None:
    faces.answer = lambda request: "~~Yes."
    code, out, _ = faces.run("run", "hello", "--jsonl")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [event["type"] for event in events] == ["start", "prefill", *["token"] * 6, "done"]
    for event in events:
        if event["type"] == "done":
            event["itl_ms_p95"] = 0  # was null, see above
        check(event, f"jsonl: {event['type']}")
    assert "".join(e["text"] for e in events if e.get("channel") == "answer") == events[-1]["text"] == "Yes."
    assert "".join(e["text"] for e in events if e.get("channel") == "thinking") == events[-1]["thinking"]


def test_thinking_is_on_stderr_and_only_when_asked_for(faces: Faces) -> None:
    faces.answer = lambda request: "~~Yes."
    assert faces.run("run", "x")[1:] == ("Yes.\n", "a note\n")
    assert faces.run("run", "x", "--show-thinking")[1:] == ("Yes.\n", "a note\n~~\n\n")


def test_an_empty_answer_says_so_on_stderr(faces: Faces) -> None:
    faces.answer = lambda request: "~~"
    assert faces.run("run", "x") == (0, "", "a note\nthe answer is empty: it ended before its first word\n")
    assert "is empty" not in faces.run("run", "x", "--json")[2], "there it is the text"


def test_stats_are_on_stderr(faces: Faces) -> None:
    _, out, err = faces.run("run", "x", "--stats")
    assert out == "You said x.\n"
    for word in ("prompt", "answer", "memory", "first after 2.50 ms", "seed    7"):
        assert word in err


def test_every_flag_arrives(faces: Faces, tmp_path: Path) -> None:
    (tmp_path / "text.md").write_text("of the file")
    flags = (
        "--system brief --max-tokens 5 --temperature 0.5 --top-k 3 --top-p 0.9 --min-p 0.1 --repeat-penalty 1.1"
        " --presence-penalty 0.2 --frequency-penalty -0.3 --logit-bias 5:-2.5 --logit-bias 7:1e3 --seed 11"
        " --stop a --stop b --think off --ctx 64 --kv Q8 --window 99 --backend reference --threads 2"
        " --lora /a.gguf --lora /b:0.5 --no-prefix-cache --draft lookup --file"
    )
    code, *_ = faces.run("run", *flags.split(), str(tmp_path / "text.md"), "builtin", "hello")
    assert code == 0
    request, options = faces.request, faces.clients[0].options
    assert request.messages == (
        {"role": "system", "content": "brief"},
        {"role": "user", "content": "hello\n\nof the file"},
    )
    s = request.sampling
    assert (s.temperature, s.top_k, s.top_p, s.min_p, s.repeat_penalty) == (0.5, 3, 0.9, 0.1, 1.1)
    assert (s.presence_penalty, s.frequency_penalty, s.seed) == (0.2, -0.3, 11)
    assert dict(s.logit_bias) == {5: -2.5, 7: 1000.0}
    assert (request.max_tokens, request.stop, request.think) == (5, ("a", "b"), "off")
    assert (options.ctx, options.kv, options.backend, options.threads) == (64, "q8", "reference", 2)
    assert (options.window, options.draft) == (99, "lookup")
    assert options.adapters == (AdapterChoice(Path("/a.gguf")), AdapterChoice(Path("/b"), 0.5))
    assert (options.prefix_cache, options.name) == (False, "builtin")


def test_nothing_typed_leaves_every_choice_to_the_model(faces: Faces) -> None:
    faces.run("run", "hello")
    assert faces.request == Request(messages=({"role": "user", "content": "hello"},))
    options = faces.clients[0].options
    usual = LoadOptions(path=options.path, name="builtin", precision=options.precision, packed_weights=None)
    assert options == usual


def test_flag_before_environment_before_file(faces: Faces, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    (home / "config.toml").write_text('ctx = 100\nthreads = 1\ntemperature = 0.1\nsystem = "from file"\nseed = 3\n')
    monkeypatch.setenv("LOCALRUN_CTX", "200")
    monkeypatch.setenv("LOCALRUN_THREADS", "2")
    faces.run("run", "--ctx", "auto", "--temperature", "0.9", "x")
    options, request = faces.clients[0].options, faces.request
    assert (options.ctx, options.threads) == (None, 2)
    assert (request.sampling.temperature, request.sampling.seed) == (0.9, 3)
    assert request.messages[0] == {"role": "system", "content": "from file"}


def test_raw_is_the_prompt_alone(faces: Faces) -> None:
    faces.answer = lambda request: str(request.prompt)
    assert faces.run("run", "--raw", "once upon")[1] == "once upon\n"
    assert faces.request.messages == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "there is no prompt"),
        (["run", ""], "there is no prompt"),
        (["run", "a", "b", "c"], "quote the prompt"),
        (["run", "-m", "builtin", "a", "b"], "quote the prompt"),
        (["run", "x", "--json", "--jsonl"], "exclude each other"),
        (["run", "x", "--raw", "--system", "s"], "--raw"),
        (["run", "x", "--temperature", "-1"], "a number from 0"),
        (["run", "x", "--top-p", "nan"], "a number from 0 to 1"),
        (["run", "x", "--ctx", "many"], "a whole number"),
        (["run", "x", "--kv", "q2"], "one of auto"),
        (["run", "x", "--backend", "tpu"], "one of auto"),
        (["run", "x", "--think", "hard"], "one of on"),
        (["run", "x", "--logit-bias", "5"], "ID:BIAS"),
        (["run", "x", "--logit-bias", "5:nan"], "ID:BIAS"),
        (["run", "x", "--stop", ""], "--stop needs a text"),
        (["run", "x", "--xyzzy"], "there is no option --xyzzy"),
        (["run", "x", "--temp", "1"], "did you mean --temperature?"),
        (["run", "x", "--tempreature", "1"], "did you mean --temperature?"),
        (["run", "x", "--max", "1"], "did you mean --max-tokens?"),
        (["run", "-5 plus 3?"], "localrun run -- '-5 plus 3?'"),
        (["run", "--stop it"], "localrun run -- '--stop it'"),
        (["run", "-5", "--json"], "localrun run -- -5"),
        (["tokenize", "-5"], "localrun tokenize -- -5"),
        (["run", "x", "--kv"], "`localrun run --help`"),
        (["history", "lsit"], "Did you mean 'list'"),
        (["run", "--json"], "there is no prompt"),
        (["run", "x", "--seed", "-1"], "a whole number from 0"),
        (["chat", "builtin", "-m", "builtin"], "two models"),
        (["chat", "--json"], "did you mean --jsonl?"),
        (["-m", "smol"], "`localrun tui -m smol`"),
        (["--ctx", "512"], "`localrun tui --ctx 512`"),
        (["nonsense"], "No such command"),
        (["what is love?"], "did you mean `localrun run"),
        (["builtin"], "did you mean `localrun tui builtin`"),
        (["qwen3.5-4b"], "did you mean `localrun pull qwen3.5-4b`"),
        (["list", "extra"], "extra"),
        (["config", "colour"], "there is no setting"),
        (["config", "temp", "1"], "did you mean temperature?"),
        (["config", "--unset"], "--unset takes a KEY"),
        (["tokenize", "--lines", "x"], "--lines reads stdin"),
        (["show", "builtin", "-m", "builtin"], "two models"),
        (["perplexity"], "FILE"),
        (["perplexity", "x", "--kv-baseline", "auto"], "no KV codec"),
        (["perplexity", "a", "b", "c"], "where [MODEL] FILE is expected"),
    ],
)
def test_wrong_calls_exit_2_and_load_nothing(faces: Faces, arguments: list[str], says: str) -> None:
    code, out, err = faces.run(*arguments)
    assert (code, out) == (2, "") if "--json" not in arguments and "--jsonl" not in arguments else (2, out)
    assert says in err
    assert err.startswith("localrun: ")
    assert "Traceback" not in err
    assert faces.clients == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "-m", "nonsense", "x"], "no model nonsense"),
        (["run", "./no.gguf", "x"], "no file or folder"),
        (["run", "--precision", "Q2_K", "-m", "builtin", "x"], "not on disk as Q2_K"),
        (["run", "--file", "/no/such", "x"], "no file /no/such"),
        (["show", "nonsense"], "no model"),
        (["tokenize", "-m", "nonsense", "x"], "no model"),
        (["perplexity", "nonsense", "x"], "no model"),
        (["perplexity", "/no/such"], "no file"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_missing_model_or_file_exits_3(faces: Faces, arguments: list[str], says: str, as_json: bool) -> None:
    if as_json and arguments[0] == "tokenize":
        return
    code, out, err = faces.run(*arguments, *(["--json"] if as_json else []))
    assert code == 3
    assert says in err
    if as_json:
        error = json.loads(out)
        check(error, "error")
        assert error["error"]["code"] == 3
        assert says in error["error"]["message"]
    else:
        assert out == ""


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (DoesNotFitError("too big", "smaller"), 4, "does_not_fit"),
        (MemoryError(), 4, "does_not_fit"),
        (PromptTooLongError("long", "shorter"), 5, "prompt_too_long"),
        (EngineError("died"), 8, "engine"),
        (ValueError("surprise"), 1, "internal"),
        (KeyboardInterrupt(), 130, "cancelled"),
    ],
)
@pytest.mark.parametrize("how", ["", "--json", "--jsonl"])
def test_failures_have_their_code(faces: Faces, error: Exception, code: int, kind: str, how: str) -> None:
    faces.answer = fails(error)
    got, out, err = faces.run(*(["run", "x", how] if how else ["run", "x"]))
    assert got == code
    assert "localrun: " in err
    assert ("Traceback" in err) == (kind == "internal")
    if how:
        last = json.loads(out.splitlines()[-1])
        check(last, "error")
        assert (last["error"]["code"], last["error"]["kind"]) == (code, kind)
        assert len(out.splitlines()) == (1 if how == "--json" else 2)
    else:
        assert out == ""


def test_an_error_on_the_command_line_is_json_too(faces: Faces) -> None:
    code, out, _ = faces.run("run", "x", "--json", "--temperature", "hot")
    assert code == 2
    assert json.loads(out)["error"]["kind"] == "usage"
    assert faces.run("run", "--temperature", "hot", "--", "--json")[1] == "", "behind -- it is the prompt"


def test_a_hostile_error_message_is_cleaned_on_stderr(faces: Faces) -> None:
    faces.answer = fails(EngineError("bad \x1b]0;title\x07name"))
    assert "\x1b" not in faces.run("run", "x")[2]


def contents(request: Request) -> list[str]:
    return [str(message["content"]) for message in request.messages]


def test_chat_answers_line_by_line_and_remembers(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, "one\n\n  two\r\n//three\n")
    code, out, err = faces.run("chat", "--system", "S")
    assert (code, out, err) == (0, "You said one.\nYou said two.\nYou said /three.\n", "")
    assert contents(faces.request) == ["S", "one", "You said one.", "two", "You said two.", "/three"]


def test_chat_jsonl_is_one_done_a_turn(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, "one\ntwo")
    _, out, _ = faces.run("chat", "--jsonl")
    turns: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert [(turn["type"], turn["text"]) for turn in turns] == [("done", "You said one."), ("done", "You said two.")]


def test_chat_commands(faces: Faces, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    markdown, as_json = tmp_path / "chat.md", tmp_path / "chat.json"
    script(
        monkeypatch,
        f"one\ntwo\n/undo\n/retry\n/edit uno\n/save {markdown}\n/save {as_json}\n"
        "/sees\n/stats\n/help\n/new\nthree\n/quit\nnever\n",
    )
    code, out, err = faces.run("chat")
    assert code == 0
    assert out.splitlines() == [f"You said {text}." for text in ("one", "two", "one", "uno", "three")]
    requests = [contents(request) for request in faces.clients[0].requests]
    assert requests == [["one"], ["one", "You said one.", "two"], ["one"], ["uno"], ["three"]]
    assert markdown.read_text().endswith("## You\n\nuno\n\n## Model\n\nYou said uno.\n")
    assert json.loads(as_json.read_text())["messages"][1] == {"role": "assistant", "content": "You said uno."}
    assert "unoYou said uno.\n(16 tokens, 1 of them" in err
    for text in (
        "removed: two",
        "saved to",
        "first after",
        "/retry",
        "a new chat",
    ):
        assert text in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/nonsense", "no command /nonsense"),
        ("/undo", "no message yet"),
        ("/retry", "no message yet"),
        ("/edit", "needs the new text"),
        ("/edit x", "no message yet"),
        ("/save", "needs FILE"),
        ("/save /no/such/folder/x", "cannot be written"),
        ("/stats", "no answer yet"),
    ],
)
def test_a_wrong_chat_command_ends_a_script(
    faces: Faces, monkeypatch: pytest.MonkeyPatch, line: str, says: str
) -> None:
    script(monkeypatch, f"{line}\nnever\n")
    code, out, err = faces.run("chat")
    assert (code, out) == (2, "")
    assert says in err


def test_chat_never_overwrites_a_file(faces: Faces, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    script(monkeypatch, f"/save {tmp_path / 'mine'}\n")
    assert faces.run("chat")[0] == 2
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_failing_turn_is_not_remembered_and_keeps_what_was_answered(
    faces: Faces, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> str:
        if len(request.messages) > 1:
            raise PromptTooLongError("too long", "shorter")
        return "fine"

    faces.answer = answer
    script(monkeypatch, "one\ntwo\n")
    code, out, _ = faces.run("chat", "--jsonl")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 5
    assert lines[0]["text"] == "fine"
    assert lines[1]["error"]["code"] == 5


def test_a_script_that_is_not_text_is_a_usage_error(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, b"one\n\xff\xfe\n")
    code, out, err = faces.run("chat")
    assert (code, out) == (2, "You said one.\n")
    assert "line 2 of stdin is not UTF-8" in err


def test_a_cut_answer_goes_on_in_plain_chat(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    faces.answer = lambda request: " more" if request.continues else "some"
    script(monkeypatch, "one\n/continue\n/quit\n")
    code, out, err = faces.run("chat")
    assert (code, out.splitlines()) == (2, ["some"])
    assert "the last answer was not cut" in err


def test_prompts_of_the_library_in_plain_chat(faces: Faces, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "prompts").mkdir(parents=True)
    (home / "prompts" / "hi.md").write_text("Say {{what|hello}}")
    script(monkeypatch, "/prompt\n/prompt tutor\n/prompt hi\n/keep again\n/quit\n")
    code, out, err = faces.run("chat")
    assert (code, out.splitlines()) == (0, ["You said Say hello."])
    assert contents(faces.request)[0].startswith("You are a patient tutor.")
    assert "translate" in err
    assert (home / "prompts" / "again.md").read_text().endswith("Say hello\n")


def test_another_answer_at_another_temperature(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, "one\n/retry 0.3\n/retry\n/quit\n")
    assert faces.run("chat")[0] == 0
    usual, once, again = [request.sampling.temperature for request in faces.clients[0].requests]
    assert (once, again) == (0.3, usual)


def test_notes_of_an_answer_are_told_after_those_of_the_model(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeClient, "notes", ("a note", "of the answer"))
    assert faces.run("run", "x")[1:] == ("You said x.\n", "a note\nof the answer\n")
    assert json.loads(faces.run("run", "x", "--json")[1])["notes"] == ["a note", "of the answer"]


SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}}'


@pytest.mark.parametrize("where", ["typed", "file"])
def test_a_schema_is_what_the_answer_has_to_hold_to(faces: Faces, tmp_path: Path, where: str) -> None:
    file = tmp_path / "schema.json"
    file.write_text(SCHEMA)
    assert faces.run("run", "x", "--schema", SCHEMA if where == "typed" else str(file), "--lenient")[0] == 0
    assert faces.request.constraint == Constraint("json_schema", SCHEMA, is_lenient=True)


def test_an_answer_that_is_cut_before_it_holds_to_its_schema_says_so(tmp_path: Path) -> None:
    asked = ("run", "builtin", "--no-stdin", "--no-attach", "--temperature", "0", "--schema", SCHEMA)
    cut = localrun(*asked, "--max-tokens", "3", "A city?", LOCALRUN_HOME=str(tmp_path))
    assert (cut.code, "may not hold to the schema yet" in cut.err) == (0, True), cut.err
    told = localrun(*asked, "--max-tokens", "3", "--json", "A city?", LOCALRUN_HOME=str(tmp_path))
    assert "may not hold" not in told.err, "there it is the stop_reason"


def test_a_regex_and_a_grammar_are_too(faces: Faces, tmp_path: Path) -> None:
    (tmp_path / "g.lark").write_text('start: "yes" | "no"')
    assert faces.run("run", "x", "--regex", "[ab]+")[0] == 0
    assert faces.request.constraint == Constraint("regex", "[ab]+")
    assert faces.run("run", "x", "--grammar", str(tmp_path / "g.lark"))[0] == 0
    assert faces.request.constraint == Constraint("lark", 'start: "yes" | "no"')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--schema", "{"], "not JSON"),
        (["--schema", "no-such-file.json"], "no-such-file.json"),
        (["--schema", "{}", "--regex", "a"], "exclude each other"),
        (["--lenient"], "--schema"),
        (["--regex", " "], "empty"),
    ],
)
def test_constraints_that_are_none_are_refused_before_a_model_is_loaded(
    faces: Faces, arguments: list[str], said: str
) -> None:
    code, out, err = faces.run("run", "x", *arguments)
    assert (code, out) == (3 if "no-such" in said else 2, "")
    assert said in err
    assert not faces.clients


@pytest.mark.parametrize(("arguments", "program"), [((), "localrun run"), (("--no-attach",), "")])
def test_an_engine_of_another_localrun_may_answer_unless_told_otherwise(
    arguments: tuple[str, ...], program: str, faces: Faces, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def opened(*arguments: Any, attach_as: str, **more: Any) -> EngineClient:
        asked.append(attach_as)
        return open_client(*arguments, **more)

    monkeypatch.setattr(session, "open_client", opened)
    assert faces.run("run", "hello", *arguments)[0] == 0
    assert asked == [program]


@pytest.mark.usefixtures("hears_interrupts")
def test_a_file_that_does_not_fit_is_read_in_parts(
    faces: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = replace(FakeClient(LoadOptions(Path()), str).info, ctx=2048)
    monkeypatch.setattr(FakeClient, "info", property(lambda client: info))
    monkeypatch.setattr(
        FakeClient, "preview", lambda client, request: PromptView(len(request.messages[0]["content"]) // 3, 0)
    )
    lines = [f"{number} is fine" for number in range(2000)]
    lines[1500] = "the disk is full"
    (tmp_path / "server.log").write_text("\n".join(lines))

    def answer(request: Request) -> str:
        text = str(request.messages[-1]["content"])
        if "Below is a part of server.log" not in text:
            return text
        return "the disk is full" if "disk" in text.partition("---")[2].rpartition("---")[0] else "NOTHING"

    faces.answer = answer
    code, out, err = faces.run("run", "--in-parts", "What broke?", "--file", str(tmp_path / "server.log"), "--no-stdin")
    assert code == 0
    trial, first_part = (str(one.messages[-1]["content"]) for one in faces.clients[-1].requests[:2])
    read = trial.partition("\n---\n\nWhat in this part")[0]
    assert "0 is fine" in read
    assert first_part.startswith(read), "what a trial has read of the first part stays in the cache"
    assert len(first_part) > 3 * len(trial)
    assert "parts, ≈" in err
    assert "(--condensed instead: ≈" in err
    assert "(server.log: all of it read in " in err
    assert out.count("the disk is full") == 2, "in a note, and as the only line of its kind"
    assert "[1,501] the disk is full" in out
    first, last = re.search(r"lines ([\d,]+)–([\d,]+)", out).groups()  # type: ignore[union-attr]
    assert int(first.replace(",", "")) <= 1501 <= int(last.replace(",", ""))
    assert out.rstrip().endswith("What broke?")
    asked: list[Request] = []

    def interrupted(request: Request) -> str:
        if request.max_tokens == LEAST_TOKENS:  # how fast does it read?
            return "NOTHING"
        asked.append(request)
        signal.raise_signal(signal.SIGINT)
        return "half…"

    faces.answer = interrupted
    code, out, err = faces.run("run", "--in-parts", "What else?", "--file", str(tmp_path / "server.log"), "--no-stdin")
    assert (code, out, len(asked)) == (2, "", 1), "no answer from nothing"
    assert "nothing of server.log was read" in err
    faces.answer = answer
    small = tmp_path / "small.txt"
    small.write_text("short")
    assert "parts" not in faces.run("run", "--in-parts", "What?", "--file", str(small), "--no-stdin")[2]
    assert faces.run("run", "--in-parts", "--file", str(small), "--no-stdin")[0] == 2


def test_a_log_and_stdin_are_read_condensed(faces: Faces, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(f"{number} is fine\n" for number in range(1000, 9000)) + "the disk is full\n")
    faces.answer = lambda request: str(request.messages[-1]["content"])
    code, out, err = faces.run("run", "--condensed", "What broke?", "--file", str(log), "--no-stdin")
    assert code == 0
    assert "(server.log: 8,001 lines, 8,000 alike in 1 kind, 1 shown as they are)" in err
    assert out.rstrip().endswith("What broke?")
    assert "[×8,000, 1–8,000] # is fine\n  1: 1000 is fine\n  8,000: 8999 is fine\n[8,001] the disk is full" in out
    log.write_bytes(b"\0\0")
    code, out, err = faces.run("run", "--condensed", "What broke?", "--file", str(log), "--no-stdin")
    assert (code, out) == (2, "")
    assert "server.log cannot be condensed: it is not text" in err
    assert faces.run("run", "--condensed", "What broke?", "--file", str(tmp_path / "none"), "--no-stdin")[0] == 3


def test_a_prompt_that_is_too_long_names_the_option_that_reads_it(faces: Faces, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("long")
    faces.answer = fails(PromptTooLongError("too long", "shorten it"))
    assert "--in-parts" in faces.run("run", "x", "--file", str(tmp_path / "long.txt"), "--no-stdin")[2]
    assert "--in-parts" not in faces.run("run", "x", "--no-stdin")[2]


def test_images_go_along_before_the_prompt(faces: Faces, tmp_path: Path) -> None:
    pictures = [tmp_path / "a.png", tmp_path / "b.png"]
    for number, path in enumerate(pictures):
        Image.new("RGB", (10 + number, 20)).save(path)
    assert faces.run("run", "which?", *(word for path in pictures for word in ("--image", str(path))))[0] == 0
    request = faces.request
    assert [part["type"] for part in request.messages[-1]["content"]] == ["image", "image", "text"]
    assert [(image.width, image.height, image.path) for image in request.images] == [
        (10, 20, pictures[0]),
        (11, 20, pictures[1]),
    ]
    for option in ("--raw", "--in-parts"):
        code, _, err = faces.run("run", option, "x", "--image", str(pictures[0]))
        assert code == 2
        assert f"--image has no place beside {option}" in err
    assert faces.run("run", "--continue", "and this?", "--image", str(pictures[0]))[0] == 0
    kept = faces.request.images[0].path
    assert kept is not None
    assert kept.parent.name == "images"
    pictures[0].unlink()
    written = kept.stat().st_ino
    assert faces.run("run", "--continue", "sure?", "--image", str(pictures[1]))[0] == 0
    assert [part["type"] for part in faces.request.messages[0]["content"]] == ["image", "text"]
    assert faces.request.images[0].path == kept
    assert kept.stat().st_ino == written
    code, _, err = faces.run("run", "x", "--image", str(tmp_path / "none.png"))
    assert code == 2
    assert "none.png cannot be read" in err
