"""What takes room on the disk: added up right, and freed only when one says so."""

from pathlib import Path
from typing import Any

from localrun_testing.model_screens import ScreenApp
from localrun_testing.pilots import drive, until, until_text
from textual.pilot import Pilot

from localrun.chat.journal import ChatStore
from localrun.storage.weight_store import PACKED_FOLDER
from localrun_tui.screens.models.storage_rows import storage_rows
from localrun_tui.screens.models.storage_screen import StorageScreen


def packed_file(home: Path, size: int) -> Path:
    file = home / "cache" / PACKED_FOLDER / ("a" * 16) / "weights.packed"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(size))
    return file


def test_everything_is_added_up(home: Path) -> None:
    chat = ChatStore(home / "chats").create()
    chat.add_user("hello")
    file = packed_file(home, 5000)
    rows = {row.name: row for row in storage_rows()}
    assert rows["Chats"].nbytes == (home / "chats" / f"{chat.id}.jsonl").stat().st_size
    assert rows["Chats"].free == 0, "what one would miss is not offered"
    packed = rows["Packed weights"]
    assert packed.nbytes == packed.free == 5000
    assert packed.clear is not None
    packed.clear()
    assert not file.exists()
    assert {row.name: row for row in storage_rows()}["Packed weights"].clear is None


def test_it_is_freed_after_a_question(home: Path) -> None:
    file = packed_file(home, 3 << 20)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "3.00 MiB can be freed")
        await pilot.press("down", "down", "delete")
        await until_text(pilot, "Free “Packed weights”?")
        await pilot.press("enter")  # keep has the focus
        assert file.exists()
        await pilot.press("delete")
        await until_text(pilot, "Free “Packed weights”?")
        await pilot.press("y")
        await until(pilot, lambda: not file.exists())
        await until_text(pilot, "0 bytes can be freed")

    drive(ScreenApp(StorageScreen()), steps)
