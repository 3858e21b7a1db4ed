"""What a start of the program does not spend time on."""

import subprocess
import sys

COUNTED = """
import atexit, gc, runpy, sys
atexit.register(lambda: print(gc.get_stats()[0]["collections"], file=sys.stderr))
sys.argv = ["localrun", "tokenize", "hello"]
runpy.run_module("localrun", run_name="__main__")
"""


def test_a_start_hardly_looks_for_garbage() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert int(done.stderr.splitlines()[-1]) < 30  # as Python comes it is hundreds
