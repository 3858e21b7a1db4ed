"""`history` and `completion`: what they print, for people, scripts and shells."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from localrun_testing.cli import COMMAND, Terminal, environment, localrun, localrun_in_shell
from localrun_testing.faces import Faces
from localrun_testing.schemas import check

from localrun.chat.journal import ChatStore

EVIL = "evil \x1b]0;pwned\x07\u202e `touch x` $(touch x)"


@pytest.fixture
def chats(home: Path) -> ChatStore:
    store = ChatStore(home / "chats")
    for text in ("tides", "stars"):
        chat = store.create(model="m")
        chat.add_answer(chat.add_user(f"about {text}").id, f"{text} are fine", "hm", stats={"seed": 1})
    return store


def test_list_show_search_export(faces: Faces, chats: ChatStore, tmp_path: Path) -> None:
    code, out, _ = faces.run("history", "list")
    assert code == 0
    header, first, second = out.splitlines()
    assert header.split() == ["LAST", "MESSAGES", "TITLE", "ID"]
    assert first.startswith("1  ")
    assert "about stars" in first
    assert "about tides" in second
    assert faces.run("history") == (code, out, "")
    chat_id = second.split()[-1]
    for name in ("2", chat_id, chat_id[-6:], chat_id[:-1]):  # two of one second have 16 characters in common
        assert "## You\n\nabout tides\n\n## Model\n\n> hm\n\ntides are fine\n" in faces.run("history", "show", name)[1]
    assert "about stars" in faces.run("history", "show", "last")[1]
    assert faces.run("history", "search", "tides", "fine")[1].splitlines() == ["2  about tides  tides are fine"]
    assert faces.run("history", "search", "nothing")[2] == "nothing found\n"
    markdown, as_json = tmp_path / "a.md", tmp_path / "a.json"
    assert faces.run("history", "export", "2", str(markdown))[0] == 0
    assert faces.run("history", "export", "2", str(as_json))[0] == 0
    assert markdown.read_text() == faces.run("history", "export", "2")[1]
    assert json.loads(as_json.read_text()) == json.loads(faces.run("history", "export", "2", "--json")[1])
    code, _, err = faces.run("history", "export", "2", str(markdown))
    assert code == 2
    assert "exists already" in err


@pytest.mark.parametrize("command", ["list", "show", "search", "rm"])
def test_json_has_its_schema(faces: Faces, chats: ChatStore, command: str) -> None:
    arguments = {"list": (), "show": ("1",), "search": ("stars",), "rm": ("1", "--yes")}[command]
    code, out, _ = faces.run("history", command, *arguments, "--json")
    assert code == 0
    value = json.loads(out)
    check(value, f"history {command}")
    assert value


def test_an_empty_history(faces: Faces) -> None:
    code, out, err = faces.run("history", "list")
    assert (code, out) == (0, "")
    assert "there are no stored chats yet" in err
    assert json.loads(faces.run("history", "list", "--json")[1]) == []
    assert faces.run("history", "search", "x")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show", "77"), 3, "no chat 77"),
        (("show", "../../etc/passwd"), 3, "no chat"),
        (("rm", "nothing", "--yes"), 3, "no chat nothing"),
        (("rm", "1"), 2, "add --yes"),
        (("restore", "20200101-000000-aaaaaa"), 3, "no chat"),
        (("show",), 2, "CHAT"),
        (("nonsense",), 2, "No such command"),
        (("export", "1", "/no/such/folder/x"), 2, "cannot be written"),
    ],
)  # fmt: skip
def test_wrong_history_calls_exit_with_their_code(
    faces: Faces, chats: ChatStore, arguments: tuple[str, ...], code: int, says: str
) -> None:
    got, out, err = faces.run("history", *arguments)
    assert (got, out) == (code, "")
    assert says in err
    assert len(chats.summaries()) == 2


def test_removed_chats_come_back_until_they_are_erased(faces: Faces, chats: ChatStore, home: Path) -> None:
    chat_id = chats.summaries()[1].id
    code, _, err = faces.run("history", "rm", "2", "--yes")
    assert code == 0
    assert f"localrun history restore {chat_id}" in err
    assert [one.title for one in chats.summaries()] == ["about stars"]
    assert faces.run("history", "restore", chat_id)[0] == 0
    assert len(chats.summaries()) == 2
    assert faces.run("history", "rm", chat_id, chat_id, "--yes", "--erase")[0] == 0
    assert not (home / "chats" / f"{chat_id}.jsonl").exists()


def test_a_removal_that_cannot_be_written_is_an_error(
    faces: Faces, chats: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("localrun.chat.file._append", refuse)
    code, _, err = faces.run("history", "rm", "1", "--yes")
    assert code == 1
    assert "Permission denied" in err
    assert len(ChatStore(chats.folder).summaries()) == 2


def test_damage_is_reported(faces: Faces, chats: ChatStore) -> None:
    assert chats.folder is not None
    path = chats.folder / f"{chats.summaries()[0].id}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"stars are", b"stArs are"))
    code, out, err = faces.run("history", "show", "1")
    assert code == 0
    assert "about stars" in out
    assert "1 places of its file are damaged" in err


def test_at_a_terminal_it_asks_and_cleans(home: Path) -> None:
    chat = ChatStore(home / "chats").create()
    chat.add_answer(chat.add_user(EVIL).id, EVIL)
    with Terminal("history", "rm", "1") as terminal:
        asked = terminal.expect("[y/N] ")
        terminal.send("n\n")
        assert "nothing was removed" in terminal.finish().out
    with Terminal("history", "show", "1") as terminal:
        shown = terminal.finish().out
    for text in (asked, shown):
        assert "evil" in text
        assert "\x1b]" not in text
        assert "\u202e" not in text
    assert EVIL in localrun("history", "show", "1").out, "a pipe gets what is there"
    assert len(ChatStore(home / "chats").summaries()) == 1


# ---- completion


def complete(faces: Faces, monkeypatch: pytest.MonkeyPatch, shell: str, line: str) -> str:
    """What localrun tells the script of `shell` about a command line."""
    asks = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    with monkeypatch.context() as patch:
        for name, value in {**asks, "_LOCALRUN_COMPLETE": f"complete_{shell}"}.items():
            patch.setenv(name, value)
        _, out, err = faces.run()
    assert err == ""
    return out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("localrun hi", "history"),
        ("localrun history re", "restore"),
        ("localrun chat --temp", "--temperature"),
        ("localrun run -m b", "builtin"),
        ("localrun chat bu", "builtin"),
        *(
            (f"localrun {command} bu", "builtin")
            for command in ("run", "show", "fit", "rm", "bench", "perplexity", "tui")
        ),
        ("localrun show qwen3-4b-t", "qwen3-4b-thinking-2507"),
        ("localrun pull qwen3-4b-t", "qwen3-4b-thinking-2507"),
        ("localrun fit -m qwen3-4b-t", "qwen3-4b-thinking-2507"),
        ("localrun run --kv k", "k8v4"),
        ("localrun chat --backend ref", "reference"),
        ("localrun run --think au", "auto"),
        ("localrun run --precision q4_k_m", "q4_k_m"),
        ("localrun pull x --precision Q8", "Q8_0"),
        ("localrun perplexity --kv-baseline k", "k8v4"),
        ("localrun config temp", "temperature"),
        ("localrun config kv k", "k8v4"),
        ("localrun config model bu", "builtin"),
        ("localrun completion fi", "fish"),
    ],
)
def test_shell_completion_of_commands_options_and_models(
    faces: Faces, monkeypatch: pytest.MonkeyPatch, shell: str, line: str, told: str
) -> None:
    assert told in complete(faces, monkeypatch, shell, line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_that_a_shell_would_run_are_not_completed(
    faces: Faces, monkeypatch: pytest.MonkeyPatch, home: Path, shell: str
) -> None:
    models = home / "models"
    models.mkdir(parents=True)
    for name in ("fine-Q8_0.gguf", "$(touch pwned)-Q8_0.gguf", "`touch pwned`.gguf", "a'b-Q8_0.gguf"):
        (models / name).write_bytes(b"GGUF")
    chat = ChatStore(home / "chats").create()
    chat.add_user(EVIL)
    for line, harmless in (("localrun run -m ", "fine"), ("localrun history show ", chat.id)):
        told = complete(faces, monkeypatch, shell, line)
        assert harmless in told
        assert not set("$`") & set(told)
        assert "touch pwned" not in told


def test_bash_completes(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("windows has no bash")
    code = """
