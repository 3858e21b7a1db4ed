"""Write docs/metal-kernels.md from kernels/metal and reports of Macs that ran it."""

from collections.abc import Iterable
from typing import Any

from localrun.backends.metal.source import KERNELS
from tools import ROOT
from tools.write_cuda_docs import row, saved

PAGE = ROOT / "docs" / "metal-kernels.md"
HEAD = """# Metal kernels

Every file is run on the emulator and held against Metal's address spaces by the tests; [metal.md](metal.md) says what
that proves. A file is measured where a report of `python -m benchmarks.gpu_check` lies in `benchmarks/results` and
holds for the file and for all that it includes as they are now: an edit takes the mark away.

This page is made by `python -m tools.write_metal_docs`; change that, or the first lines of a kernel's file.

| file | | measured on |
|---|---|---|
"""


def page(reports: Iterable[dict[str, Any]] | None = None) -> str:
    """The whole page. Reports are those that are saved if none are given."""
    found = list(saved() if reports is None else reports)
    texts = {path.name: path.read_text("utf-8") for path in sorted(KERNELS.folder().glob("*.metal"))}
    return HEAD + "".join(row(name, found, KERNELS) for name, text in texts.items() if "kernel void" in text)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
