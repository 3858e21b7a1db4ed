"""Packed weights that stay on disk for the next start, of models that memory holds: it maps them and packs nothing.

A thread writes them once the model is loaded, while nobody else wants its processor; a start that ends sooner leaves
what it got done, and the next goes on with the rest.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from localrun.backends.interface import Backend
from localrun.base.errors import DoesNotFitError
from localrun.base.paths import writable_folder
from localrun.base.processors import let_others_go_first, memory_nodes
from localrun.base.request import LoadOptions
from localrun.cache.packed_weights import PACKED_FOLDER, most_bytes
from localrun.engine.from_disk import packed_files_of
from localrun.engine.identity import Identity, known_identity
from localrun.engine.opened_model import OpenedModel
from localrun.fit.memory_plan import MemoryPlan
from localrun.formats.packed_file import KeptMatrix, PackedFile
from localrun.ops.layouts import Layout

LEAST_BYTES = 64 << 20  # of a model's matrices: fewer are packed before anybody waits for it
PIECE_BYTES = 4 << 20  # written at once: file systems that have large pages make them of what comes in large pieces
CLOSE_SECONDS = 1.0  # that a process goes on writing when it could end

Files = Mapping[str, PackedFile]


class KeptWeights:
    """The matrices of one load. `files` says where they are kept; it may take as long as reading all weights does, and
    raises OSError or DoesNotFitError where they cannot be. `found` are files of those that were there, `missing` of
    others."""

    def __init__(
        self,
        matrices: Mapping[str, KeptMatrix],
        files: Callable[[], Files],
        found: Sequence[PackedFile] = (),
        missing: Sequence[PackedFile] = (),
    ) -> None:
        self.matrices, self._files, self.found, self.missing = matrices, files, found, missing
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._write, name="localrun-weights", daemon=True)

    def write(self) -> None:
        """Begin to write what this start has packed."""
        if any(matrix.packed is not None for matrix in self.matrices.values()):
            self.thread.start()

    def close(self) -> None:
        """Go on for CLOSE_SECONDS at most, and leave the rest to the next start."""
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


def kept_weights(
    options: LoadOptions, opened: OpenedModel, backend: Backend, layout: Layout, plan: MemoryPlan
) -> KeptWeights:
    """What is there of a model that is about to be loaded, and where the rest goes; empty where nothing is kept."""
    matrices = {name: ref for name, ref in opened.refs.items() if len(ref.shape) == 2 and not ref.mapped}
    tensors = opened.source.tensors
    sizes = {name: layout.nbytes(tensors[ref.name].qtype, *ref.shape) for name, ref in matrices.items()}
    is_one_node = len(memory_nodes()) == 1  # where there are several, weights lie on that of whoever reads them
    is_wanted = options.packed_weights != 0 and backend.maps_weights and not plan.mapped and is_one_node
    home = writable_folder("cache") if is_wanted and sum(sizes.values()) >= LEAST_BYTES else None
    if home is None:
        return KeptWeights({}, dict)
    root = home / PACKED_FOLDER
    limit = most_bytes(root, options.packed_weights)

    def files(weights: str) -> Files:
        return packed_files_of(root, weights, options, opened, layout, sizes, limit) if weights else {}

    there: Files = {}
    with suppress(DoesNotFitError):
        there = files(known_identity(opened.files))
    found = {name: file.found() for name, file in there.items()}
    kept = {name: KeptMatrix(found.get(name)) for name in sizes}
    identity = opened.identity

    def all_files() -> Files:
        return there or files((identity or Identity(opened.files)).result())

    missing = [there[name] for name, matrix in found.items() if matrix is None]
    return KeptWeights(kept, all_files, [file for file in there.values() if file not in missing], missing)
