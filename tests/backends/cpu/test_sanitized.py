"""The tests of the CPU library's operations once more, on a build with address and undefined-behaviour sanitizers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.instruction_sets import MODEL_FLAGS, SUPPORT, build, models_amx, native

pytestmark = pytest.mark.slow

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -g1"
FILES = tuple(f"test_{name}.py" for name in ("layouts", "linear", "rows", "choose", "real_widths"))
EXPERTS = (
    "everybody_at_one_expert",
    "weights_residual_and_scale",
    "a_broken_row_breaks_no_other",
    "experts_have_biases_and_a_clamped_activation",
    "experts_without_gates",
    "experts_are_chosen_from_the_best_groups",
)
HEADS = ("every_head_is_a_linear_of_its_own", "heads_have_scales_biases_and_an_order_of_columns")
PARTS = (("experts", EXPERTS), ("latent", HEADS))
TESTS = (*FILES, "test_states.py", *(f"test_{part}.py::test_{name}" for part, names in PARTS for name in names))
# Each number of rows is as small as has its remainder: all of them once.
PLUGIN = """
import localrun.backends.cpu
localrun.backends.cpu.__path__.insert(0, {folder!r})
from localrun_testing import real_widths
real_widths.MOST_ROWS = 136
"""


def test_sanitizers_find_nothing_in_the_operations(tmp_path: Path) -> None:
    runtime = subprocess.run(["c++", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    asan = runtime.stdout.strip()
    if not Path(asan).is_absolute():
        pytest.skip("this compiler has no address sanitizer: windows and macos build theirs in another way")
    units = dict.fromkeys((native()[0], native()[-1], *(("amx",) if models_amx() else ())))
    folder = tmp_path / "build"
    build(folder, ";".join(units), flags=f"{FLAGS} {MODEL_FLAGS}" if models_amx() else FLAGS)
    (tmp_path / "sanitized_library.py").write_text(PLUGIN.format(folder=str(folder)))
    environment = {
        **os.environ,
        "LD_PRELOAD": asan,
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
        "PYTHONPATH": f"{tmp_path}:{SUPPORT}",
    }
    tests = [str(Path(__file__).with_name(name)) for name in TESTS]
    quick = ["-q", "-rs", "-n", "2", "-m", "not slow", "-p", "sanitized_library", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *quick, *tests]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line for line in skipped if not line.endswith("is another instruction set")] == []
