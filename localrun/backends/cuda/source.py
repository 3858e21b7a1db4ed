"""The text of a kernel file with our own includes in their places: compilers get one text and no include path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from localrun.base.resources import resource

_INCLUDE = re.compile(r'^#include "([\w.]+)"\n', re.MULTILINE)
EMULATOR_HEADER = "cuda.h"  # of kernels/emulator, where ptx.cuh is not


def folder() -> Path:
    """kernels/cuda, of the checkout or the installed package."""
    return resource("kernels/cuda/device.cuh").parent


@cache
def source(file: str) -> str:
    """kernels/cuda/`file` with every file it includes in it once; #line lets messages name the file they mean.

    FileNotFoundError without one of them.
    """
    return with_includes(file, {})


@cache
def file_hashes() -> dict[str, str]:
    """Of every file of kernels/cuda, by name: what was measured or tried holds for these texts."""
    files = sorted(path for path in folder().iterdir() if path.suffix in (".cu", ".cuh"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files}


def kernels_hash() -> str:
    """Of all of them together."""
    return hashlib.sha256(repr(file_hashes()).encode()).hexdigest()[:16]


def with_includes(file: str, replace: Mapping[str, str], where: Path | None = None) -> str:
    """`source`, with other texts for some files; `where`: another folder of kernels."""
    where = where or folder()
    done: set[str] = set()

    def text(name: str) -> str:
        done.add(name)
        own = replace[name] if name in replace else (where / name).read_text("utf-8")
        own = own.replace("#pragma once\n", "\n")

        def include(match: re.Match[str]) -> str:
            if match[1] == EMULATOR_HEADER:
                return match[0]
            after = own.count("\n", 0, match.end()) + 1
            return "\n" if match[1] in done else f'{text(match[1])}#line {after} "{name}"\n'

        return f'#line 1 "{name}"\n{_INCLUDE.sub(include, own)}'

    return text(file)
