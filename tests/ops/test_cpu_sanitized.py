"""The tests of the CPU library's operations once more, on a build with address and undefined-behaviour sanitizers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.instruction_sets import native

pytestmark = pytest.mark.slow

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -g1"
LEVEL = "-O1"  # the same checks as -O3, from a compiler that is done in a quarter of the time
FILES = ("test_cpu_layouts.py", "test_cpu_linear.py", "test_cpu_rows.py")
PLUGIN = "import localrun.ops\nlocalrun.ops.__path__.insert(0, {folder!r})\n"


def test_sanitizers_find_nothing_in_the_operations(tmp_path: Path) -> None:
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert cmake, "cmake is part of the dev extra"
    runtime = subprocess.run(["c++", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    asan = runtime.stdout.strip()
    if not Path(asan).is_absolute():
        pytest.skip("this compiler has no address sanitizer: windows and macos build theirs in another way")
    build = tmp_path / "build"
    sources = REPOSITORY / "kernels" / "cpu"
    units = f"{native()[0]};{native()[-1]}"
    options = [f"-DCMAKE_CXX_FLAGS={FLAGS}", f"-DCMAKE_CXX_FLAGS_RELEASE={LEVEL}", f"-DLOCALRUN_ISA_UNITS={units}"]
    subprocess.run([cmake, "-S", sources, "-B", build, *options], check=True, capture_output=True)
    subprocess.run([cmake, "--build", build, "-j2"], check=True, capture_output=True)
    (tmp_path / "sanitized_library.py").write_text(PLUGIN.format(folder=str(build)))
    environment = {
        **os.environ,
        "LD_PRELOAD": asan,
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
        "PYTHONPATH": str(tmp_path),
    }
    tests = [str(REPOSITORY / "tests" / "ops" / name) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "sanitized_library", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    assert "skipped" not in done.stdout
