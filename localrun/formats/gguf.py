"""GGUF model files: one file, or a set of shards of which any opens all."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError
from localrun.formats.files import Stamp, bad_file, open_regular, read_up_to, shown, stamp_of
from localrun.formats.gguf_header import GgufHeader, read_header
from localrun.formats.gguf_names import part_names, part_number
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorInfo
from localrun.formats.weights import WeightFiles

if TYPE_CHECKING:
    from localrun.formats.checkpoints.joined import Joined, Tensors

_KEYS_AND_VALUES = ".attn_kv_b.weight"
_SHARD_HINT = "put all parts of the model into one folder, under the names they had"


@dataclass(frozen=True, kw_only=True)
class GgufFile(WeightFiles):
    """An opened GGUF model; `path` is the file that was asked for, `metadata` that of the first shard."""

    version: int
    format: Literal["gguf"] = "gguf"


@dataclass(frozen=True, slots=True)
class _Shard:
    path: Path
    stamp: Stamp
    header: GgufHeader

    @property
    def metadata(self) -> Metadata:
        return Metadata(self.header.metadata, self.path)


# At most one header, with its vocabulary: of a file that was looked into, until it is opened.
_ahead: list[_Shard] = []


def open_gguf(path: str | Path, *, ahead: bool = False) -> GgufFile:
    """Open and fully check a GGUF model. Nothing stays open, and no weight is read.

    `ahead`: only to look into it. What was read is kept for who opens it next: a vocabulary takes a tenth of a second.
    Raises NotFoundError when there is no such file, ModelFileError for everything wrong with one.
    """
    path = Path(path)
    opened = _open_shard(path)
    n_shards = opened.metadata.get_int("split.count", 1)
    shards = [opened] if n_shards in (0, 1) else _open_set(opened, n_shards)
    _ahead[:] = shards[:1] if ahead else []
    tensors, joined = apart(_join_tensors(shards), shards[0].metadata)
    return GgufFile(
        path=path,
        version=shards[0].header.version,
        metadata=shards[0].metadata,
        tensors=tensors,
        joined=joined,
        stamps={shard.path: shard.stamp for shard in shards},
        warnings=tuple(warning for shard in shards for warning in _warnings(shard)),
    )


def apart(tensors: "Tensors", metadata: Metadata) -> "tuple[Tensors, Joined]":
    """The tensors of a GGUF, those apart that early files of latent attention have in one, and how these are read.

    Raises ModelFileError where such a one makes no sense.
    """
    if not any(name.endswith(_KEYS_AND_VALUES) for name in tensors):
        return tensors, {}
    from localrun.formats.checkpoints.latent_halves import with_halves  # most runs start without

    return with_halves(tensors, {}, metadata)


def _open_shard(path: Path) -> _Shard:
    with open_regular(path) as file:
        stamp = stamp_of(file)
        for shard in _ahead:
            if shard.path == path and shard.stamp.exact == stamp.exact and shard.stamp.is_settled:
                return shard
        header = read_header(lambda offset, n_bytes: read_up_to(file, path, offset, n_bytes), stamp.size, path)
    return _Shard(path, stamp, header)


def _open_set(opened: _Shard, n_shards: int) -> list[_Shard]:
    """All shards in order, given one of them."""
    if part_number(opened.path.name)[1] != n_shards:
        message = f"this is one of {n_shards:,} parts of a model, but its name does not say so"
        raise bad_file("BAD_SPLIT", message, opened.path, hint=_SHARD_HINT)
    shards = []
    for number, name in enumerate(part_names(opened.path.name), 1):
        path = opened.path.with_name(name)
        try:
            shard = opened if path == opened.path else _open_shard(path)
        except NotFoundError:
            message = f"part {number} of {n_shards} is missing: {shown(path.name)}"
            raise bad_file("MISSING_SHARD", message, opened.path, hint=_SHARD_HINT) from None
        _check_number(shard, number, n_shards)
        shards.append(shard)
    expected = shards[0].metadata.get_int("split.tensors.count")
    found = sum(len(shard.header.tensors) for shard in shards)
    if expected != found:
        message = f"{expected:,} tensors are announced, and all parts together have {found:,}"
        raise bad_file("BAD_SPLIT", message, opened.path, hint=_SHARD_HINT)
    return shards


def _check_number(shard: _Shard, number: int, n_shards: int) -> None:
    found = shard.metadata.get_int("split.no"), shard.metadata.get_int("split.count")
    if found != (number - 1, n_shards):
        message = f"its name says part {number} of {n_shards}, its content part {found[0] + 1} of {found[1]}"
        raise bad_file("BAD_SPLIT", message, shard.path, hint=_SHARD_HINT)


def _join_tensors(shards: list[_Shard]) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for shard in shards:
        for name, info in shard.header.tensors.items():
            if name in tensors:
                raise bad_file("DUP_TENSOR", f"the tensor {shown(name)} is in two parts", shard.path, info.offset)
            tensors[name] = info
    return tensors


def _warnings(shard: _Shard) -> Iterator[str]:
    name = shown(shard.path.name)
    if shard.header.n_trailing:
        yield f"{name}: {shard.header.n_trailing:,} bytes after the last tensor were ignored"
    virtual = [key for key in shard.metadata if key.startswith("GGUF.")]
    if virtual:  # some readers tell the version and the counts of a file so
        yield f"{name}: the key {shown(virtual[0])} passes for what readers say of a file, and was ignored"
