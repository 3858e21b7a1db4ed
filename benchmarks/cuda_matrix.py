"""Every CUDA kernel compiled for every GPU: registers, shared memory, and spills, of which there should be none.

    python -m benchmarks.cuda_matrix ROWS.jsonl [--arch 75,90] [--file linear_mixed.cu,linear_gate.cu]

No GPU is needed. A row is in ROWS.jsonl as soon as it is known, and is not compiled again while its text stays the
same: stop it and start it again as you like. Prints a line for every kernel and a column for every architecture.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.cuda_compile import compiled
from benchmarks.kv_quality import machine
from localrun.backends.cuda.compiler import nvrtc_version
from localrun.backends.cuda.kernels import ARCHITECTURES, Unit, units
from localrun.backends.cuda.source import source

Row: TypeAlias = dict[str, Any]  # unit, arch, key, seconds, and of each kernel what cubin.Kernel has


def main() -> None:
    """Compile what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--arch", default=",".join(map(str, ARCHITECTURES)))
    parser.add_argument("--file", default="")
    asked = parser.parse_args()
    files = set(filter(None, asked.file.split(",")))
    archs = [int(arch) for arch in asked.arch.split(",")]
    wanted = [(unit, arch) for unit, arch in product(units(), archs) if not files or unit.file in files]
    known = {row["key"]: row for row in read(asked.rows)}
    with asked.rows.open("a") as out:
        for unit, arch in wanted:
            if (key := key_of(unit, arch)) not in known:
                known[key] = row = {"key": key, **needs_of(unit, arch)}
                print(json.dumps(row), file=out, flush=True)
    print(f"{machine()}; NVRTC {nvrtc_version()}")
    print("\n".join(table([known[key_of(unit, arch)] for unit, arch in wanted])))


def read(path: Path) -> Iterator[Row]:
    """Rows of earlier runs; the last line may be cut off."""
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.endswith("}}}"):
            yield json.loads(line)


def key_of(unit: Unit, arch: int) -> str:
    """Names what a row is made of."""
    made_of = source(unit.file), unit.file, sorted(unit.defines.items()), arch, nvrtc_version()
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


def needs_of(unit: Unit, arch: int) -> Row:
    """What each kernel of a unit needs, and seconds of a core. A thread without a stack has nowhere to spill to."""
    from localrun_testing.cubin import kernels

    seconds, code = compiled(unit, arch, keep=False)
    needs = {
        name: {
            "registers": kernel.registers,
            "stack": kernel.stack,
            "shared": kernel.shared,
            "threads": kernel.threads,
        }
        for name, kernel in kernels(code).items()
    }
    return {"unit": str(unit), "file": unit.file, "arch": arch, "seconds": round(seconds, 2), "kernels": needs}


def table(rows: Sequence[Row]) -> list[str]:
    """Of each kernel the most registers of a thread over all its forms, by architecture."""
    archs = sorted({row["arch"] for row in rows})
    lines = [
        f"| file | kernel | forms | threads | static shared, B | registers: {' | '.join(f'sm_{a}' for a in archs)} |",
        "|---" * (5 + len(archs)) + "|",
    ]
    for file, name in sorted({(row["file"], name) for row in rows for name in row["kernels"]}):
        of_one = [(row["arch"], row["kernels"][name]) for row in rows if row["file"] == file and name in row["kernels"]]
        most = {what: max(needs[what] for _, needs in of_one) for what in ("threads", "shared")}
        n_forms = max(sum(arch == each for each, _ in of_one) for arch in archs)
        registers = (max(needs["registers"] for each, needs in of_one if each == arch) for arch in archs)
        cells = (file, name, n_forms, most["threads"], most["shared"], *registers)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    spilled = [f"{row['unit']} sm_{row['arch']}" for row in rows if any(n["stack"] for n in row["kernels"].values())]
    n_kernels = sum(len(row["kernels"]) for row in rows)
    lines.append(f"\n{len(rows)} units, {n_kernels} kernels, {sum(row['seconds'] for row in rows):.0f} s of a core.")
    lines.append(f"Spilled: {', '.join(spilled) or 'none'}.")
    return lines


if __name__ == "__main__":
    main()
