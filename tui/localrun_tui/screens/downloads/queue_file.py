"""Downloads that wait for their turn, on disk: what had not begun when the app ended is offered again, too."""

from collections.abc import Callable
from typing import Any

from localrun.base.paths import folder, writable_folder
from localrun.base.state_file import change_state, read_state
from localrun_tui.screens.downloads.download import Download
from localrun_tui.state.process_mark import own_mark, runs_elsewhere

_NAME = "queued_downloads.json"
_TEXTS = ("name", "repo", "precision", "file", "by")


def note_queued(download: Download) -> None:
    """Note that a download is wanted, until it is forgotten."""
    row = {"name": download.name, "repo": download.repo, "precision": download.precision, "file": download.file}
    _change(lambda rows: {**rows, download.key: {**row, "total": download.total, "by": own_mark()}})


def forget(key: str) -> None:
    """Note no more that it is wanted: it has arrived, or is not wanted any more."""
    if key in _rows():
        _change(lambda rows: {name: row for name, row in rows.items() if name != key})


def left_queued() -> list[Download]:
    """Queued downloads of apps that have ended."""
    return [
        Download(key, row["name"], row["repo"], row["precision"], "unfinished", 0, row["total"], file=row["file"])
        for key, row in _rows().items()
        if _is_row(row) and not runs_elsewhere(row["by"])
    ]


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or type(row.get("total")) is not int:
        return False
    return all(isinstance(row.get(name), str) for name in _TEXTS)


def _rows() -> dict[str, Any]:
    place = folder("cache")
    return read_state(place / _NAME if place else None)


def _change(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    place = writable_folder("cache")
    if place is not None:
        change_state(place / _NAME, change)
