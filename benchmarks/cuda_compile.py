"""How long NVRTC takes for the CUDA kernels, and what they need of a GPU. No GPU is needed.

    python -m benchmarks.cuda_compile [--arch 90] [--what q4_k,q6_k,128] [--threads 4] [--needs]

--what: only rows that say one of these words, and those that every model needs. --needs: registers, shared memory and
the instructions that count, of each kernel. Cold: compiled one after the other, in seconds of a core, and side by side,
as a GPU's device does, in seconds. Warm: read from the cache on disk.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.kv_quality import machine
from localrun.backends.cuda.compiler import compile_kernels, nvrtc_version
from localrun.backends.cuda.kernels import Unit, units
from localrun.backends.cuda.source import source

SHOWN = ("IMMA", "HMMA", "IDP", "LDG.E.128", "LDG.E.64", "LDG.E.U16", "LDGSTS", "LDSM", "FFMA", "SHFL", "BAR")


def compiled(unit: Unit, arch: int, *, keep: bool) -> tuple[float, bytes]:
    """Seconds of a core, and the machine code."""
    start = time.process_time()
    code = bytes(compile_kernels(source(unit.file), unit.file, arch, unit.defines, keep=keep).code)
    return time.process_time() - start, code


def print_needs(cubin: bytes) -> None:
    from localrun_testing.cubin import disassembled

    for name, kernel in disassembled(cubin).items():
        shown = ", ".join(f"{kernel.count(opcode)} {opcode}" for opcode in SHOWN if kernel.count(opcode))
        total = sum(kernel.instructions.values())
        print(f"    {name}: {kernel.registers} registers, {kernel.shared} B shared, {kernel.stack} B stack")
        print(f"        {total} instructions: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--what", default="")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--needs", action="store_true")
    options = parser.parse_args()
    wanted = set(filter(None, options.what.split(",")))
    chosen = [unit for unit in units() if not wanted or not unit.what or wanted & set(unit.what.split())]
    print(f"{machine()}; NVRTC {nvrtc_version()}, sm_{options.arch}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALRUN_HOME"] = home
        compiled(units()[0], options.arch, keep=False)  # loads the compiler
        cold = 0.0
        for unit in chosen:
            seconds, code = compiled(unit, options.arch, keep=False)
            cold += seconds
            print(f"{unit}: {seconds:.2f} s, {len(code):,} B")
            if options.needs:
                print_needs(code)
        start = time.perf_counter()
        with ThreadPoolExecutor(options.threads) as pool:
            list(pool.map(lambda unit: compiled(unit, options.arch, keep=True), chosen))
        beside = time.perf_counter() - start
        warm = sum(compiled(unit, options.arch, keep=True)[0] for unit in chosen)
    all_at_once = f"{beside:.2f} s with {options.threads} threads"
    print(f"{len(chosen)} rows: cold {cold:.2f} s of a core, {all_at_once}; warm {warm:.3f} s")


if __name__ == "__main__":
    main()
