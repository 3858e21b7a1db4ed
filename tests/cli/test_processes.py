"""The torch-free commands as real processes: streams of every kind, a terminal, and how fast they answer."""

import json
import os
import signal
import subprocess
from itertools import product
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.cli import COMMAND, Terminal, environment, localrun, localrun_in_shell
from localrun_testing.faces import Faces, script
from localrun_testing.schemas import check

from localrun.base.settings import write_setting
from localrun.chat.journal import ChatStore

pytestmark = pytest.mark.process

NO_TEXT = b"\xff\xfe"
FAILING = {
    "no prompt": (2, ("run",)),
    "no such model": (3, ("run", "-m", "nonsense", "hello")),
    "no such command": (2, ("nonsense",)),
    "no such setting": (2, ("config", "colour", "red")),
    "show: no such model": (3, ("show", "nonsense")),
    "tokenize: no such model": (3, ("tokenize", "-m", "nonsense", "x")),
    "perplexity: no such file": (3, ("perplexity", "/no/such")),
    "a bad model file": (6, ("show", __file__)),
}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("list",),
        ("list", "--json"),
        ("show",),
        ("show", "--json"),
        ("config",),
        ("config", "--json"),
        ("tokenize", "hello"),
        ("run", "-m", "nonsense", "x"),
        ("run", "--backend", "cpu", "--max-tokens", "4", "--temperature", "2", "hello"),
        ("bench", "-p", "64", "-n", "4", "-r", "1", "--backend", "cpu"),
        ("perplexity", str(REPOSITORY / "README.md"), "--chunks", "2", "--backend", "cpu"),
    ],
    ids=" ".join,
)
def test_torch_free_commands_answer_and_do_not_import_torch(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A second and nearly two hundred megabytes: the native library answers without it."""
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    line = f'export PYTHONPATH="{tmp_path}:$PYTHONPATH"; "$@"'
    ran = localrun_in_shell(line, *arguments)
    assert "torch was imported" not in ran.err
    assert ran.code == (3 if "nonsense" in arguments else 0), ran.err
    assert bool(ran.out.strip()) == (ran.code == 0)
    if "--json" in arguments:
        check(ran.json, arguments[0])


@pytest.mark.parametrize(("code", "arguments"), FAILING.values(), ids=FAILING)
def test_a_failing_command_ends_with_its_code(
    code: int, arguments: tuple[str, ...], faces: Faces, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, "")
    found, out, err = faces.run(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith("localrun: ")


def test_so_does_its_process() -> None:
    code, arguments = FAILING["no such model"]
    ran = localrun(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("localrun: ")
    assert "Traceback" not in ran.err


def test_a_failure_as_json() -> None:
    code, arguments = FAILING["a bad model file"]
    ran = localrun(*arguments, "--json")
    assert ran.code == code
    check(ran.json, "error")
    assert ran.json["error"]["code"] == code


def test_a_reader_that_is_gone_is_141_without_a_word() -> None:
    for arguments in (("list", "--json"), ("--help",)):
        ran = localrun_in_shell('"$@" | true; exit ${PIPESTATUS[0]}', *arguments)
        assert (ran.code, ran.err) in ((141, ""), (0, "")), "0 where it had written before the reader went"
        ours, theirs = os.pipe()
        os.close(ours)
        with open(theirs, "wb") as gone:
            done = subprocess.run([*COMMAND, *arguments], stdout=gone, stderr=subprocess.PIPE, env=environment())
        assert (done.returncode, done.stderr) == (141, b"")


def test_a_stdout_that_takes_nothing_is_said() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("macos has no /dev/full")
    for arguments in (("list", "--json"), ("--help",)):
        ran = localrun_in_shell('"$@" >/dev/full', *arguments)
        assert ran.code == 1
        assert "o space" in ran.err
        assert "Traceback" not in ran.err


def test_a_full_stderr_changes_no_exit_code() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("macos has no /dev/full")
    for code, arguments in ((0, ("run", "--stats", "--json", "--max-tokens", "2", "hi")), (2, ("nope",))):
        assert localrun_in_shell('"$@" 2>/dev/full', *arguments).code == code
    script = "import sys; from localrun.cli.console import tell; tell('x'); print('at its end', file=sys.stderr)"
    assert localrun_in_shell('"$1" -c "$4" 2>/dev/full', script).code == 0


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("run", "--help"), ("list",), ("config",)])
def test_a_closed_stdout_has_no_reader(arguments: tuple[str, ...]) -> None:
    ran = localrun_in_shell('"$@" >&-', *arguments)
    assert ran.code == 141
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (("doctor", "--json"), ""),
        (("run", "--backend", "reference", "--json", "--max-tokens", "2", "hi"), ""),
        (("list", "--json"), "relative"),
        (("run", "--json", "--max-tokens", "2", "hi"), "relative"),
    ],
    ids=str,
)
def test_a_working_folder_that_was_deleted(arguments: tuple[str, ...], folder: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    setting = f"export LOCALRUN_HOME={folder};" if folder else ""
    ran = localrun_in_shell(f'{setting} cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && "$@"', *arguments)
    assert ran.code == 0, ran
    check(ran.json, arguments[0])
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_where_a_working_folder_was_deleted(home: Path, tmp_path: Path) -> None:
    ChatStore(home / "chats").create().add_user("hello")
    (tmp_path / "gone").mkdir()
    line = f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && "$@"'
    ran = localrun_in_shell(line, "history", "export", "1", "a.md")
    assert ran.code != 0
    assert "Traceback" not in ran.err
    ran = localrun_in_shell("export LOCALRUN_HOME='~nobody-of-this-name/x'; \"$@\"", "list", "--json")
    assert ran.code == 2
    assert "LOCALRUN_HOME" in ran.json["error"]["message"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_surprise(closed: str) -> None:
    ran = localrun_in_shell(f'"$@" {closed}', "list", "--json")
    assert ran.code == (141 if ">&-" in closed.replace("2>&-", "") else 0)
    assert "Traceback" not in ran.err
    ran = localrun_in_shell(f'"$@" {closed}', "run")
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_tokenize_reads_stdin_in_every_form(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = localrun("tokenize", stdin="hello there").json
    assert whole
    assert all(isinstance(token, int) for token in whole)

    def tokenize(*arguments: str) -> tuple[int, str, str]:
        script(monkeypatch, "")
        return faces.run("tokenize", *arguments)

    assert json.loads(tokenize("hello there")[1]) == whole
    assert tokenize("-m", "builtin", "hello there", "--json")[0] == 2, "it is JSON anyway"
    assert json.loads(tokenize()[1]) == []
    lines = localrun("tokenize", "--lines", stdin='"hello there"\n\n""\n"a\\nb"\n')
    assert lines.lines[:2] == [whole, []]
    assert len(lines.lines) == 3
    for bad in (b"\xff", b'"\xff"'):
        ran = localrun("tokenize", "--lines", stdin=bad)
        assert (ran.code, ran.out) == (2, "")
    ran = localrun("tokenize", "--lines", stdin='"fine"\n{"not": "a string"}\n')
    assert (ran.code, ran.out) == (2, "")
    assert "line 2" in ran.err


def test_names_from_disk_are_cleaned_on_a_terminal_and_raw_in_json(home: Path) -> None:
    path = home / "models/evil\x1b]0;pwned\x07\u202e-Q8_0.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    with Terminal("list") as terminal:
        ran = terminal.finish()
    assert ran.code == 0
    assert "\x1b]" not in ran.out
    assert "\u202e" not in ran.out
    assert "evil" in ran.out
    assert str(path) in [row["path"] for row in localrun("list", "--json").json]


def test_a_stdin_that_says_nothing_is_talked_about_and_can_be_left() -> None:
    with Terminal("run", "hello", ends="stderr", stdin=subprocess.PIPE) as terminal:
        terminal.expect("reading stdin")
        terminal.expect("--no-stdin")
        terminal.process.send_signal(signal.SIGINT)
        ran = terminal.finish()
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def press_at_import(module: str, folder: Path) -> str:
    """A shell line for a `localrun` that gets Ctrl-C in the moment it imports `module`, amid code that is made of text,
    as dataclasses are."""
    (folder / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            exec('os.kill(os.getpid(), signal.SIGINT)')\n"
        "sys.meta_path.insert(0, Press())\n"
    )
    return f'export PYTHONPATH="{folder}:$PYTHONPATH"; "$@"'


EARLY_AND_LATE = ("typing", "localrun.base.startup", "localrun.cli.failure", "localrun.cli.run", "typer.main")


@pytest.mark.parametrize("command", [("run", "hello", "--file"), ("perplexity",), ("tokenize", "-m")])
def test_a_pipe_that_says_nothing_is_talked_about(command: tuple[str, ...], tmp_path: Path) -> None:
    """As a file; with tokenize, stdin is the pipe."""
    os.mkfifo(tmp_path / "pipe")
    last = "builtin" if command[0] == "tokenize" else str(tmp_path / "pipe")
    with Terminal(*command, last, ends="stderr", stdin=subprocess.PIPE) as terminal:
        terminal.expect("reading")
        terminal.process.send_signal(signal.SIGINT)
        ran = terminal.finish()
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("module", "how"), [*product(EARLY_AND_LATE, ("--json", "--jsonl"))])
def test_ctrl_c_while_the_command_is_imported_is_json_too(module: str, how: str, tmp_path: Path) -> None:
    ran = localrun_in_shell(press_at_import(module, tmp_path), "run", "hello", how)
    assert ran.code == 130
    check(ran.json, "error")
    assert ran.json["error"]["kind"] == "cancelled"
    assert "Traceback" not in ran.err


def test_ctrl_c_at_the_start_of_the_installed_command(tmp_path: Path) -> None:
    script = "import re, sys; from localrun.__main__ import main; sys.argv[1:] = ['tokenize', 'x']; sys.exit(main())"
    line = press_at_import("localrun.base.startup", tmp_path).replace('"$@"', f'"$1" -c "{script}"')
    ran = localrun_in_shell(line)
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def test_ctrl_c_once_more_while_the_first_is_told() -> None:
    script = (
        "import localrun.cli.app as app\n"
        "def press(*_): raise KeyboardInterrupt\n"
        "app.report = press\n"
        "from localrun.__main__ import main\n"
        "main()\n"
    )
    ran = localrun_in_shell('"$1" -c "$4" nonsense', script)
    assert (ran.code, ran.err) == (130, "")


@pytest.mark.parametrize("module", ["localrun.base.startup", "localrun.cli.tokenize", "localrun.text.tokenizer"])
def test_where_a_shell_has_ctrl_c_ignored_it_stays_so(module: str, tmp_path: Path) -> None:
    line = press_at_import(module, tmp_path)
    ran = localrun_in_shell(f"trap '' INT; {line}", "tokenize", "hello")
    assert (ran.code, ran.err) == (0, "")


def test_an_end_of_input_is_no_to_a_question(home: Path) -> None:
    ChatStore(home / "chats").create().add_user("hello")
    with Terminal("history", "rm", "1") as terminal:
        terminal.expect("[y/N]")
        terminal.send("\x04")
        ran = terminal.finish()
    assert (ran.code, "nothing was removed" in ran.out) == (0, True)
    assert "Traceback" not in ran.out


def test_a_stdin_without_end_is_refused() -> None:
    ran = localrun_in_shell('yes | "$@"', "run", "hello", "--json")
    assert ran.code == 5
    assert ran.json["error"]["kind"] == "prompt_too_long"


def test_a_line_without_end_is_refused() -> None:
    ran = localrun_in_shell('(echo hello; cat /dev/zero) | "$@"', "chat", "--jsonl", "--max-tokens", "1")
    assert ran.code == 5
    first, last = ran.lines
    assert first["type"] == "done"
    assert last["error"]["kind"] == "prompt_too_long"
    assert "line 2 of stdin is longer than 16 MiB" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "--system"),
        ("run", "hello", "--stop"),
        ("tokenize",),
        ("config", "system"),
        ("config", "model"),
        ("history", "search"),
        ("search", "--offline"),
    ],
    ids=" ".join,
)
def test_bytes_that_are_no_text_are_a_wrong_call(arguments: tuple[str, ...], faces: Faces) -> None:
    code, _, err = faces.run(*arguments, os.fsdecode(NO_TEXT))
    assert code == 2
    assert "UTF-8" in err


def test_so_they_are_to_a_process() -> None:
    ran = localrun("tokenize", os.fsdecode(NO_TEXT))
    assert ran.code == 2
    assert "UTF-8" in ran.err
    assert "Traceback" not in ran.err


def test_localrun_without_a_command() -> None:
    with Terminal(ends="stdin stderr") as terminal:
        ran = terminal.finish()
    assert ran.code == 2
    assert "localrun run" in ran.err
    assert "localrun chat" in ran.err
    for ran in (localrun(stdin=""), localrun(stdin=None), localrun_in_shell('"$@" <&-')):
        assert (ran.code, ran.out) == (2, "")
        assert "localrun run" in ran.err
        assert "localrun chat" in ran.err


def test_one_word_that_is_a_model_runs_nothing_at_a_terminal(home: Path) -> None:
    with Terminal("run", "builtin") as terminal:
        ran = terminal.finish()
    assert ran.code == 2
    assert "localrun run -m builtin" in ran.out
    assert "localrun chat builtin" in ran.out


def test_a_default_model_that_is_gone_is_called_the_default() -> None:
    write_setting("model", "org/gone")
    ran = localrun("run", "hello", "--no-stdin")
    assert ran.code == 3
    assert "it is the default model, `localrun config model builtin`" in ran.err


def test_the_built_in_model_says_that_it_answers_by_default() -> None:
    with Terminal("show", "--json", ends="stdin stderr") as terminal:
        terminal.expect("builtin answers")
        ran = terminal.finish()
    assert json.loads(ran.out)["name"] == "builtin"
    with Terminal("show", "builtin", "--json", ends="stdin stderr") as terminal:
        assert "answers" not in terminal.finish().err


def test_nothing_writable_still_answers(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for arguments in (("list",), ("show",), ("tokenize", "x")):
        assert localrun(*arguments, LOCALRUN_HOME=str(tmp_path / "file")).code == 0
    ran = localrun("config", "ctx", "512", LOCALRUN_HOME=str(tmp_path / "file"))
    assert ran.code == 7
    assert "settings are not kept" in ran.err


def test_no_home_at_all() -> None:
    assert localrun("list", "--json", HOME=None, LOCALRUN_HOME=None, USER=None).code == 0


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_any_locale(locale: str) -> None:
    ran = localrun("run", "-m", "naïve-模型", "x", "--json", LC_ALL=locale, LANG=locale)
    assert ran.code == 3
    assert "naïve-模型" in ran.json["error"]["message"]
