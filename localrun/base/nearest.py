"""Suggestions for a word that is none we know."""

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.7  # of difflib's ratio: one slip in four letters


def nearest(typed: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that begin with `typed`, else those that have it in them, else those spelled much like it."""
    known, wanted = {name.lower(): name for name in names}, typed.lower()
    begins = [name for key, name in known.items() if wanted and key.startswith(wanted)]
    contains = [name for key, name in known.items() if len(wanted) > 2 and wanted in key]
    return (begins or contains or [known[key] for key in get_close_matches(wanted, known, n=most, cutoff=_ALIKE)])[
        :most
    ]


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """The question as a hint has it; empty where nothing is near."""
    near = nearest(typed, names)
    return f"did you mean {' or '.join(near)}?" if near else ""
