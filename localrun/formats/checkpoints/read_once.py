"""Parts of a matrix that several runs of its rows need as a whole, such as its scales: read once for all of them."""

from collections.abc import Callable
from dataclasses import field
from threading import Lock
from typing import Generic, TypeVar, cast

from localrun.base.dataclass import dataclass

T = TypeVar("T")
_MOST_KEPT = 4  # loading reads rows of one or two matrices at a time


@dataclass(slots=True)
class _Kept(Generic[T]):
    rows_left: int
    lock: Lock = field(default_factory=Lock)
    found: T | None = None


class ReadOnce:
    """Parts of the matrices of a folder that are being read, by name.

    Each is kept until all rows of its matrix were requested, or until others replaced it. Any thread may ask.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[object, _Kept[object]] = {}

    def get(self, name: object, total_rows: int, n_rows: int, read: Callable[[], T]) -> T:
        """Find the part of a matrix of `total_rows`, for `n_rows` of them."""
        with self._lock:
            kept = self._kept.pop(name, None) or _Kept(total_rows)
            kept.rows_left -= n_rows
            if kept.rows_left > 0:
                self._kept[name] = kept
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        with kept.lock:
            if kept.found is None:
                kept.found = read()
            return cast(T, kept.found)
