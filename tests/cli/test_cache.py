"""`localrun cache`: what is kept is listed with its sizes, and goes when it is to."""

import json
from pathlib import Path

import pytest
from localrun_testing.cli import Terminal
from localrun_testing.faces import Faces
from localrun_testing.schemas import check

from localrun.chat.journal import ChatStore
from localrun.server.responses.stored import FOLDER, DiskShelf
from localrun.storage.block_files import DISK_FOLDER, BlockFiles
from localrun.storage.label import Label
from localrun.storage.programs import note_program

SIZE = 40_000


@pytest.fixture
def root(home: Path) -> Path:
    return home / "cache" / DISK_FOLDER


@pytest.fixture
def chats(home: Path, root: Path) -> tuple[str, str]:
    """Two chats of one model that begin alike, one of another model, and something of Python's."""
    store = ChatStore(home / "chats")
    ids = []
    for text in ("tides", "stars"):
        chat = store.create(model="m")
        chat.add_user(f"about {text}")
        ids.append(chat.id)
    small, large = (
        BlockFiles(root, name, (SIZE,), Label(name, f"/models/{name}.gguf", "Q8_0", "f16"))
        for name in ("small", "large")
    )
    for disk, texts, chat_id in (
        (small, "abc", ids[0]),
        (small, "ab", ids[1]),
        (large, "x", ids[0]),
        (large, "y", "python"),
    ):
        key = None
        for letter in texts:
            key = disk.key(key, (ord(letter),))
            disk.save(key, (ord(letter),), (bytes(SIZE),), [chat_id])
    return ids[0], ids[1]


def kept(root: Path) -> int:
    return len(list(root.rglob("*.kv")))


def test_list_shows_models_and_chats_with_their_sizes(faces: Faces, chats: tuple[str, str], root: Path) -> None:
    code, out, err = faces.run("cache", "list", "--json")
    assert code == 0
    rows = json.loads(out)
    check(rows, "cache list")
    by_name = {row["model"]: row for row in rows}
    one = next(root.rglob("*.kv")).stat().st_size
    assert (by_name["small"]["blocks"], by_name["small"]["bytes"]) == (3, 3 * one)
    sizes = {row["chat"]: (row["bytes"], row["shared_bytes"], row["title"]) for row in by_name["small"]["chats"]}
    assert sizes == {chats[0]: (3 * one, 2 * one, "about tides"), chats[1]: (2 * one, 2 * one, "about stars")}
    assert {row["chat"] for row in by_name["large"]["chats"]} == {chats[0], "python"}
    code, out, err = faces.run("cache", "list")
    assert code == 0
    assert "small  Q8_0  f16  0.11 MiB" in out
    assert "about tides" in out
    assert chats[1] in out
    assert "of 8.00 GiB" in err


