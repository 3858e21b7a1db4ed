"""Write docs/cuda-kernels.md from kernels/cuda, the table of what is compiled, and reports of GPUs that ran it."""

import json
import re
from collections.abc import Iterable
from typing import Any

from localrun.backends.cuda.kernels import ARCHITECTURES, units
from localrun.backends.cuda.source import KERNELS
from localrun.backends.gpu.source import KernelTexts
from tools import ROOT

PAGE = ROOT / "docs" / "cuda-kernels.md"
REPORTS = ROOT / "benchmarks" / "results"
ARCHES = ", ".join(f"sm_{arch}" for arch in ARCHITECTURES)
HEAD = f"""# CUDA kernels

Every file is compiled for {ARCHES} and run on the
emulator by the tests; [cuda.md](cuda.md) says what that proves. A file is measured where a report of
`python -m benchmarks.gpu_check` lies in `benchmarks/results` and holds for the file and for all that it includes as
they are now: an edit takes the mark away.

This page is made by `python -m tools.write_cuda_docs`; change that, or the first lines of a kernel's file.

| file | | measured on |
|---|---|---|
"""
FIRST_SENTENCE = re.compile(r"\n((?://[^\n]*\n)+)")
INCLUDED = re.compile(r'^#line \d+ "([^"]+)"', re.MULTILINE)


def page(reports: Iterable[dict[str, Any]] | None = None) -> str:
    """The whole page. Reports are those of REPORTS if none are given."""
    found = list(saved() if reports is None else reports)
    files = dict.fromkeys(unit.file for unit in units())
    return HEAD + "".join(row(file, found, KERNELS) for file in files)


def row(file: str, reports: list[dict[str, Any]], kernels: KernelTexts) -> str:
    return f"| `{file}` | {purpose(file, kernels)} | {measured(file, reports, kernels)} |\n"


def purpose(file: str, kernels: KernelTexts = KERNELS) -> str:
    """The first sentence of a file's comment."""
    comment = FIRST_SENTENCE.search(kernels.source(file))
    assert comment, f"{file} does not say what it is for"
    words = re.sub(r"^// ?", "", comment[1], flags=re.MULTILINE)
    return re.split(r"[.:](?=\s|$)", " ".join(words.split()))[0]


def measured(file: str, reports: list[dict[str, Any]], kernels: KernelTexts = KERNELS) -> str:
    """The GPUs whose reports hold for the file as it is."""
    now = kernels.file_hashes()
    parts = set(INCLUDED.findall(kernels.source(file)))
    gpus = {str(r["gpu"]) for r in reports if not r["emulated"] and all(r["sources"].get(p) == now[p] for p in parts)}
    return ", ".join(sorted(gpus)) or "nothing yet"


def saved() -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(REPORTS.glob("*.json"))]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
