"""A GPU stands beside a kernel for as long as its report holds for the kernel's text and all it includes."""

from typing import Any

from localrun.backends.cuda.source import file_hashes
from localrun.backends.gpu.validated_gpus import MEASURED, proven
from tools.write_cuda_docs import measured, page, purpose, saved


def report(gpu: str, *, emulated: bool = False, **changed: str) -> dict[str, Any]:
    names = {name.replace(".", "_"): name for name in file_hashes()}
    return {"gpu": gpu, "emulated": emulated, "sources": file_hashes() | {names[n]: h for n, h in changed.items()}}


def test_a_report_holds_until_the_file_or_what_it_includes_changes() -> None:
    reports = [report("B", norm_cu="before"), report("A"), report("A"), report("C", emulated=True)]
    assert measured("norm.cu", reports) == "A"
    assert measured("linear.cu", reports) == "A, B"
    assert measured("linear.cu", [report("A", device_cuh="before")]) == "nothing yet"


def test_the_program_knows_which_gpus_were_measured() -> None:
    """And doctor says it of no other."""
    held = {measured(file, saved()) for file in ("norm.cu", "linear.cu")} - {"nothing yet"}
    assert set(MEASURED) == {gpu for gpus in held for gpu in gpus.split(", ")}
    assert "never measured" in proven("a GPU of tomorrow")


def test_every_file_says_what_it_is_for() -> None:
    assert purpose("norm.cu") == "RMS norm, and rows as the int8 tensor cores read them"
    assert "| `norm.cu` | RMS norm, and rows as the int8 tensor cores read them | A |" in page([report("A")])
