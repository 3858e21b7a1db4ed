"""What an installed localrun has to do, without a checkout or a network: `python try_wheel.py native`, or `pure`.

cibuildwheel runs it in the environment of each new wheel, and the slow tests in theirs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def localrun(folder: str, *arguments: str) -> Any:
    """The JSON that a command prints."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LOCALRUN_", "PYTHONPATH"))}
    done = subprocess.run(
        [sys.executable, "-m", "localrun", *arguments],
        cwd=folder,
        env={**inherited, "HF_HUB_OFFLINE": "1", "LOCALRUN_HOME": folder},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main(kind: str) -> None:
    here = Path(sys.prefix).resolve()
    with tempfile.TemporaryDirectory() as folder:
        assert Path(localrun(folder, "show", "--json")["path"]).resolve().is_relative_to(here)
        answer = localrun(folder, "run", "--json", "--max-tokens", "8", "--seed", "1", "Hello!")
        assert answer["completion_tokens"] > 0, answer
        assert localrun(folder, "tokenize", "Hello!")
        cpu = localrun(folder, "doctor", "--json")["backends"]["cpu"]
    if kind == "native":
        assert Path(cpu["library"]).resolve().is_relative_to(here), cpu
    else:
        assert cpu["library"] is None, cpu
        assert "without the native library" in cpu["reason"], cpu
    print(f"it answers: {answer['text']!r}, {cpu['summary'] or cpu['reason']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
