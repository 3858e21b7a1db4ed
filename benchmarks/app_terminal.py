"""The app on a terminal of its own, for measurements: keys go in, what it draws is read and dropped."""

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
import time
from pathlib import Path

from benchmarks import ROOT
from benchmarks.installed import installed


class AppTerminal:
    """`localrun` with `arguments`, and `home` as its folder, on 120×40 cells. Linux only."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.environ = environ(home)
        self.seen = b""  # the beginning of what it drew
        self.n_bytes = 0  # that it drew in all
        command = [sys.executable, "-m", "localrun", *arguments]
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, self.environ)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        threading.Thread(target=self._read, daemon=True).start()

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait_for(self, words: bytes, seconds: float = 30.0) -> None:
        """Until these words were drawn, as far as they are in the first 64 KiB."""
        give_up = time.monotonic() + seconds
        while words not in self.seen:
            if time.monotonic() > give_up:
                raise SystemExit(f"the app did not show {words.decode()!r}")
            time.sleep(0.002)

    def processor_seconds(self) -> float:
        """Of all threads of the app; its engine is another process."""
        return time.clock_gettime((~self.pid << 3) | 2)  # how Linux numbers the clocks of processes

    def kill(self) -> float:
        """End it; gives its processor seconds."""
        os.kill(self.pid, 9)
        used = os.wait4(self.pid, 0)[2]
        os.close(self._terminal)
        return used.ru_utime + used.ru_stime

    def _read(self) -> None:
        try:
            while data := os.read(self._terminal, 1 << 16):
                self.n_bytes += len(data)
                if len(self.seen) < 1 << 16:
                    self.seen += data
        except OSError:  # it has ended
            return


def environ(home: Path) -> dict[str, str]:
    """For a localrun of this checkout with a folder of its own."""
    paths = f"{ROOT}:{ROOT / 'tui'}"
    return {**installed(), "LOCALRUN_HOME": str(home), "TERM": "xterm-256color", "PYTHONPATH": paths}
