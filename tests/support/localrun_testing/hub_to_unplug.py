"""A handle on localrun_testing.hub_process: a fake hub in a process of its own, which obeys."""

import os
import subprocess
import sys
from pathlib import Path


class HubProcess:
    """A hub that can be unplugged, see localrun_testing.hub_process."""

    def __init__(self, model: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "localrun_testing.hub_process", str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.url = self._answer()

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)

    def sent(self) -> int:
        """Bytes of models that left it."""
        self.tell("sent")
        return int(self._answer())

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
