"""Opening bad files in another process, where a crash, a hang and the memory that a file takes are seen."""

import json
import resource
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from localrun_testing.waiting import PATIENCE

MAX_SECONDS = 1.0  # of CPU: the machine may be busy with other tests
MAX_WAIT = 60
MAX_RSS_GROWTH = 300 << 20

_CHILD = """
import json, resource, sys, time
from localrun.base.errors import LocalrunError
from localrun.formats.detect import open_model_file
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
openers = {"any": open_model_file, "gguf": open_gguf, "safetensors": open_safetensors}
rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
for line in sys.stdin:
    opener, path = line.rstrip("\\n").split(" ", 1)
    start, before = time.process_time(), rss()
    try:
        code, message, hint = "opened", repr(openers[opener](path).warnings), ""
    except LocalrunError as error:
        code, message, hint = getattr(error, "code", type(error).__name__), error.message, error.hint
    except BaseException as error:
        code, message, hint = "foreign " + type(error).__name__, str(error), ""
    print(json.dumps([code, message, hint, time.process_time() - start, rss() - before]), flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    """`code` is that of the ModelFileError, "opened", the name of another LocalrunError, or "foreign …"."""

    code: str
    message: str
    hint: str
    seconds: float
    rss_growth: int


class FileOpener:
    """One process that opens file after file, with a gigabyte of memory and a minute of CPU."""

    def __init__(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

        command = [sys.executable, "-c", _CHILD]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=limit
        )

    def open(self, path: Path, opener: str = "gguf") -> Outcome:
        assert self._child.stdin
        assert self._child.stdout
        print(opener, path, file=self._child.stdin, flush=True)
        assert select.select([self._child.stdout], [], [], MAX_WAIT)[0], f"opening {path} hangs"
        answer = self._child.stdout.readline()
        assert answer, f"the process died with {self._child.wait()}"
        return Outcome(*json.loads(answer))

    def assert_refused(self, code: str, path: Path, opener: str = "gguf") -> None:
        """The file is a ModelFileError of that code: soon, without memory, in one clean line with something to try."""
        outcome = self.open(path, opener)
        assert outcome.code == code, outcome
        assert outcome.seconds < MAX_SECONDS
        assert outcome.rss_growth < MAX_RSS_GROWTH
        assert outcome.message.isprintable(), "control characters of the file got into the message"
        assert outcome.message.startswith(str(path.parent)), "the message does not say which file"
        assert len(outcome.message) < 500 + len(str(path))
        assert outcome.hint

    def close(self) -> None:
        assert self._child.stdin
        self._child.stdin.close()
        assert self._child.wait(PATIENCE) == 0
