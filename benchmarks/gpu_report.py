"""Rows of a measurement on a GPU, printed and kept as soon as they are known: what is cut short keeps what it had."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
ROWS = "rows.jsonl"


class Report:
    """Prints lines, and appends a row of JSON for each to `rows.jsonl` in a folder, if there is one."""

    def __init__(self, folder: Path | None = None) -> None:
        self.file = folder / ROWS if folder else None
        self.failed = False  # whether an attempt has
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def row(self, kind: str, text: str, **values: object) -> None:
        print(text, flush=True)
        if self.file:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, **values}, default=str) + "\n")

    def attempt(self, what: str, run: Callable[[], T]) -> T | None:
        """The result of `run`; None, and a row that says why, where it fails: what comes next may still work."""
        try:
            return run()
        except Exception as error:
            self.failed = True
            said = f"{type(error).__name__}: {error}"
            self.row("failed", f"FAILED {what}: {said[:300]}", what=what, error=said[:2000])
            return None