@pytest.mark.parametrize(
    ("arguments", "n_left"),
    [((), 0), (("--model", "small"), 2), (("--chat", "1"), 5), (("--chat", "2"), 3), (("--chat", "python"), 4)],
)
def test_clear_removes_all_or_a_part(
    faces: Faces, chats: tuple[str, str], root: Path, arguments: tuple[str, ...], n_left: int
) -> None:
    before = sum(path.stat().st_size for path in root.rglob("*.kv"))
    code, out, err = faces.run("cache", "clear", *arguments, "--yes", "--json")
    assert code == 0, err
    assert kept(root) == n_left
    check(json.loads(out), "cache clear")
    assert json.loads(out)["freed"] == before - sum(path.stat().st_size for path in root.rglob("*.kv"))
    assert len(ChatStore(root.parents[1] / "chats").summaries()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "add --yes"),
        (("--chat", "nonsense"), 3, "no chat nonsense"),
        (("--model", "nonsense", "--yes"), 3, "the cache has large, small"),
        (("--model", "small", "--chat", "1"), 2, "exclude each other"),
    ],
)
def test_wrong_calls_remove_nothing(
    faces: Faces, chats: tuple[str, str], root: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    got, out, err = faces.run("cache", "clear", *arguments)
    assert (got, out) == (code, "")
    assert says in err
    assert kept(root) == 5


def test_at_a_terminal_it_asks(chats: tuple[str, str], root: Path) -> None:
    for answer, n_left in (("n", 5), ("y", 0)):
        with Terminal("cache", "clear") as terminal:
            terminal.expect("[y/N] ")
            terminal.send(f"{answer}\n")
            assert terminal.finish().code == 0
        assert kept(root) == n_left


def test_nothing_kept_is_nothing_to_ask_about(faces: Faces) -> None:
    assert faces.run("cache", "list")[:2] == (0, "")
    assert faces.run("cache", "list", "--json")[:2] == (0, "[]\n")
    assert faces.run("cache", "clear")[0] == 0


def test_no_disk_cache_keeps_nothing_of_what_there_was(faces: Faces, chats: tuple[str, str], root: Path) -> None:
    code, _, err = faces.run("config", "disk_cache", "0")
    assert code == 0
    assert kept(root) == 0
    assert "removed 0.19 MiB" in err
    assert faces.run("config", "disk_cache", "1")[2].count("removed") == 0


def test_the_command_is_there(faces: Faces) -> None:
    assert "cache" in faces.run("--help")[1]
    assert "clear" in faces.run("cache", "--help")[1]


def test_conversations_of_programs_are_listed_by_name_and_removed_together(
    faces: Faces, chats: tuple[str, str], root: Path
) -> None:
    disk = BlockFiles(root, "small", (SIZE,), Label("small", "/models/small.gguf", "Q8_0", "f16"))
    programs = ["api-" + letter * 32 for letter in "ab"]
    key = None
    for letter, owners in (("a", programs), ("p", programs), ("q", programs[:1])):
        key = disk.key(key, (ord(letter),))
        disk.save(key, (ord(letter),), (bytes(SIZE),), owners)
    note_program(programs[0], "codex_cli_rs")
    code, out, err = faces.run("cache", "list", "--json")
    check(json.loads(out), "cache list")
    rows = {chat["chat"]: chat for model in json.loads(out) for chat in model["chats"]}
    assert [rows[name]["program"] for name in (*programs, chats[0])] == ["codex_cli_rs", "", ""]
    assert "codex_cli_rs" in faces.run("cache", "list")[1]
    n_before = kept(root)
    code, out, err = faces.run("cache", "clear", "--api")
    assert (code, kept(root)) == (2, n_before), "nobody was asked"
    code, out, err = faces.run("cache", "clear", "--api", "--yes")
    assert code == 0, err
    assert kept(root) == n_before - 2, "the first block is a chat's, too"
    assert faces.run("cache", "clear", "--api", "--chat", "1", "--yes")[0] == 2


def test_stored_responses_are_listed_and_removed(faces: Faces, home: Path, chats: tuple[str, str], root: Path) -> None:
    shelf = DiskShelf(home / "cache" / FOLDER)
    for number in range(3):
        shelf.put(f"resp_{number:032x}", b"x" * SIZE)
    foreign = home / "cache" / FOLDER / "notes.txt"
    foreign.touch()
    code, out, _ = faces.run("cache", "list", "--json")
    rows = json.loads(out)
    check(rows, "cache list")
    (row,) = [row for row in rows if row["path"] == str(foreign.parent)]
    assert (row["bytes"], row["blocks"]) == (3 * SIZE, 3)
    assert "3 stored responses" in faces.run("cache", "list")[1]
    assert faces.run("cache", "clear", "--chat", chats[0], "--yes")[0] == 0
    assert shelf.figures().n_responses == 3
    n_before = kept(root)
    code, out, err = faces.run("cache", "clear", "--api", "--yes", "--json")
    assert (code, json.loads(out)["freed"], kept(root)) == (0, 3 * SIZE, n_before), err
    assert "with 3 stored responses" in err
    assert list(foreign.parent.iterdir()) == [foreign], "only what is ours"
