"""The .safetensors files of a model: one, or the set that model.safetensors.index.json names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localrun.base.errors import NotFoundError
from localrun.formats.files import Stamp, bad_file, open_regular, read_small, read_up_to, shown, stamp_of
from localrun.formats.json_files import parse_json
from localrun.formats.safetensors_header import read_header
from localrun.formats.source import TensorInfo

MAX_INDEX_BYTES = 24 << 20
_SHARD_HINT = "download the missing files of this model"
_INDEX_HINT = "download model.safetensors.index.json and all .safetensors files again"


@dataclass(frozen=True, slots=True)
class Shard:
    """One checked file."""

    path: Path
    stamp: Stamp
    tensors: Mapping[str, TensorInfo]

    @property
    def n_tensor_bytes(self) -> int:
        return sum(info.nbytes for info in self.tensors.values())


@dataclass(frozen=True, slots=True)
class Index:
    """An index file, so far checked only by itself."""

    path: Path
    weight_map: Mapping[str, str]  # tensor -> file name
    total_size: int | None


def open_shard(path: Path) -> Shard:
    with open_regular(path) as file:
        stamp = stamp_of(file)
        tensors = read_header(lambda offset, n_bytes: read_up_to(file, path, offset, n_bytes), stamp.size, path)
    return Shard(path, stamp, tensors)


def read_index(path: Path) -> Index:
    index = parse_json(read_small(path, MAX_INDEX_BYTES), path, "BAD_INDEX", unique_keys=True)
    weight_map, metadata = index.get("weight_map"), index.get("metadata")
    if not isinstance(weight_map, dict) or not weight_map:
        raise bad_file("BAD_INDEX", "it has no weight_map", path, hint=_INDEX_HINT)
    for name in {str(name): name for name in weight_map.values()}.values():
        if not isinstance(name, str) or not _is_file_name(name):
            raise bad_file("BAD_SHARD_NAME", f"{shown(str(name))} cannot be the name of a shard", path)
    return Index(path, weight_map, _total_size(metadata, path))


def open_set(index: Index) -> list[Shard]:
    """All shards, each tensor found where the index has it and nowhere else."""
    shards = []
    for name in sorted(set(index.weight_map.values())):
        try:
            shards.append(open_shard(index.path.with_name(name)))
        except NotFoundError:
            raise bad_file(
                "MISSING_SHARD", f"the file {shown(name)} is missing", index.path, hint=_SHARD_HINT
            ) from None
    tensors = join_tensors(shards)
    for tensor, name in index.weight_map.items():
        info = tensors.get(tensor)
        if info is None or info.file.name != name:
            message = f"the tensor {shown(tensor)} should be in {shown(name)}, and is not"
            raise bad_file("MISSING_TENSOR", message, index.path, hint=_INDEX_HINT)
    _check_total_size(index, shards)
    return shards


def join_tensors(shards: Sequence[Shard]) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for shard in shards:
        for name, info in shard.tensors.items():
            if name in tensors:
                message = f"the tensor {shown(name)} is in {shown(tensors[name].file.name)} too"
                raise bad_file("DUP_TENSOR", message, shard.path, info.offset)
            tensors[name] = info
    return tensors


def _is_file_name(name: str) -> bool:
    """A plain name beside the index: no folder, no drive, no control characters."""
    plain = name.isprintable() and len(name) < 256 and name[:1] != "." and not set(name) & set("/\\:")
    return plain and name.endswith(".safetensors")


def _total_size(metadata: Any, path: Path) -> int | None:
    """metadata.total_size where there is one; some writers make it a float."""
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if total is None:
        return None
    if type(total) not in (int, float) or total < 0 or total != int(total):
        raise bad_file("BAD_INDEX", f"total_size is {shown(str(total))}", path, hint=_INDEX_HINT)
    return int(total)


def _check_total_size(index: Index, shards: Sequence[Shard]) -> None:
    """The sum of all tensor bytes, as writers really count it: some count tied weights (one tensor) twice, or leave
    them out, and some add up file sizes. Any other number means that index and shards are of different models."""
    if index.total_size is None:
        return
    found = sum(shard.n_tensor_bytes for shard in shards)
    tied = {info.nbytes for shard in shards for info in shard.tensors.values()} | {0}
    files = sum(shard.stamp.size for shard in shards)
    if abs(index.total_size - found) not in tied and index.total_size != files:
        message = f"total_size is {index.total_size:,}, but the tensors have {found:,} bytes"
        hint = "download all files again; if you trust them, take total_size out of the index"
        raise bad_file("BAD_INDEX", message, index.path, hint=hint)
