"""Figures of our kernels on the GPU of this machine, speed and exactness: one command, one block to paste.

    python -m benchmarks.gpu_check [--only kernels|models|decode] [--parts] [--anyway] [--save FOLDER]

Every figure stands beside what the same GPU copies and multiplies by torch in the same run. Each row is kept in
FOLDER/rows.jsonl as soon as it is known; the block of JSON at the end, which is written even where the run is cut
short, names the GPU, the compiler and the hash of every kernel file: a table in docs is made of such blocks.
`--parts` adds what a decode step is made of, kind by kind of launch, and `--only decode` measures that step of an 8B
alone. `--anyway` measures a GPU whose self-test fails. With LOCALRUN_EMULATE_CUDA=1 or LOCALRUN_EMULATE_MPS=1 a quick
run on the processor shows that the script works; its speeds mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks import gpu_kernels, gpu_models
from benchmarks.gpu_kernels import Timer, copy_gbps, matmul_tflops
from benchmarks.gpu_models import Shape
from benchmarks.gpu_parts import DecodeStep, decode_step
from benchmarks.gpu_platforms import Platform, platform
from benchmarks.gpu_report import Report

N_PROMPT, N_TOKENS = 2048, 64
BOTTLENECKS = 5  # kinds of launches that a step waits for longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("kernels", "models", "decode"))
    parser.add_argument("--parts", action="store_true", help="the launches of a decode step, kind by kind")
    parser.add_argument("--anyway", action="store_true", help="although the self-test fails")
    parser.add_argument("--save", type=Path, help="write the block to a file there, too, and each row at once")
    asked = parser.parse_args()
    try:
        found = platform(asked.anyway)
    except LookupError as error:
        sys.exit(str(error))
    check = Check(found, Report(asked.save))
    try:
        check.run(asked.only, asked.parts)
    finally:
        block = json.dumps(check.block, indent=1)
        print(f"\n```json\n{block}\n```")
        if asked.save:
            name = f"{check.block['date']}-{check.block['gpu'].lower().replace(' ', '-')}.json"
            (asked.save / name).write_text(block + "\n", "utf-8")
    sys.exit(check.report.failed)


@dataclass(frozen=True)
class Check:
    """A run on one platform; `block` has what is known so far."""

    platform: Platform
    report: Report

    @property
    def quick(self) -> bool:
        return self.platform.is_emulated

    @cached_property
    def timer(self) -> Timer:
        return Timer(self.platform, 1 if self.quick else 20)

    @cached_property
    def block(self) -> dict[str, Any]:
        backend = self.platform.backend
        return {
            "date": datetime.date.today().isoformat(),
            "gpu": backend.chip,
            "platform": self.platform.title,
            "arch": self.platform.generation(),
            "emulated": self.quick,
            **backend.versions(),
            "sources": self.platform.sources(),
        }

    def run(self, only: str | None, parts: bool) -> None:
        """Measure what is asked for; what fails is said, and the rest goes on."""
        self.limits()
        if only in (None, "kernels"):
            self.kernels()
        shapes = (gpu_models.TINY,) if self.quick else gpu_models.SHAPES
        mixtures = (gpu_models.TINY_MIXTURE,) if self.quick else gpu_models.MIXTURES
        if only in (None, "models"):
            for shape in (*shapes, *mixtures):
                self.report.attempt(shape.name, lambda shape=shape: self.model(shape))  # type: ignore[misc]
        if parts or only == "decode":
            self.report.attempt("a decode step", lambda: self.step(shapes[0]))

    def limits(self) -> None:
        copy = copy_gbps(self.platform, self.timer, 1 << 20 if self.quick else 1 << 30)
        multiply = matmul_tflops(self.platform, self.timer, 64 if self.quick else 8192)
        self.block.update(copy_gbps=copy, matmul_tflops=multiply)
        text = f"{self.block['gpu']}: copies {copy:.0f} GB/s, multiplies {multiply:.0f} TFLOP/s in bf16"
        self.report.row("limits", text, copy_gbps=copy, matmul_tflops=multiply)

    def kernels(self) -> None:
        measured = list[gpu_kernels.Measured]()
        self.block["kernels"] = list[dict[str, Any]]()
        for cases in gpu_kernels.CASES:
            for found in cases(self.platform, self.timer, self.quick):
                measured.append(found)
                self.block["kernels"].append(asdict(found))
                self.report.row("kernel", self.line(found), **asdict(found))
        self.block["bulk_pays"] = times = gpu_kernels.bulk_pays(measured)
        if times is not None:
            text = f"prompts in bulk: {times:.2f} times as fast as by the fused kernel; {verdict(self.platform, times)}"
            self.report.row("bulk", text, times=times)

    def line(self, found: gpu_kernels.Measured) -> str:
        return (
            f"{found.kernel:16} {found.layout:7} {found.shape:14} {found.rows:5} rows {found.microseconds:9.1f} µs"
            f" {found.gbps / self.block['copy_gbps']:6.1%} of copy"
            f" {found.tflops / self.block['matmul_tflops']:6.1%} of bf16  error {found.error:.1e}"
        )

    def model(self, shape: Shape) -> None:
        prompt, tokens = (96, 4) if self.quick else (N_PROMPT, N_TOKENS)
        one = self.platform
        given = (one.translator, one.device, shape, prompt, tokens, self.timer.wait, one.bulk_span)
        try:
            speed = gpu_models.measure(*given)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            self.report.row("model", f"{shape.name}: no room on this GPU", name=shape.name)
            return
        self.block.setdefault("models", {})[shape.name] = asdict(speed)
        text = (
            f"{shape.name:7} {shape.types[1]}: decode {speed.decode_tps:.1f} tok/s,"
            f" {speed.read_gbps / self.block['copy_gbps']:.0%} of copy; "
            f"prefill {prompt} {speed.prefill_tps:.0f} tok/s,"
            f" {speed.tflops / self.block['matmul_tflops']:.0%} of bf16; "
            f"{gpu_models.SIDE_BY_SIDE} texts {speed.batch_tps:.1f} tok/s, "
            f"{speed.batch_tps / speed.decode_tps:.1f} times one"
        )
        self.report.row("model", text, name=shape.name, **asdict(speed))

    def step(self, shape: Shape) -> None:
        """A decode step, and the kinds of launches it is made of; those it waits for longest are named at the end."""
        found = decode_step(self.platform, self.timer, shape, *((96, 2) if self.quick else (1000, 48)))
        self.block["decode"] = {"model": shape.name, **asdict(found)}
        for line in step_lines(shape.name, found, self.block["copy_gbps"]):
            self.report.row("decode", line)


def step_lines(name: str, found: DecodeStep, copy_gbps: float) -> list[str]:
    """A step in words: as it is, in one graph, its parts, and the bottlenecks by name."""
    floor = found.weight_bytes / copy_gbps / 1e9
    total = sum(part.seconds for part in found.parts)
    lines = [
        f"{name}: {1e3 * found.seconds:.2f} ms a token, {floor / found.seconds:.0%} of copy;"
        f" {1e3 * found.asked:.2f} ms of that until the host has asked for all {found.n_launches} launches;"
        f" {1e3 * found.graph:.2f} ms in one graph"
    ]
    for part in found.parts:
        gbps = part.weight_bytes / part.seconds / 1e9
        read = f"{gbps:6.0f} GB/s {gbps / copy_gbps:4.0%} of copy" if part.weight_bytes else ""
        took = f"{1e3 * part.seconds:7.3f} ms {part.seconds / total:4.0%}"
        lines.append(f"  {took} {part.count:4} × {1e6 * part.seconds / part.count:6.1f} µs  {part.kind}  {read}")
    waits = {"asking for launches": found.asked, "beyond the graph": found.seconds - found.graph}
    lost = {part.kind: part.seconds - part.weight_bytes / copy_gbps / 1e9 for part in found.parts} | waits
    worst = sorted(lost, key=lambda kind: -lost[kind])[:BOTTLENECKS]
    named = ", ".join(f"{kind} ({1e3 * lost[kind]:.2f} ms)" for kind in worst)
    return [*lines, f"bottlenecks, in ms beyond reading the weights: {named}"]


def verdict(platform: Platform, times: float) -> str:
    """Whether what is done on this GPU is what is faster."""
    in_bulk = platform.bulk_span > 0
    now = f"prompts are {'read' if in_bulk else 'not read'} in bulk on {platform.generation()}"
    return now if in_bulk == (times > 1) else f"{now}, and should be otherwise: PAYS in localrun/backends/cuda/bulk.py"


if __name__ == "__main__":
    main()
