"""What a clang says of Metal kernels: address spaces, vectors and grammar, which the emulator does not see."""

import re
import shutil
import subprocess
from functools import cache

from localrun_testing import REPOSITORY

_EMULATOR = REPOSITORY / "kernels" / "emulator"
_VARIABLE = re.compile(r"\bthreadgroup(?=\s+(?:const\s+)?[\w:]+(?:\s*<[^<>;]*>)?\s+\w+\s*(?:\[[^\]]*\]\s*)*;)")
_FLAGS = [
    "-x",
    "c++",
    "-std=c++14",
    "-fsyntax-only",
    "-Werror",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-attributes",
    "-Wno-ignored-attributes",
    "-Wno-user-defined-literals",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Wno-undefined-inline",
    "-Wno-undefined-internal",
    "-Wno-sign-compare",
    "-Wno-unknown-pragmas",
    "-Wno-unused-const-variable",
]
_NUMBERS = r"(?:bool|char|uchar|short|ushort|int|uint|long|ulong|half|bfloat|float)[234]?|u?int(?:8|16|32|64)_t|void"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


@cache
def clang() -> str | None:
    """The newest clang++ there is."""
    return next(filter(None, map(shutil.which, [f"clang++-{n}" for n in range(22, 15, -1)] + ["clang++"])), None)


def lint(text: str) -> str:
    """What it says; empty: nothing. `text`: a whole one, with its includes and macros in it."""
    return "\n".join(_without_address_space(text)) or _from_clang(text)


def _without_address_space(text: str) -> list[str]:
    """Pointers and references that name none: Metal refuses them, clang takes them for some of their own."""
    text = _COMMENT.sub("", text)
    own = re.findall(r"\b(?:struct|union|typename|class)\s+(\w+)", text)
    declared = re.compile(
        rf"(?:[(,;{{}}>]|^)\s*((?:const\s+)?(?:{'|'.join([_NUMBERS, *own])})(?:\s+const)?\s*[*&]\s*\w+)", re.M
    )
    return [f"error: no address space: {found}" for found in declared.findall(text)]


def _from_clang(text: str) -> str:
    command = clang()
    assert command, "the lint needs clang++ 16 or later"
    text = text.replace("#include <metal_stdlib>", '#include "metal_lint.h"')
    text = _VARIABLE.sub("extern threadgroup", text)
    done = subprocess.run(
        [command, *_FLAGS, f"-I{_EMULATOR}", "-"], input=text, capture_output=True, text=True, timeout=60
    )
    return done.stderr
