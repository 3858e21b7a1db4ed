"""What kept keys and values depend on, as one string: blocks saved under another one are of no use."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from localrun.formats.source import TensorInfo, TensorSource
from localrun.model.config import ModelConfig

SAMPLE_EVERY = 16  # tensors
SAMPLE_BYTES = 64 << 10  # of each of them
_SHA256 = re.compile(r"[0-9a-f]{64}")


def fingerprint(*parts: object) -> str:
    """A hash of the weights' identity, config, backend, instruction set, numerics, codecs, precision.

    They count by their repr, which names all fields of a dataclass.
    """
    hashed = hashlib.sha256()
    for part in map(repr, parts):
        hashed.update(len(part).to_bytes(8, "little") + part.encode())
    return hashed.hexdigest()


def without_sinks(config: ModelConfig) -> ModelConfig:
    """The config less the window beside the first block: what is computed before that hides anything does not depend
    on it, nor then on the size of the context that it derives from."""
    return replace(config, layers=tuple(replace(spec, sink_window=None) for spec in config.layers))


def identity_of(source: TensorSource) -> str:
    """A hash of the weights, and of what lies beside them and tells how ids come about."""
    return fingerprint(*identities(source))


def identities(source: TensorSource) -> Iterable[str]:
    """One line for each file of the weights, and of what lies beside them and tells how ids come about."""
    by_file: dict[Path, list[TensorInfo]] = {}
    for info in source.tensors.values():
        by_file.setdefault(info.file, []).append(info)
    for file in sorted(by_file):
        yield identity(file, sorted(by_file[file], key=lambda info: info.offset))
    if source.path.is_dir():
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            file = source.path / name
            yield hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "-"


def identity(file: Path, tensors: list[TensorInfo]) -> str:
    """The sha256 that the hub's cache names a file by; else size, time, header and a sample of the tensors."""
    blob = file.resolve().name
    if _SHA256.fullmatch(blob):
        return blob
    hashed = hashlib.sha256()
    status = file.stat()
    hashed.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    with open(file, "rb") as opened:
        hashed.update(opened.read(min(info.offset for info in tensors)))
        for info in tensors[::SAMPLE_EVERY]:
            opened.seek(info.offset)
            hashed.update(opened.read(min(info.nbytes, SAMPLE_BYTES)))
    return hashed.hexdigest()
