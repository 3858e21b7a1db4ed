"""What our kernels reach on the GPU of this machine, and how exact they are: one command, one block to paste.

    python -m benchmarks.gpu_check [--only kernels|models] [--save FOLDER]

Every figure stands beside what the same GPU copies and multiplies by torch in the same run. The block of JSON at the
end names the GPU, the compiler and the hash of every kernel file: a table in docs is made of such blocks.
With LOCALRUN_EMULATE_CUDA=1 or LOCALRUN_EMULATE_MPS=1 a quick run on the processor shows that the script works; its
speeds mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import gpu_kernels, gpu_models
from benchmarks.gpu_kernels import Timer, copy_gbps, matmul_tflops
from benchmarks.gpu_platforms import Platform, platform

N_PROMPT, N_TOKENS = 2048, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("kernels", "models"))
    parser.add_argument("--save", type=Path, help="write the block to a file there, too")
    asked = parser.parse_args()
    try:
        found = platform()
    except LookupError as error:
        sys.exit(str(error))
    report = check(found, asked.only)
    block = json.dumps(report, indent=1)
    print(f"\n```json\n{block}\n```")
    if asked.save:
        name = f"{report['date']}-{report['gpu'].lower().replace(' ', '-')}.json"
        (asked.save / name).write_text(block + "\n", "utf-8")


def check(platform: Platform, only: str | None) -> dict[str, Any]:
    """Everything that is asked for, printed line by line -> the report."""
    backend, quick = platform.backend, platform.is_emulated
    timer = Timer(platform, 1 if quick else 20)
    copy = copy_gbps(platform, timer, 1 << 20 if quick else 1 << 30)
    multiply = matmul_tflops(platform, timer, 64 if quick else 8192)
    print(f"{backend.chip}: copies {copy:.0f} GB/s, multiplies {multiply:.0f} TFLOP/s in bf16")
    report: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "gpu": backend.chip,
        "platform": platform.title,
        "arch": platform.generation(),
        "emulated": quick,
        **backend.versions(),
        "copy_gbps": copy,
        "matmul_tflops": multiply,
        "sources": platform.sources(),
    }
    if only != "models":
        measured = [
            line(found, copy, multiply) for cases in gpu_kernels.CASES for found in cases(platform, timer, quick)
        ]
        report["kernels"] = [asdict(found) for found in measured]
        report["bulk_pays"] = times = gpu_kernels.bulk_pays(measured)
        if times is not None:
            print(f"prompts in bulk: {times:.2f} times as fast as by the fused kernel; {verdict(platform, times)}")
    if only != "kernels":
        report["models"] = {}
        shapes = (gpu_models.TINY,) if quick else gpu_models.SHAPES
        prompt, tokens = (96, 4) if quick else (N_PROMPT, N_TOKENS)
        for shape in shapes:
            of = (platform.translator, platform.device, shape, prompt, tokens, timer.wait, platform.bulk_span)
            speed = gpu_models.measure(*of)
            report["models"][shape.name] = asdict(speed)
            print(
                f"{shape.name:5} Q4_K_M: decode {speed.decode_tps:.1f} tok/s, {speed.read_gbps / copy:.0%} of copy; "
                f"prefill {prompt} {speed.prefill_tps:.0f} tok/s, {speed.tflops / multiply:.0%} of bf16; "
                f"{gpu_models.SIDE_BY_SIDE} texts {speed.batch_tps:.1f} tok/s, "
                f"{speed.batch_tps / speed.decode_tps:.1f} times one",
                flush=True,
            )
    return report


def verdict(platform: Platform, times: float) -> str:
    """Whether what is done on this GPU is what is faster."""
    in_bulk = platform.bulk_span > 0
    now = f"prompts are {'read' if in_bulk else 'not read'} in bulk on {platform.generation()}"
    return now if in_bulk == (times > 1) else f"{now}, and should be otherwise: PAYS in localrun/backends/cuda/bulk.py"


def line(found: gpu_kernels.Measured, copy: float, multiply: float) -> gpu_kernels.Measured:
    """Print one row."""
    print(
        f"{found.kernel:16} {found.layout:7} {found.shape:14} {found.rows:5} rows {found.microseconds:9.1f} µs"
        f" {found.gbps / copy:6.1%} of copy {found.tflops / multiply:6.1%} of bf16  error {found.error:.1e}",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
