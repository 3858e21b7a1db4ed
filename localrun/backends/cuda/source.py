"""The text of a kernel file with our own includes in their places: compilers get one text and no include path."""

from __future__ import annotations

import re
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
    return inlined((folder() / file).read_text("utf-8"), file)


def inlined(text: str, name: str) -> str:
    """`text` of the file `name` with the files of kernels/cuda that it includes."""
    done: set[str] = set()

    def expand(text: str, name: str) -> str:
        def file(match: re.Match[str]) -> str:
            included = match[1]
            if included == EMULATOR_HEADER:
                return match[0]
            after = text.count("\n", 0, match.end()) + 1
            if included in done:
                return "\n"
            done.add(included)
            inside = expand((folder() / included).read_text("utf-8"), included)
            return f'{inside}#line {after} "{name}"\n'

        return f'#line 1 "{name}"\n' + _INCLUDE.sub(file, text.replace("#pragma once\n", "\n"))

    return expand(text, name)
