"""Builds the peers of each instruction set as strong as it lets them be; what lies there already is not built again.

    python -m benchmarks.build_peers avx2 --folder /tmp/peers [--peers llama.cpp ik_llama.cpp openvino]
                                          [--compiler clang-16] [--jobs N] [--server]

llama.cpp and ik_llama.cpp get libraries for that one set, built by Clang, whose code is the faster, and with OpenMP
where the compiler has it (Debian: libomp-16-dev). OpenVINO GenAI comes from PyPI, into an environment of its own, and
picks its instructions itself. Sources are downloaded into FOLDER/src unless they lie there. --server builds llama.cpp's
server, too, for `benchmarks/server_beside.py`.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LLAMA_CPP = "llama_cpp_python-0.3.36"
IK = ("https://github.com/ikawrakow/ik_llama.cpp", "8337e4cd3861406fc04e0854b1409cd1b027fbc9")
OPENVINO = ("openvino-genai==2026.4.0.0", "openvino==2026.4.0", "psutil")
AVX2 = ("AVX", "AVX2", "FMA", "F16C", "BMI2")
AVX512 = (*AVX2, "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16")
LEVEL_4 = "-march=x86-64-v4 -mavx512vbmi -mavx512vnni -mavx512bf16"


@dataclass(frozen=True)
class InstructionSet:
    ggml: tuple[str, ...]  # options of llama.cpp that are on
    machine: str  # what tells a compiler the same


SETS = {
    "avx2": InstructionSet(AVX2, "-march=x86-64-v3"),
    "avxvnni": InstructionSet((*AVX2, "AVX_VNNI"), "-march=x86-64-v3 -mavxvnni"),
    "avx512": InstructionSet(AVX512, LEVEL_4),
    "amx": InstructionSet((*AVX512, "AMX_TILE", "AMX_INT8", "AMX_BF16"), f"{LEVEL_4} -mamx-tile -mamx-int8 -mamx-bf16"),
}
OPTIONS = sorted({option for one in SETS.values() for option in one.ggml})
PEERS = ("llama.cpp", "ik_llama.cpp", "openvino")


@dataclass(frozen=True)
class Builder:
    folder: Path
    compiler: str
    jobs: int

    def build(self, peer: str, isa: str) -> Path:
        """What starts the peer: the folder of llama.cpp's libraries, a library for ik_llama.cpp, or a Python."""
        if peer == "llama.cpp":
            return self.llama_cpp(isa)
        return self.ik_llama_cpp(isa) if peer == "ik_llama.cpp" else self.openvino()

    def llama_cpp(self, isa: str) -> Path:
        return self.of_llama_cpp(isa, "llama", "libllama.so").parent

    def llama_server(self, isa: str) -> Path:
        return self.of_llama_cpp(isa, "llama-server", "llama-server")

    def of_llama_cpp(self, isa: str, wanted: str, file: str) -> Path:
        """What CMake calls `wanted`, and writes to `file`."""
        target = self.folder / "llama.cpp" / isa
        if not (target / "bin" / file).exists():
            self.cmake(self.llama_cpp_source() / "vendor" / "llama.cpp", target, llama_cpp_options(isa), wanted)
        return target / "bin" / file

    def ik_llama_cpp(self, isa: str) -> Path:
        target, source = self.folder / "ik_llama.cpp" / isa, self.ik_source()
        if not (target / "src" / "libllama.so").exists():
            self.cmake(source, target, ik_options(isa), "llama")
        library = target / "libik_peer.so"
        places = [target / "src", target / "ggml" / "src"]
        run(
            self.compiler, "-O2", "-shared", "-fPIC", f"-I{source / 'include'}", f"-I{source / 'ggml' / 'include'}",
            Path(__file__).with_name("ik_peer.c"), *(f"-L{place}" for place in places), "-lllama", "-lggml",
            *(f"-Wl,-rpath,{place}" for place in places), "-o", library,
        )  # fmt: skip
        return library

    def openvino(self) -> Path:
        python = self.folder / "openvino" / "bin" / "python"
        if not python.exists():
            run(sys.executable, "-m", "venv", self.folder / "openvino")
            run(python, "-m", "pip", "install", "--quiet", *OPENVINO)
        return python

    def cmake(self, source: Path, target: Path, options: list[str], wanted: str) -> None:
        kind, dash, version = self.compiler.partition("-")
        compilers = [f"-DCMAKE_C_COMPILER={self.compiler}", f"-DCMAKE_CXX_COMPILER={kind}++{dash}{version}"]
        common = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DGGML_NATIVE=OFF"]
        run("cmake", "-S", source, "-B", target, *compilers, *common, *options)
        run("cmake", "--build", target, f"-j{self.jobs}", "--target", wanted)

    def llama_cpp_source(self) -> Path:
        place = self.folder / "src" / LLAMA_CPP
        if not place.exists():
            name, _, version = LLAMA_CPP.rpartition("-")
            wanted = ("--no-binary", name, "--no-deps", f"{name}=={version}")
            run(sys.executable, "-m", "pip", "download", *wanted, "--dest", place.parent)
            run("tar", "xzf", f"{place}.tar.gz", "-C", place.parent)
        return place

    def ik_source(self) -> Path:
        place = self.folder / "src" / "ik_llama.cpp"
        if not place.exists():
            address, commit = IK
            run("git", "clone", address, place)
            run("git", "-C", place, "checkout", commit)
        return place


def llama_cpp_options(isa: str) -> list[str]:
    chosen = [f"-DGGML_{option}={'ON' if option in SETS[isa].ggml else 'OFF'}" for option in OPTIONS]
    left_out = [f"-DLLAMA_{part}=OFF" for part in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_APP", "USE_PREBUILT_UI")]
    server = [f"-DLLAMA_BUILD_{part}=ON" for part in ("TOOLS", "SERVER")]  # made when it is asked for
    return ["-DGGML_LLAMAFILE=ON", *chosen, *server, *left_out]


def ik_options(isa: str) -> list[str]:
    """By the compiler's flags: its own AVX512 leaves VL and DQ out, without which its best kernels are not compiled."""
    flags = [f"-DCMAKE_{language}_FLAGS={SETS[isa].machine}" for language in ("C", "CXX")]
    left_out = [f"-DLLAMA_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "SERVER")]
    return [*flags, *left_out, "-DGGML_IQK_FA_ALL_QUANTS=OFF"]  # f16 and q8 caches are there all the same


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("isa", choices=SETS)
    parser.add_argument("--folder", type=Path, required=True, help="of the sources and what is built")
    parser.add_argument("--peers", nargs="+", default=["llama.cpp", "ik_llama.cpp"], choices=PEERS)
    parser.add_argument("--compiler", default="clang", help="its C compiler; the one of C++ has ++ before any version")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--server", action="store_true", help="build llama-server, too")
    asked = parser.parse_args()
    builder = Builder(asked.folder.resolve(), asked.compiler, asked.jobs)
    for peer in asked.peers:
        print(peer, builder.build(peer, asked.isa), flush=True)
    if asked.server:
        print("llama-server", builder.llama_server(asked.isa), flush=True)


if __name__ == "__main__":
    main()
