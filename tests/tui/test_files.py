"""Files behind an @: found within bounds, chosen by letters, globs and folders, and attached."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, type_text
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from textual import events
from textual.pilot import Pilot

from localrun.base.content import with_files_as_text
from localrun.base.errors import UsageError
from localrun.chat.files import Found, place_of, read_all, walk
from localrun_tui.screens.chat.file_menu import behind_at
from localrun_tui.state.files import dropped_path, look_at, matching

TREE = {
    "README.md": "read me",
    "src/engine.py": "def run(): ...",
    "src/engine_test.py": "def test(): ...",
    "src/deep/cache.py": "blocks",
    "notes/moon tides.txt": "tides",
    "build/out.txt": "made",
    "src/secret.log": "x",
    ".git/config": "x",
    "node_modules/a.js": "x",
    "picture.png": "x",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    return tmp_path


def names(found: list[Found]) -> list[str]:
    return [one.name for one in found]


def test_what_is_hidden_ignored_or_no_text_is_not_offered(tree: Path) -> None:
    found = {one.name for one in walk(tree).found}
    files = {"README.md", "src/engine.py", "src/engine_test.py", "src/deep/cache.py", "notes/moon tides.txt"}
    assert found == files | {"src/", "src/deep/", "notes/"}


@pytest.mark.skipif(os.name != "posix", reason="windows has no such pipes")
def test_a_gitignore_that_is_no_file_ignores_nothing(tree: Path) -> None:
    (tree / ".gitignore").unlink()
    os.mkfifo(tree / ".gitignore")
    assert "build/" in {one.name for one in walk(tree).found}


def test_a_walk_below_a_folder_finds_what_the_whole_one_finds_there(tree: Path) -> None:
    (tree / "src" / ".gitignore").write_text("engine_*\n")
    everything = walk(tree).found
    for folder in ("", "src/", "src/deep/", "notes/", "build/"):
        there = {one for one in everything if one.name.startswith(folder) and one.name != folder}
        assert set(walk(tree, folder).found) == there


def test_a_walk_has_an_end(tree: Path) -> None:
    (tree / "src" / "round").symlink_to(tree)
    assert walk(tree).is_whole
    for limit in (3, 0):
        part = walk(tree, most=limit)
        assert (len(part.found), part.is_whole) == (limit, False)
    assert not walk(tree, seconds=-1).is_whole


@pytest.mark.skipif(os.name == "nt", reason="such names cannot be on this OS (windows)")
def test_a_name_that_would_steer_the_terminal_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31mb.txt").write_text("x")
    (tmp_path / "a\nb.txt").write_text("x")
    assert walk(tmp_path).found == ()


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("eng", ["src/engine.py", "src/engine_test.py"]),
        ("engt", ["src/engine_test.py"]),
        ("rm", ["README.md"]),
        ("src/", ["src/deep/", "src/engine.py", "src/engine_test.py", "src/deep/cache.py"]),
        ("*.py", ["src/engine.py", "src/engine_test.py", "src/deep/cache.py"]),
        ("src/*_test.*", ["src/engine_test.py"]),
        ("tides", ["notes/moon tides.txt"]),
        ("zzz", []),
    ],
)
def test_files_are_found_by_letters_globs_and_folders(tree: Path, wanted: str, first: list[str]) -> None:
    assert sorted(names(matching(walk(tree), wanted))) == sorted(first)
    if not any(sign in wanted for sign in "*["):
        assert names(matching(walk(tree), wanted)) == first


def test_what_is_typed_may_lead_elsewhere(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree))
    here = tree / "src"
    assert place_of("cac", here) == (here, "cac")
    assert place_of("deep/cac", here) == (here, "deep/cac")
    assert place_of("../no", here) == (here / "..", "no")
    assert place_of(f"{tree}/notes/mo", here) == (tree / "notes", "mo")
    if os.name != "nt":
        assert place_of("~/RE", here) == (tree, "RE")


def test_a_folder_is_read_as_a_whole_within_bounds(tree: Path) -> None:
    files = [one for one in walk(tree).found if one.name.endswith(".py")]
    assert [one.name for one in read_all(files)] == ["src/engine.py", "src/engine_test.py", "src/deep/cache.py"]
    with pytest.raises(UsageError, match="51 files; 50 are the most"):
        read_all(files * 17)
    (tree / "src" / "b.txt").write_bytes(b"\0")
    with pytest.raises(UsageError, match="not text"):
        read_all([Found(tree / "src" / "b.txt", "b.txt")])


def test_a_look_at_a_file(tree: Path) -> None:
    (tree / "b.txt").write_bytes(b"a\0b")
    assert look_at([Found(tree / "README.md", "README.md", 7)]).splitlines()[1:] == ["read me"]
    assert look_at([Found(tree / "b.txt", "b.txt", 3)]).endswith("not text")
    assert "No such file" in look_at([Found(tree / "gone.txt", "gone.txt", 3)])


@pytest.mark.skipif(os.name == "nt", reason="paths are written another way on this OS (windows)")
def test_a_path_that_is_dropped(tree: Path) -> None:
    path = tree / "notes" / "moon tides.txt"
    escaped = str(path).replace(" ", "\\ ")
    for text in (str(path), f"'{path}'", f'"{path}" ', escaped, path.as_uri()):
        assert dropped_path(text) == path
    for text in ("", "hello", str(tree), f"{path}\n{path}", "notes/moon tides.txt", f"see {path}", "/no/such\0file"):
        assert dropped_path(text) is None


def test_only_an_at_before_a_word_asks_for_files() -> None:
    wanted = {"@": "", "see @src/en": "src/en", "a@b.example": None, "@a b": None, "(@a": None, "": None}
    assert {text: behind_at(text) for text in wanted} == wanted


def test_where_there_is_too_much_it_is_said_and_a_folder_leads_on(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    monkeypatch.setattr("localrun_tui.screens.chat.file_menu.walk", partial(walk, most=4))  # README, folders, tides
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await pilot.press("@", *"cache")
        await until_text(pilot, "only the first 4 files were looked at; @folder/ looks further down")
        assert not composer.has_menu
        composer.write("see ")
        await pilot.press("@", *"src/cac")
        await until_text(pilot, "src/deep/cache.py")
        await pilot.press("enter")
        await until(pilot, lambda: composer.attachments)
        await pilot.press("@", *"src")
        await until_text(pilot, "src/  folder")
        await pilot.press("enter")
        await until(pilot, lambda: len(composer.attachments) == 4)
        await ask(pilot, "?")

    drive(app, steps)
    content = with_files_as_text(client.requests[0].messages[0])["content"]
    assert content.count("[file: src/deep/cache.py]") == 2
    assert all(f"[file: src/{name}]" in content for name in ("engine.py", "engine_test.py"))
    assert "secret" not in content


def test_a_file_is_picked_by_keys(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await type_text(pilot, "what is ")
        await pilot.press("@", *"eng")
        await until_text(pilot, "src/engine_test.py")
        await until_text(pilot, "def run(): ...")
        assert "≈4 tokens" in screen_text(app)
        assert len(screen_text(app).splitlines()) <= SMALL[1]
        await pilot.press("down", "enter")
        await until(pilot, lambda: composer.attachments)
        assert composer.editor.text == "what is "
        await pilot.press("@", "s", "r", "c", "/", "d", "e")
        await until_text(pilot, "src/deep/")
        await pilot.press("tab")
        await until(pilot, lambda: len(composer.attachments) == 2)
        await pilot.press("@", "e")
        await until(pilot, lambda: composer.has_menu)
        await pilot.press("escape")
        assert composer.editor.text == "what is @e"
        await ask(pilot, "?")

    drive(app, steps)
    content = with_files_as_text(client.requests[0].messages[0])["content"]
    assert "[file: src/engine_test.py]" in content
    assert "[file: src/deep/cache.py]" in content
    assert content.endswith("what is @e?")


@pytest.mark.skipif(os.name == "nt", reason="paths are written another way on this OS (windows)")
def test_a_dropped_file_is_offered_and_may_stay_a_path(tree: Path) -> None:
    app, client = chat_app()
    path = tree / "README.md"

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        for key, text, n_files in (("escape", str(path), 0), ("enter", "", 1)):
            pilot.app.post_message(events.Paste(f"{path}"))
            await until_text(pilot, "attach README.md")
            await pilot.press(key)
            await until(pilot, lambda n=n_files: len(composer.attachments) == n)  # type: ignore[misc]
            assert composer.editor.text == text
            composer.editor.text = ""
        await ask(pilot, "what does it say?")

    drive(app, steps)
    assert "read me" in with_files_as_text(client.requests[0].messages[0])["content"]


def test_a_folder_without_text_is_told_of(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "empty").mkdir()
    monkeypatch.chdir(tree)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("@", *"empty")
        await until_text(pilot, "empty/")
        await pilot.press("enter")
        await until(pilot, lambda: "no text file" in notice(pilot))

    drive(app, steps)


@pytest.mark.skipif(os.name == "nt", reason="such a home cannot be on this OS (windows)")
def test_the_home_of_nobody_offers_nothing() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await type_text(pilot, "@~no-such-user-here/x")
        await pilot.pause(0.3)
        assert not composer.has_menu
        await ask(pilot, " is what?")

    drive(app, steps)
