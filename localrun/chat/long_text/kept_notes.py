"""Notes of a reading in parts, on disk until all of it is read: after a stop or a crash none is asked for again."""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from localrun.base.events import ModelInfo
from localrun.base.paths import writable_folder
from localrun.base.request import Request
from localrun.base.small_file import read_small
from localrun.chat.long_text.in_parts import ReadingPlan

_FOLDER, _SUFFIX = "readings", ".jsonl"
_KEPT_SECONDS = 7 * 86400  # that a reading which nobody ends is kept
_MAX_BYTES = 16 << 20


class KeptNotes:
    """The notes of one model, question and text, by the parts that were asked about. A folder that cannot be written
    keeps none, and the reading goes on."""

    def __init__(self, plan: ReadingPlan, info: ModelInfo) -> None:
        self._path = _path_of(plan, info)
        self._notes = {} if self._path is None else _read(self._path)

    def note(self, request: Request) -> str | None:
        """The note that was made for this request; None where there is none yet."""
        return self._notes.get(_digest(request))

    def known(self, plan: ReadingPlan) -> int:
        """Number of the plan's pieces that were read before."""
        return sum(self.note(plan.request(piece)) is not None for piece in plan.pieces)

    def keep(self, request: Request, note: str) -> None:
        """Keep a note."""
        asked = _digest(request)
        self._notes[asked] = note
        if self._path is None:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with open(os.open(self._path, flags, 0o600), "a", encoding="utf-8") as file:
                file.write(json.dumps({"asked": asked, "note": note}) + "\n")

    def forget(self) -> None:
        """Remove them from the disk: the reading is at its end."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def erase_notes(chats: Path) -> None:
    """Remove the notes of all readings. Raises OSError."""
    for path in (chats / _FOLDER).glob(f"*{_SUFFIX}"):
        path.unlink(missing_ok=True)


def _path_of(plan: ReadingPlan, info: ModelInfo) -> Path | None:
    """The file of a reading; those that are too old are removed on the way. None where nothing can be kept."""
    chats = writable_folder("chats")
    if chats is None:
        return None
    with suppress(OSError):
        for path in (chats / _FOLDER).glob(f"*{_SUFFIX}"):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()
    whole = hashlib.sha256((info.fingerprint or info.name).encode(errors="replace"))
    for text in (plan.name, plan.question, *(piece.text for piece in plan.pieces)):
        whole.update(hashlib.sha256(text.encode(errors="replace")).digest())
    return chats / _FOLDER / f"{whole.hexdigest()[:32]}{_SUFFIX}"


def _read(path: Path) -> dict[str, str]:
    """The notes of a file; a line that a crash cut off is passed over."""
    try:
        lines = read_small(path, _MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    notes: dict[str, str] = {}
    for line in lines:
        with suppress(ValueError, RecursionError, LookupError, TypeError):
            record = json.loads(line)
            notes[str(record["asked"])] = str(record["note"])
    return notes


def _digest(request: Request) -> str:
    return hashlib.sha256(str(request.messages[-1]["content"]).encode(errors="replace")).hexdigest()
