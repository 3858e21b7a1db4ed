"""Everything that is compiled for a GPU: one row a file and set of macros.

The tests compile each row for every architecture, and benchmarks/cuda_compile.py says how long that takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)  # Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50


@dataclass(frozen=True, slots=True)
class Unit:
    """A file of kernels/cuda and the macros it is compiled with; `what` says in a word what they stand for."""

    file: str
    what: str = ""
    defines: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file} {self.what}".strip()


def units() -> tuple[Unit, ...]:
    """All of them, in the order of their files' names."""
    return (Unit("intrinsics.cu"),)
