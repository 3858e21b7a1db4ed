"""The three pages a script author reads, held against what the commands do."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from localrun_testing import REPOSITORY
from localrun_testing.cli import localrun
from localrun_testing.faces import Faces
from localrun_testing.schemas import SCHEMAS, check

from localrun.base.errors import LocalrunError
from localrun.chat.journal import ChatStore
from localrun.cli.app import command_line, run_command_line
from localrun.cli.failure import CANCELLED, READER_GONE

DOCS = REPOSITORY / "docs"
NO_SCHEMA_OF_ITS_OWN = {  # what the page says they print
    "chat": "jsonl: done",
    "history export": "history show",
    "ls": "list",
}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its full name, hidden ones and those of groups too."""

    def walk(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(f"{prefix}{name} ", command)
            else:
                yield f"{prefix}{name}", command

    yield from walk("", typer.main.get_command(command_line()))


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


def test_every_command_with_json_has_a_section_of_the_page() -> None:
    lacking = [
        name
        for name, command in commands()
        if options(command) & {"--json", "--jsonl"} and NO_SCHEMA_OF_ITS_OWN.get(name, name) not in SCHEMAS
    ]
    assert not lacking


def test_the_help_names_values_in_our_words(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                assert parameter.metavar, (name, parameter.name)
                assert parameter.metavar in ("bash|zsh|fish", parameter.metavar.upper())
        assert run_command_line([*name.split(), "--help"]) == 0
        told = capsys.readouterr().out
        assert not re.findall(r"<(?!=)|\[\[|\{|list\[", told), (name, told)


def test_every_option_that_a_page_names_exists() -> None:
    """An option in the pages belongs to the command in front of it, or at least to one of them."""
    by_name = {name: options(command) for name, command in commands()}
    anywhere = set().union(*by_name.values()) | {"--version", "--help"}
    for page in (*DOCS.glob("*.md"), REPOSITORY / "README.md"):
        text = page.read_text("utf-8")
        unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", _ours(text))) - anywhere
        assert not unknown, (page.name, unknown)
        for line in re.findall(r"localrun ([a-z]+(?: [a-z]+)?)([^`\n#|]*)", text):
            name = next((one for one in (line[0], line[0].partition(" ")[0]) if one in by_name), None)
            if name is not None:
                named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line[1]))
                assert named <= by_name[name] | {"--help"}, (page.name, name, named - by_name[name])


def _ours(text: str) -> str:
    """A page without the commands and options of other programs."""
    text = re.sub(r"(vLLM|SGLang|llama\.cpp)\s+with\s+`[^`]*`|(?m:^.*\boptions of vLLM\b.*\n.*$)", "", text)
    return re.sub(r"(?m)^.*\b(pip|git|llama-|cmake|python -m|pytest|ollama|vllm serve|make|launch) .*$", "", text)


def test_the_page_of_exit_codes_has_every_kind_of_failure() -> None:
    rows = re.findall(r"^\| (\d+) \| (?:`(\w+)`)? ?\|", (DOCS / "exit-codes.md").read_text("utf-8"), re.MULTILINE)
    there = {(int(code), kind) for code, kind in rows}
    direct = [error for error in LocalrunError.__subclasses__() if error.__module__ == "localrun.base.errors"]
    assert there >= {(error.exit_code, error.kind) for error in direct} | {(1, LocalrunError.kind)}
    assert there >= {(0, ""), (CANCELLED, "cancelled"), (READER_GONE, "")}


def test_list_shows_models_of_every_source_as_its_schema_says(home: Path) -> None:
    ollama = home / "user/.ollama/models"
    (ollama / "blobs").mkdir(parents=True)
    (ollama / f"blobs/sha256-{'b' * 64}").write_bytes(b"GGUF")
    manifest = ollama / "manifests/registry.ollama.ai/library/llama3.2/latest"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{'b' * 64}"}
    manifest.write_text(json.dumps({"layers": [layer]}))
    for path in (
        home / "user/.lmstudio/models/org/repo/studio-Q8_0.gguf",
        home / "models/mine-Q4_0.gguf",
        home / "huggingface/hub/models--org--tiny/snapshots/0/tiny-Q8_0.gguf",
    ):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"GGUF")
    rows = localrun("list", "--json").json
    check(rows, "list")
    assert {row["source"] for row in rows} == {"builtin", "models", "hub", "lmstudio", "ollama"}


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        (["config", "--json"], "config"),
        (["config", "ctx", "--json"], "config"),
        (["history", "list", "--json"], "history list"),
        (["history", "show", "1", "--json"], "history show"),
        (["history", "export", "1", "--json"], "history show"),
        (["history", "search", "hello", "--json"], "history search"),
        (["history", "rm", "1", "--yes", "--json"], "history rm"),
        (["show", "--json"], "show"),
        (["show", "qwen3-4b", "--offline", "--json"], "show"),
        (["fit", "--json"], "fit"),
        (["fit", "qwen3-4b", "--offline", "--json"], "fit"),
        (["search", "qwen3", "--offline", "--json"], "search"),
        (["doctor", "--json"], "doctor"),
        (["pull", "qwen3-4b", "--offline", "--json"], "error"),
        (["rm", "nonsense", "--json"], "error"),
        (["run", "--json", "--nonsense"], "error"),
        (["run", "--json", "--jsonl", "x"], "error"),
        (["chat", "--jsonl", "-m", "nonsense"], "error"),
        (["bench", "-m", "nonsense", "--json"], "error"),
        (["nonsense", "--json"], "error"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_json_is_one_value_of_its_schema(faces: Faces, home: Path, arguments: list[str], schema: str) -> None:
    ChatStore(home / "chats").create().add_user("hello")
    code, out, _ = faces.run(*arguments)
    assert out.endswith("\n")
    assert out.count("\n") == 1 or "export" in arguments, "which is a document"
    check(json.loads(out), schema)
    assert (code == 0) == (schema != "error")
    if schema == "error":
        assert json.loads(out)["error"]["code"] == code


def test_doctor_names_a_full_disk_once(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(1 << 40, (1 << 40) - 5, 5))
    code, out, _ = faces.run("doctor", "--json")
    problems = [problem for problem in json.loads(out)["problems"] if "of disk is free" in problem["what"]]
    assert (code, len(problems)) == (0, 1)
    assert "models" in problems[0]["what"]
