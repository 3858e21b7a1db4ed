"""Builds llama.cpp as strong as each instruction set lets it be, for the benchmarks that measure beside it.

    pip download --no-binary :all: --no-deps llama-cpp-python==0.3.36 && tar xzf llama_cpp_python-0.3.36.tar.gz
    python benchmarks/peers.py llama_cpp_python-0.3.36 --folder /tmp/peers [--sets avx2 avxvnni avx512 amx]
    LLAMA_CPP_LIB_PATH=/tmp/peers/avx2/bin LOCALRUN_ISA=avx2 python benchmarks/vs_llama_cpp.py --folder /tmp/models

Each folder gets libraries for that one instruction set, built by Clang, whose code is the faster; llama-cpp-python of
the same version loads them from where LLAMA_CPP_LIB_PATH says. What is built already is not built again.
"""

import argparse
import os
import subprocess
from pathlib import Path

AVX2 = ("AVX", "AVX2", "FMA", "F16C", "BMI2")
AVX512 = (*AVX2, "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16")
SETS = {
    "avx2": AVX2,
    "avxvnni": (*AVX2, "AVX_VNNI"),
    "avx512": AVX512,
    "amx": (*AVX512, "AMX_TILE", "AMX_INT8", "AMX_BF16"),
}
ALL = sorted({flag for flags in SETS.values() for flag in flags})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="of llama-cpp-python, unpacked, with its llama.cpp under vendor")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--compiler", default="clang", help="its C compiler; the one of C++ has ++ before any version")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    for name in asked.sets:
        print(build(asked.source, asked.folder / name, SETS[name], asked.compiler, asked.jobs), flush=True)


def build(source: Path, folder: Path, flags: tuple[str, ...], compiler: str, jobs: int) -> Path:
    """The folder of the libraries, after building what is missing."""
    kind, dash, version = compiler.partition("-")
    chosen = [f"-DGGML_{flag}={'ON' if flag in flags else 'OFF'}" for flag in ALL]
    left_out = [f"-DLLAMA_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "TOOLS", "SERVER")]
    configure = [
        "cmake", "-S", source / "vendor" / "llama.cpp", "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_CXX_COMPILER={kind}++{dash}{version}", "-DBUILD_SHARED_LIBS=ON",
        "-DGGML_NATIVE=OFF", "-DGGML_LLAMAFILE=ON", "-DLLAMA_CURL=OFF", *chosen, *left_out,
    ]  # fmt: skip
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, f"-j{jobs}", "--target", "llama"], check=True)
    return folder / "bin"


if __name__ == "__main__":
    main()
