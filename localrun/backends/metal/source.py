"""The texts of kernels/metal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localrun.backends.cuda.source import with_includes
from localrun.base.resources import resource


def folder() -> Path:
    """kernels/metal, of the checkout or the installed package."""
    return resource("kernels/metal/device.metal").parent


def text_of(file: str, defines: Mapping[str, int], replace: Mapping[str, str]) -> str:
    """kernels/metal/`file` with every file it includes, and macros before it: what compile_shader is given.

    replace: texts of files other than those of the folder. FileNotFoundError without one of them.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in sorted(defines.items()))
    return macros + with_includes(file, replace, folder())
