"""The thread that writes packed weights, so that the next start maps them instead of packing.

It begins once the model is loaded, and works while its processor is otherwise idle. A process that ends sooner leaves
the finished files, and the next one continues with the rest.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from localrun.base.errors import DoesNotFitError
from localrun.base.processors import let_others_go_first
from localrun.ops.layouts import KeptMatrix
from localrun.storage.packed_file import PackedFile

PIECE_BYTES = 4 << 20  # written at once: file systems that have large pages make them of what comes in large pieces
CLOSE_SECONDS = 1.0  # that a process goes on writing when it could end

PackedFiles = Mapping[str, PackedFile]


class WeightWriter:
    """The matrices of one load, to be written.

    `files` returns their files; that may take as long as reading all weights, and raises OSError or DoesNotFitError
    where they cannot be stored. `found` are files that existed already, `missing` the others.
    """

    def __init__(
        self,
        matrices: Mapping[str, KeptMatrix],
        files: Callable[[], PackedFiles],
        found: Sequence[PackedFile] = (),
        missing: Sequence[PackedFile] = (),
    ) -> None:
        self.matrices, self._files, self.found, self.missing = matrices, files, found, missing
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._write, name="localrun-weights", daemon=True)

    def write(self) -> None:
        """Start to write the matrices that this load packed."""
        if any(matrix.packed is not None for matrix in self.matrices.values()):
            self.thread.start()

    def close(self) -> None:
        """Continue for CLOSE_SECONDS at most, and leave the rest to the next start."""
        if self.thread.is_alive() and threading.current_thread() is not self.thread:  # a finalizer may run anywhere
            self.thread.join(CLOSE_SECONDS)
        self._stopped.set()

    def _write(self) -> None:
        let_others_go_first()
        with suppress(OSError, DoesNotFitError, _Stopped):
            files = self._files()
            for name, matrix in self.matrices.items():
                if name in files and matrix.packed is not None:
                    files[name].write(partial(self._pieces, matrix.packed))
                matrix.packed = None

    def _pieces(self, packed: memoryview) -> Iterator[memoryview]:
        for start in range(0, packed.nbytes, PIECE_BYTES):
            if self._stopped.is_set():
                raise _Stopped
            yield packed[start : start + PIECE_BYTES]


class _Stopped(Exception):
    pass
