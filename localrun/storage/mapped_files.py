"""Files that weights are mapped from while a model computes, and the check that they are unchanged.

Most are packed weights; some models leave a table in their own file. A write to a mapped file changes weights between
two steps, and truncating it ends the process. A write is noticed here, by size and time.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from types import MappingProxyType

from localrun.base.errors import EngineError, LocalrunError
from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.state_file import read_state
from localrun.formats.files import Stamp, bad_file, was_written_to
from localrun.storage.packed_file import LOCK, PackedFile

VERIFIED_FILE = "verified.json"  # in the folder of a model: what each file was known by when it was found whole
LOOKED_AT = 4  # files of packed weights after a step: each takes microseconds, and all are looked at as an answer ends


class DamagedWeightsError(EngineError):
    """Packed weights on disk are damaged. They are removed, and the next load packs them again."""

    def __init__(self, damaged: Sequence[PackedFile]) -> None:
        files = "a file" if len(damaged) == 1 else f"{len(damaged)} files"
        super().__init__(
            f"{files} of packed weights in {damaged[0].path.parent} were damaged on the disk, and are removed",
            "send the message again: they are packed again from the model's file, which is not damaged",
        )


class MappedFiles:
    """`model`: files of the model as they were opened; `packed`: mapped files of packed weights, of one folder.

    `problem` is why nothing may be computed with them any more.
    """

    def __init__(self, model: Mapping[Path, Stamp] = MappingProxyType({}), packed: Sequence[PackedFile] = ()) -> None:
        self.model, self.packed = model, packed
        self.problem: LocalrunError | None = None
        self._turns = cycle(packed)
        self._is_verified = False  # all, since they were mapped

    def look(self, most: int | None = None) -> LocalrunError | None:
        """Check for writes by size and time; returns the problem. With `most` only that many files, in turn."""
        for path, stamp in self.model.items():
            if was_written_to(path, stamp):
                what = "the model file was changed while it was in use"
                self.problem = self.problem or bad_file("CHANGED", what, path, hint="load it again")
        for file in self.packed if most is None else islice(self._turns, min(most, len(self.packed))):
            if file.stamp and was_written_to(file.path, file.stamp):
                self._remove([file])
        return self.problem

    def verify(self, before_piece: Callable[[], None]) -> LocalrunError | None:
        """Read back packed files that were not verified yet; `before_piece` may raise to stop."""
        known = read_verified(self.packed[0].path.parent) if self.packed else {}
        return self._verify([file for file in self.packed if known.get(file.path.name) != file.known_by], before_piece)

    def explain_not_finite(self) -> LocalrunError | None:
        """Read all packed weights once to see whether they caused a number that is not finite."""
        if not self._is_verified:
            self._is_verified = True
            self._verify(self.packed, lambda: None)
        return self.problem

    def _verify(self, files: Sequence[PackedFile], before_piece: Callable[[], None]) -> LocalrunError | None:
        damaged: list[PackedFile] = []
        sound: list[PackedFile] = []
        try:
            for file in files:
                (damaged if file.is_damaged(before_piece) else sound).append(file)
        finally:
            if sound:
                note_verified(sound[0].path.parent, {file.path.name: file.known_by for file in sound})
            if damaged:
                self._remove(damaged)
        return self.problem

    def _remove(self, damaged: Sequence[PackedFile]) -> None:
        for file in damaged:
            with suppress(OSError):
                file.remove()
        self.problem = self.problem or DamagedWeightsError(damaged)


def read_verified(folder: Path) -> dict[str, list[int]]:
    """Stamps of verified files by name; empty where nothing can be read."""
    return read_state(folder / VERIFIED_FILE)


def note_verified(folder: Path, stamps: dict[str, list[int]]) -> None:
    """Add stamps of verified files, where the folder can be written; other processes may add theirs."""
    with suppress(OSError), locked(folder / LOCK):
        write_whole(folder / VERIFIED_FILE, json.dumps(read_verified(folder) | stamps))
