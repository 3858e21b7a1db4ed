"""`run`, `chat`, `perplexity` and `doctor` as real processes with the built-in model, piped and at a terminal.

Each loads the engine, which takes seconds: few processes, each asked several things.
"""

import json
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from localrun_testing.cli import COMMAND, Terminal, environment, hear_interrupts, localrun, localrun_in_shell
from localrun_testing.schemas import check

from localrun.base.resources import resource
from localrun.base.settings import write_setting
from localrun.cli.app import run_command_line
from localrun.formats.gguf import open_gguf

pytestmark = pytest.mark.process

STORY = ("run", "--no-stdin", "--raw", "Once upon a time")


@pytest.fixture(scope="module")
def endless() -> tuple[str, ...]:
    """A call whose answer goes on until the context is full."""
    eos = open_gguf(resource("builtin/localrun-tiny.gguf")).metadata.get_int("tokenizer.ggml.eos_token_id")
    return (*STORY, "--logit-bias", f"{eos}:-1000000")


def test_text_json_and_jsonl_are_one_answer() -> None:
    flags = ("--seed", "7", "--max-tokens", "12")
    text = localrun("run", "hello", *flags, stdin="and who are you?")
    one = localrun("run", "hello", *flags, "--json", stdin="and who are you?")
    many = localrun("run", "hello", *flags, "--jsonl", stdin="and who are you?")
    assert (text.code, one.code, many.code) == (0, 0, 0), text.err + one.err + many.err
    check(one.json, "run")
    done = many.lines[-1]
    for event in many.lines:
        check(event, f"jsonl: {event['type']}")
    assert text.out.removesuffix("\n") == one.json["text"].removesuffix("\n") == done["text"].removesuffix("\n")
    assert "".join(e["text"] for e in many.lines if e.get("channel") == "answer") == done["text"]
    assert one.json["token_ids"] == done["token_ids"] == [e["id"] for e in many.lines if e.get("id") is not None]
    assert one.json["completion_tokens"] == len(one.json["token_ids"]) <= 12
    assert one.json["seed"] == 7
    assert Path(one.json["path"]) == resource("builtin/localrun-tiny.gguf")


def test_ctrl_c_keeps_the_partial_answer(endless: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [*COMMAND, *endless, "--jsonl"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if len(lines) == 5:
            process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    assert lines[-1]["type"] == "done"
    assert lines[-1]["stop_reason"] == "cancelled"
    assert lines[-1]["text"] == "".join(line["text"] for line in lines if line["type"] == "token")
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_ctrl_c_before_the_first_token_is_an_answer_that_was_cancelled(endless: tuple[str, ...]) -> None:
    bias = endless[endless.index("--logit-bias") :]
    arguments = ("run", "--no-stdin", "--jsonl", *bias, "Tell me a long story. " * 100)
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"type": "start"}
    process.send_signal(signal.SIGINT)
    last = process.stdout.read().splitlines()[-1]
    assert process.wait(120) == 130
    check(json.loads(last), "jsonl: done")
    assert json.loads(last)["stop_reason"] == "cancelled"


def test_ctrl_c_while_loading_is_130() -> None:
    with Terminal("run", "hello", "--json", ends="stderr") as terminal:
        terminal.expect("builtin answers")
        terminal.process.send_signal(signal.SIGINT)
        ran = terminal.finish()
    assert ran.code == 130
    assert "Traceback" not in ran.err
    said = json.loads(ran.out)
    assert said.get("stop_reason") == "cancelled" or said["error"]["kind"] == "cancelled"


def test_a_reader_that_leaves_stops_the_answer(endless: tuple[str, ...]) -> None:
    ran = localrun_in_shell('"$@" | head -c 5; exit ${PIPESTATUS[0]}', *endless)
    assert ran.code == 141
    assert len(ran.out) == 5
    assert "Traceback" not in ran.err
    assert "Exception" not in ran.err


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (5, ("--ctx", "64", "word " * 500)),
        *([(2, ("--backend", "cuda", "x"))] if not torch.cuda.is_available() else []),
    ],
)
def test_figures_that_only_the_engine_knows(code: int, arguments: tuple[str, ...]) -> None:
    ran = localrun("run", "--json", *arguments)
    assert ran.code == code
    check(ran.json, "error")
    assert ran.json["error"]["hint"]


