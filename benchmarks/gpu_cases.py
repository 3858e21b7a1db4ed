"""Every case of the CUDA self-test on the GPU of this machine, and how far off it is: all of them, whatever fails.

    python -m benchmarks.gpu_cases [--save FOLDER]

First versions, a product in bulk with little memory left, then all kernels compiled side by side, the cases with their
errors beside what is allowed, intrinsics bit by bit, and weights of every type packed by the GPU as by the processor.
With LOCALRUN_EMULATE_CUDA=1 the cases run on the emulator, to try the script.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast
from unittest.mock import patch

import torch

from benchmarks.gpu_report import Report
from localrun.backends.cuda import availability
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.bulk import SPAN
from localrun.backends.cuda.bulk_linears import Multiplies
from localrun.backends.cuda.compiler import compile_kernels, nvrtc_version
from localrun.backends.cuda.kernels import units
from localrun.backends.cuda.self_test import CASES
from localrun.backends.cuda.self_test_intrinsics import DIGESTS, intrinsic_digest
from localrun.backends.cuda.source import source
from localrun.backends.gpu import synthetic
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.layouts import GpuLayout
from localrun.backends.gpu.weight_layouts import BY_TYPE
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.layouts import RowReader

LITTLE = 64 << 20  # bytes that are left free, of which a library's product may want some
PACKAGES = ("torch", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "platformdirs", "gguf", "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, help="append a row of JSON for each line to a file there")
    report, emulated = Report(parser.parse_args().save), availability.is_emulated()
    versions(report)
    device = CudaBackend().kernel_device
    product_in_little_memory(report, device)  # before the library has memory of its own
    if not emulated:
        compile_all(report, device)
    cases(report, device)
    if not emulated:
        intrinsics(report, device)
    packing(report, device)
    sys.exit(report.failed)


def versions(report: Report) -> None:
    """The GPU, its driver, and the packages that its kernels depend on."""
    for name in PACKAGES:
        found = report.attempt(name, lambda name=name: importlib.metadata.version(name))  # type: ignore[misc]
        report.row("package", f"{name:20} {found}", name=name, version=found)
    why = availability.why_unavailable()
    report.row("gpu", f"{availability.gpu()}\n{why or 'can be used'}", gpu=availability.gpu(), why=why)
    report.row("nvrtc", f"NVRTC {report.attempt('NVRTC', nvrtc_version)}")


def product_in_little_memory(report: Report, device: Device) -> None:
    """The product of a span that is read in bulk, with little memory left and with plenty: the same bits."""
    n_in, n_out = (256, 64) if device.torch_device.type == "cpu" else (4096, 14336)
    where = device.torch_device
    x, weights = (synthetic.between_ones(n, n_in).to(where).bfloat16() for n in (SPAN, n_out))
    found = [torch.zeros(SPAN, n_out, dtype=torch.bfloat16, device=where) for _ in range(2)]
    multiplies = cast("Multiplies", device)

    def same() -> bool:
        with little_memory(where):
            multiplies.bf16_product(x, weights, found[0])()
        multiplies.bf16_product(x, weights, found[1])()
        return torch.equal(*found)

    text = {True: "same bits", False: "OTHER BITS", None: "failed"}[report.attempt("a product in little memory", same)]
    report.row("product", f"in bulk with {LITTLE >> 20} MiB left: {text}", said=text)


@contextmanager
def little_memory(where: torch.device) -> Iterator[None]:
    """All of a GPU's free memory but LITTLE is taken."""
    if where.type != "cuda":
        yield
        return
    torch.cuda.empty_cache()
    taken = torch.empty(max(0, torch.cuda.mem_get_info(where)[0] - LITTLE), dtype=torch.uint8, device=where)
    try:
        yield
        torch.cuda.synchronize(where)
    finally:
        del taken
        torch.cuda.empty_cache()


def compile_all(report: Report, device: Device) -> None:
    """Every row of the table of kernels, as many at a time as there are cores."""
    started = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [
            (str(unit), pool.submit(compile_kernels, source(unit.file), unit.file, device.arch, unit.defines))
            for unit in units()
        ]
        wrong = sum(report.attempt(f"compiling {name}", job.result) is None for name, job in jobs)
    seconds = time.monotonic() - started
    text = f"{len(jobs)} units for sm_{device.arch} in {seconds:.1f} s, {wrong} failed"
    report.row("compiled", text, seconds=seconds, failed=wrong)


def cases(report: Report, device: Device) -> None:
    """The cases of the self-test, each with the errors of all that it compares."""
    for name, case in CASES.items():
        started = time.monotonic()
        with errors_told() as errors:
            wrong = report.attempt(name, lambda case=case: case(device))  # type: ignore[misc]
        verdict = "failed" if wrong is None else wrong or "ok"
        text = f"{name:22} {time.monotonic() - started:5.1f} s  {verdict}  [{', '.join(errors)}]"
        report.row("case", text, name=name, verdict=verdict, errors=errors)


@contextmanager
def errors_told() -> Iterator[list[str]]:
    """Errors of all comparisons that cases make meanwhile, also of those that pass."""
    told, plain = list[str](), synthetic.off

    def off(what: str, error: float, most: float) -> str:
        told.append(f"{what} {error:.1e} of {most:.0e}")
        return plain(what, error, most)

    users = [module for module in list(sys.modules.values()) if getattr(module, "off", None) is plain]
    with ExitStack() as stack:
        for module in users:
            stack.enter_context(patch.object(module, "off", off))
        yield told


def intrinsics(report: Report, device: Device) -> None:
    for name, digest in DIGESTS.items():
        found = report.attempt(name, lambda name=name: intrinsic_digest(device, name))  # type: ignore[misc]
        text = "same bits" if found == digest else f"OTHER BITS: {found}, not {digest}"
        report.row("intrinsic", f"{name:12} {text}", name=name, same=found == digest)


def packing(report: Report, device: Device) -> None:
    """Weights of every type, packed by the GPU as by the processor: the same bytes."""
    wrong = [qtype for qtype in BY_TYPE if not report.attempt(f"packing {qtype}", lambda q=qtype: same(q, device))]  # type: ignore[misc]
    text = f"packed on the GPU as on the processor: {len(BY_TYPE) - len(wrong)} types, not {wrong}"
    report.row("packing", text, other=wrong)


def same(qtype: str, device: Device) -> bool:
    """Whether a matrix of this type is packed to the same bytes on both."""
    blocks = synthetic.scattered(40, QUANT_TYPES[qtype].nbytes((768,)))
    raw = (blocks >> 7 & 0xFB).to(torch.uint8).numpy()  # without an fp16 that is no number
    there, here = (
        GpuLayout().pack(RowReader(qtype, 40, 768, lambda first, n: raw[first : first + n], where)).planes[0].cpu()
        for where in (device.torch_device, torch.device("cpu"))
    )
    return torch.equal(there, here)


if __name__ == "__main__":
    main()