eval "$(localrun completion bash)"
for line in "comp" "show buil" "run --kv k" "run --kv = k" "run --kv =" "config backend ref"; do
    COMP_WORDS=(localrun $line) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _localrun_completion localrun
    echo "${COMPREPLY[@]}"
done
"""
    program = tmp_path / "localrun"
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}:{environment()['PATH']}"
    done = subprocess.run([bash, "-c", code], capture_output=True, text=True, env=environment(PATH=path))
    told = [set(line.split()) for line in done.stdout.splitlines()]
    assert told[:4] == [{"completion"}, {"builtin"}, {"k8v4"}, {"k8v4"}]
    assert {"auto", "q8", "k8v4"} <= told[4]
    assert (told[5], done.stderr) == ({"reference"}, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_the_program(faces: Faces, shell: str) -> None:
    code, out, _ = faces.run("completion", shell)
    assert code == 0
    assert f"_LOCALRUN_COMPLETE=complete_{shell}" in out
    code, out, err = faces.run("completion", "powerfish")
    assert (code, out) == (2, "")
    assert "bash, zsh, fish" in err


def test_help_has_its_panels(faces: Faces) -> None:
    out = faces.run("--help")[1]
    for panel in ("Chat", "Models", "Measure"):
        assert f"─ {panel} ─" in out
    assert "completion" in out
    assert "history" in out
    assert "--install-completion" not in out


def test_a_dumb_terminal_gets_the_plain_chat() -> None:
    with Terminal(TERM="dumb") as terminal:
        seen = terminal.expect("> ")
        assert "/help shows the commands" in seen
        assert "\x1b" not in seen
        terminal.send("/quit\n")
        assert terminal.finish().code == 0


def test_the_chat_as_a_person_meets_it(home: Path) -> None:
    with Terminal("chat", "--max-tokens", "8", "--seed", "1", TERM="dumb") as terminal:
        for line, answer in (
            ("hello there", "reused 0 of"), ("and now", "reused "), ("/retry", "tokens"), ("/branch", "/branch NUMBER"),
            ("/title A walk", "(title: A walk)"), ("/new", "(a new chat)"), ("/open 1", "You: hello there"),
        ):  # fmt: skip
            terminal.expect("> ")
            terminal.send(f"{line}\n")
            terminal.expect(answer)
        terminal.expect("> ")
        terminal.send("\x04")
        assert terminal.finish().code == 0
    ran = localrun("run", "-c", "--no-stdin", "--max-tokens", "4", "once more", "--json")
    assert ran.code == 0
    assert ran.json["restored_tokens"] == ran.json["cached_tokens"] > 0, "the chat's blocks were kept on disk"
    (row,) = localrun("history", "list", "--json").json
    assert (row["title"], row["messages"]) == ("A walk", 7)
    assert localrun_in_shell('"$@" | head -c 1', "history", "show", "1").err == ""