def test_localrun_alone_answers_a_pipe() -> None:
    write_setting("max_tokens", "8")
    ran = localrun(stdin="Hello!")
    assert ran.code == 0
    assert ran.out.strip()


def test_a_chat_script_reuses_what_it_computed() -> None:
    ran = localrun("chat", "--jsonl", "--max-tokens", "8", "--seed", "1", stdin="Hello!\nWhat can you do?\n")
    assert ran.code == 0, ran.err
    first, second = ran.lines
    check(first, "jsonl: done")
    assert (first["cached_tokens"], first["stop_reason"] in ("stop", "length")) == (0, True)
    assert second["cached_tokens"] > 0
    assert second["prompt_tokens"] > first["prompt_tokens"]


def test_a_chat_at_a_terminal() -> None:
    write_setting("max_tokens", "16")
    with Terminal("chat") as terminal:
        terminal.expect("/help")
        terminal.expect("> ")
        terminal.send("Hello!\n")
        answer = terminal.expect("> ")
        assert len(answer.strip()) > 10
        terminal.send("/nonsense\n")
        terminal.expect("no command /nonsense")
        terminal.expect("> ")
        terminal.interrupt_at_prompt("Ctrl-D")
        terminal.expect("Ctrl-D")
        terminal.send("first \\\nsecond\n")
        terminal.expect("> ")
        terminal.send("/save /no/such/folder/x\n")
        terminal.expect("cannot be written")
        terminal.expect("> ")
        terminal.send("\x04")
        ran = terminal.finish()
    assert ran.code == 0
    assert "Traceback" not in ran.out


def test_ctrl_c_in_a_chat_stops_the_answer_and_not_the_chat(endless: tuple[str, ...]) -> None:
    bias = endless[endless.index("--logit-bias") :]
    for_minutes = ("--no-stop-on-loop", "--max-tokens", "1000000", *bias)
    with Terminal("chat", "builtin", *for_minutes, TERM="dumb") as terminal:
        terminal.expect("> ")
        terminal.send("/policy roll\n")  # or the answer ends with the context, sooner than somebody presses a key
        terminal.expect("* roll")
        terminal.expect("> ")  # Ctrl-C throws away what was typed and not yet read
        terminal.send("Tell me a story about a cat.\n")
        terminal.expect("cat.")
        terminal.expect(" ")  # the answer has begun
        terminal.interrupt()
        terminal.expect("(stopped)")
        terminal.expect("> ")
        terminal.send("/quit\n")
        assert terminal.finish().code == 0


def test_perplexity(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Once upon a time there was a small cat who liked to read. " * 40)
    ran = localrun("perplexity", text, "--ctx", "64", "--chunks", "3", "--json", stdin=None)
    assert ran.code == 0, ran.err
    check(ran.json, "perplexity")
    assert (ran.json["chunks"], ran.json["ctx"], ran.json["tokens"]) == (3, 64, 3 * 31)
    assert "kld_mean" not in ran.json
    ran = localrun("perplexity", text, "--ctx", "64", "--chunks", "2", "--kv-baseline", "F32", "--json", stdin=None)
    check(ran.json, "perplexity")
    assert ran.json["kv_baseline"] == "f32"
    assert 0 < ran.json["kld_mean"] < 0.1
    assert 0.9 < ran.json["same_top1"] <= 1
    ran = localrun("perplexity", "-", "--json", stdin="too short")
    assert ran.code == 2
    check(ran.json, "error")


@pytest.mark.parametrize("wrong", ["colour = 1", 'seed = "red"'])
def test_doctor_reports_bad_settings_and_checks_the_rest(
    home: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has torch already."""
    home.mkdir()
    (home / "config.toml").write_text(f"ctx = 512\n{wrong}\n")
    assert run_command_line(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    check(found, "doctor")
    assert sum(f"{home / 'config.toml'}, line 2" in problem["what"] for problem in found["problems"]) == 1
    assert found["model"]["name"] == "builtin"
    assert found["backends"]["reference"]["available"]


def test_doctor_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LOCALRUN_HOME", "/proc/nowhere")
    assert run_command_line(["doctor"]) == 0
    assert "settings are not kept" in capsys.readouterr().out
