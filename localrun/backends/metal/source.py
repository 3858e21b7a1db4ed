"""The texts of kernels/metal."""

from __future__ import annotations

from collections.abc import Mapping

from localrun.backends.gpu.source import KernelTexts

KERNELS = KernelTexts("kernels/metal/device.metal", (".metal",))


def text_of(file: str, defines: Mapping[str, int], replace: Mapping[str, str]) -> str:
    """kernels/metal/`file` with every file it includes, and macros before it: what compile_shader is given.

    replace: texts of files other than those of the folder. FileNotFoundError without one of them.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in sorted(defines.items()))
    return macros + KERNELS.with_includes(file, replace)
