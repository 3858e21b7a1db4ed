"""Files behind an @: found within bounds, chosen by letters, globs and folders, and attached."""

import os
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, type_text
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from localrun_testing.waiting import PATIENCE
from pypdf import PdfWriter
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from localrun.base.content import with_files_as_text
from localrun.base.errors import UsageError
from localrun.chat.attachments import MAX_BYTES
from localrun.chat.files import FoundFile, place_of, read_files, read_found, walk
from localrun.chat.images import ImageShelf
from localrun_tui.screens.chat.file_menu import behind_at, offer
from localrun_tui.state.files import MOST_DROPPED, dropped_path, dropped_paths, look_at, matching

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
    "film.mp4": "x",
}

SHELF = ImageShelf(None)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    return tmp_path


def names(found: list[FoundFile]) -> list[str]:
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


def test_a_folder_is_read_as_a_whole_within_bounds(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [one for one in walk(tree).found if one.name.endswith(".py")]
    attached = read_found(files, SHELF)
    assert [one.name for one in attached.files] == ["src/engine.py", "src/engine_test.py", "src/deep/cache.py"]
    assert attached.left_out == ""
    with pytest.raises(UsageError, match="51 files; 50 are the most"):
        read_found(files * 17, SHELF)
    (tree / "src" / "b.txt").write_bytes(b"\0")
    with pytest.raises(UsageError, match=r"b\.txt is not text"):
        read_found([FoundFile(tree / "src" / "b.txt", "b.txt")], SHELF)
    monkeypatch.setattr("localrun.chat.files.walk", partial(walk, most=2))
    with pytest.raises(UsageError, match="too many files below src/"):
        read_found([FoundFile(tree / "src", "src/")], SHELF)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of which one file of five goes along."""
    folder = tmp_path / "docs"
    (folder / "more papers").mkdir(parents=True)
    (folder / "report.txt").write_text("the report")
    (folder / "server.log").write_text("x" * (MAX_BYTES + 1))
    (folder / "logo.ico").write_bytes(b"\x89PNG")
    (folder / "more papers" / "raw.txt").write_bytes(b"\xe9\xff")
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(folder / "scan.pdf")
    return folder


OF_DOCS = "4 of 5 left out: scan.pdf has no text, server.log is too long (/read reads it in parts), "
OF_DOCS += "more papers/raw.txt is not UTF-8 text"


def test_what_of_a_folder_does_not_go_along_is_said(docs: Path) -> None:
    attached = read_files(str(docs), docs, SHELF)
    assert [one.name for one in attached.files] == ["report.txt"]
    assert attached.left_out == f"{OF_DOCS}, logo.ico is not text"
    chosen = read_found([FoundFile(docs, "docs/")], SHELF)
    assert [one.name for one in chosen.files] == ["docs/report.txt"]
    assert "docs/server.log is too long" in chosen.left_out
    assert read_files("*.txt", docs, SHELF).left_out == "1 of 2 left out: more papers/raw.txt is not UTF-8 text"
    assert read_files("report.txt", docs, SHELF).left_out == ""
    for number in range(9):
        (docs / f"{number}.png").write_bytes(b"")
    assert read_files(str(docs), docs, SHELF).left_out.endswith(", and 8 more")
    (docs / "report.txt").unlink()
    with pytest.raises(UsageError, match=r"no text file among them \(13 of 13 left out: "):
        read_files(str(docs), docs, SHELF)


@pytest.mark.skipif(os.name != "posix", reason="windows has no such files")
def test_what_cannot_be_looked_at_is_left_out_aloud(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(docs / "pipe.txt")
    (docs / "gone.txt").symlink_to(docs / "nowhere")
    (docs / "other").symlink_to(docs.parent)
    (docs / "a\nb.txt").write_text("x")
    (docs / "closed").mkdir()
    (docs / ".hidden").write_text("x")
    (docs / ".gitignore").write_text("*.log\n")
    scandir = os.scandir

    def refuse(path: Path) -> Any:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert {one.name: one.why for one in walk(docs).left_out} == {
        "pipe.txt": "is not a file",
        "gone.txt": "is not a file",
        "other/": "is a link to a folder",
        "a\nb.txt": "has a name that cannot be shown",
        "closed/": "cannot be opened",
        "logo.ico": "is not text",
    }
    closed = "closed/ cannot be opened"
    assert read_files("rep*", docs, SHELF).left_out == f"2 of 3 left out: other/ is a link to a folder, {closed}"
    assert "\n" not in read_files(str(docs), docs, SHELF).left_out


@pytest.mark.parametrize("keys", ["@docs", "/attach docs", "ctrl+t"])
def test_the_app_says_what_does_not_go_along(docs: Path, keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs.parent)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        if keys == "ctrl+t":
            await pilot.press("ctrl+t")
            await until(pilot, lambda: app.screen.query("#answer"))
            app.screen.query_one("#answer", Input).value = "docs"
        else:
            await type_text(pilot, keys)
        if keys == "@docs":
            await until_text(pilot, "docs/  folder")
        await pilot.press("enter")
        await until(pilot, lambda: "4 of 5 left out" in notice(pilot))
        assert "server.log is too long" in notice(pilot)
        assert [one.name.removeprefix("docs/") for one in chat_screen(pilot).composer.attachments] == ["report.txt"]

    drive(app, steps)


def test_tab_goes_into_a_folder_and_enter_attaches_it(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "more papers" / "good.txt").write_text("good")
    monkeypatch.chdir(docs.parent)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer

        def is_at(row: str) -> bool:
            return composer.menu.chosen is not None and composer.menu.chosen.row.plain.startswith(row)

        await ready(pilot)
        await type_text(pilot, "see @do")
        await until(pilot, lambda: is_at("docs/  folder"))
        for text, row in (
            ("see @docs/", "docs/  all of this folder"),
            ("see @docs/", "docs/more papers/  folder"),  # the next one
            ('see @"docs/more papers/', "docs/more papers/  all of this folder"),
        ):
            await pilot.press("tab")
            await until(pilot, lambda row=row: is_at(row))  # type: ignore[misc]
            assert composer.editor.text == text
            assert not composer.attachments
        await pilot.press("enter")
        await until(pilot, lambda: composer.attachments)
        assert [one.name for one in composer.attachments] == ["docs/more papers/good.txt"]
        assert composer.editor.text == "see "
        await until(pilot, lambda: "raw.txt is not UTF-8 text" in notice(pilot))

    drive(app, steps)


def test_a_path_is_completed_by_tab_into_its_folder(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs.parent)
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.screen.query("#answer"))
        box = app.screen.query_one("#answer", Input)
        for typed, completed in (("do", "docs/"), ("rep", "docs/report.txt")):
            await pilot.press(*typed)
            await until(pilot, lambda: box._suggestion)
            await pilot.press("tab")
            assert box.value == completed
        await until(pilot, lambda: not box._suggestion)
        await pilot.press("tab")
        await until(pilot, lambda: not box.has_focus)

    drive(app, steps)


def test_a_look_at_a_file(tree: Path) -> None:
    (tree / "b.txt").write_bytes(b"a\0b")
    assert look_at([FoundFile(tree / "README.md", "README.md", 7)]).splitlines()[1:] == ["read me"]
    assert look_at([FoundFile(tree / "b.txt", "b.txt", 3)]).endswith("not text")
    assert "No such file" in look_at([FoundFile(tree / "gone.txt", "gone.txt", 3)])
    (tree / "windows.txt").write_text("Grüße\nzwei", "utf-16")
    assert look_at([FoundFile(tree / "windows.txt", "windows.txt", 22)]).splitlines()[1:] == ["Grüße", "zwei"]


@pytest.mark.skipif(os.name == "nt", reason="paths are written another way on this OS (windows)")
def test_a_path_that_is_dropped(tree: Path) -> None:
    path = tree / "notes" / "moon tides.txt"
    escaped = str(path).replace(" ", "\\ ")
    for text in (str(path), f"'{path}'", f'"{path}" ', escaped, path.as_uri()):
        assert dropped_path(text) == path
    for text in ("", "hello", str(tree), f"{path}\n{path}", "notes/moon tides.txt", f"see {path}", "/no/such\0file"):
        assert dropped_path(text) is None


@pytest.mark.skipif(os.name == "nt", reason="paths are written another way on this OS (windows)")
def test_several_paths_that_are_dropped(tree: Path) -> None:
    two = [tree / "README.md", tree / "notes" / "moon tides.txt"]
    spelled = "\n".join(map(str, two)), "\n\n".join(path.as_uri() for path in two), shlex.join(map(str, two))
    for text in (*spelled, f"  {two[0]}\n  '{two[1]}'\n", " ".join(str(path).replace(" ", "\\ ") for path in two)):
        assert dropped_paths(text) == two
    for text in ("", "hello", f"{two[0]}\nhello", f"{two[0]} and '{two[1]}", f"see {two[0]}", f"{two[0]} 'open"):
        assert dropped_paths(text) == []
    assert dropped_paths(f"{two[0]}\n" * (MOST_DROPPED + 1)) == []


def test_only_an_at_before_a_word_asks_for_files() -> None:
    wanted = {
        "@": "",
        "see @src/en": "src/en",
        "a@b.example": None,
        "@a b": None,
        "(@a": None,
        "": None,
        '@"a b': '"a b',
        '@"a" ': None,
    }
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
        await until(pilot, lambda: not composer.has_menu)
        composer.write("see ")
        await pilot.press("@", *"src/cac")
        await until_text(pilot, "src/deep/cache.py")
        await pilot.press("enter")
        await until(pilot, lambda: composer.attachments)
        await pilot.press("@", *"src")
        await until_text(pilot, "src/  folder")
        await pilot.press("up", "tab")  # on the words about it, which stand for nothing
        assert composer.editor.text == "see @src"
        await pilot.press("slash")
        await until_text(pilot, "all of this folder")
        await pilot.press("enter")
        await until(pilot, lambda: len(composer.attachments) == 3)
        await ask(pilot, "?")

    drive(app, steps)
    content = with_files_as_text(client.requests[0].messages[0])["content"]
    assert content.count("[file: src/deep/cache.py]") == 1, "the same file once"
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
        assert "≈6 tokens" in screen_text(app)
        assert len(screen_text(app).splitlines()) <= SMALL[1]
        await pilot.press("down", "enter")
        await until(pilot, lambda: composer.attachments)
        assert composer.editor.text == "what is "
        await pilot.press("@", "s", "r", "c", "/", "d", "e")
        await until_text(pilot, "src/deep/")
        await pilot.press("enter")
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


@pytest.mark.parametrize("before", [(), ("@", "s")], ids=["no menu yet", "the menu of other letters"])
def test_keys_wait_for_the_menu_of_what_was_typed(
    before: tuple[str, ...], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever types fast presses Tab and Enter before anything was looked up."""
    monkeypatch.chdir(tree)
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await pilot.press(*before)
        await until(pilot, lambda: composer.has_menu == bool(before))
        monkeypatch.setattr("localrun_tui.screens.chat.menu_filler._AT_REST", 2 * PATIENCE)
        await pilot.press(*("@", "s", "r")[len(before) :], "tab", *"dee", "tab", *"ca", "enter")
        await until(pilot, lambda: composer.attachments)
        assert composer.editor.text == ""
        await pilot.press(*"hello @nobody", "enter")
        await until(pilot, lambda: client.requests)

    drive(app, steps)
    content = with_files_as_text(client.requests[0].messages[0])["content"]
    assert content.startswith("[file: src/deep/cache.py]")
    assert content.endswith("hello @nobody")


@pytest.mark.skipif(os.name == "nt", reason="paths are written another way on this OS (windows)")
@pytest.mark.parametrize(("n_files", "offer"), [(3, "attach all 3 text files"), (70, "attach the first 50 of 70 text")])
def test_paths_that_are_pasted_become_files(tmp_path: Path, n_files: int, offer: str) -> None:
    """70 of them are more than a paste may have before it becomes a chip."""
    paths = [tmp_path / f"{'a long name ' * 8}{number}.txt" for number in range(n_files)]
    for path in paths:
        path.write_text(f"This is {path.name[-6:]}")
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await type_text(pilot, "before ")
        pilot.app.post_message(events.Paste("\n".join(map(str, paths)) + "\n"))
        await until_text(pilot, offer)
        await pilot.press("enter")
        await until(pilot, lambda: len(composer.attachments) == min(n_files, 50))
        assert composer.editor.text.rstrip() == "before"

    drive(app, steps)


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
def test_an_unknown_home_offers_nothing() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        composer = chat_screen(pilot).composer
        await ready(pilot)
        await type_text(pilot, "@~no-such-user-here/x")
        await pilot.pause(0.3)
        assert not composer.has_menu
        await ask(pilot, " is what?")

    drive(app, steps)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.log", b"12:07 GET 200", "≈9 tokens"),
        ("a.log", bytes(7), "7 bytes"),
        ("a.log", bytes(2 << 20), "2.00 MiB, a part of it"),
        ("a.PDF", bytes(2 << 20), "PDF, 2.00 MiB"),
    ],
)
def test_tokens_of_a_file_are_told_only_where_it_is_text(name: str, data: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert says in offer(FoundFile(tmp_path / name, name, len(data)), "@a").row.plain


def test_a_file_has_one_name_however_it_is_chosen(tmp_path: Path) -> None:
    """So that it is not attached twice."""
    docs, other = tmp_path / "docs", tmp_path / "other"
    docs.mkdir()
    other.mkdir()
    (docs / "b.txt").write_text("text")
    for typed in ("docs/b.txt", "docs", "docs/", ".", "docs/*.txt", "./docs/../docs", str(docs), f"{docs}/b.*"):
        assert [one.name for one in read_files(typed, tmp_path, SHELF).files] == ["docs/b.txt"], typed
    assert [one.name for one in read_files("docs/b.txt:1-1", tmp_path, SHELF).files] == ["docs/b.txt:1-1"]
    for typed in (str(docs), "../docs/b.txt"):
        assert [one.name for one in read_files(typed, other, SHELF).files] == ["b.txt"], typed
