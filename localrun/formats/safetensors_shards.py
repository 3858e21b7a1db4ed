"""The .safetensors files of a model: one, or the set that model.safetensors.index.json names."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, NotFoundError
from localrun.formats.files import Stamp, bad_file, open_regular, read_small, read_up_to, shown, stamp_of
from localrun.formats.json_files import parse_json
from localrun.formats.safetensors_header import read_header
from localrun.formats.source import TensorInfo

MAX_INDEX_BYTES = 24 << 20
_SECOND_COPY = re.compile(r"consolidated[-.].*|adapter_.*|.*\.(?:fp|bf|int)(?:4|8|16|32)[-.].*")  # or an adapter
_SHARD_HINT = "download the missing files of this model"
_INDEX_HINT = "download model.safetensors.index.json and all .safetensors files again"


def weights_of(names: Iterable[str], indexed: Collection[str] = ()) -> list[str]:
    """Files of weights that loading opens: model.safetensors, else those of the index, else every one once.

    `names` are all names in the folder, `indexed` those in its index where that could be read.
    """
    weights = sorted(name for name in names if name.endswith(".safetensors"))
    if "model.safetensors" in weights:
        return ["model.safetensors"]
    if known := [name for name in weights if name in indexed]:
        return known
    return [name for name in weights if not _SECOND_COPY.fullmatch(name)] or weights


@dataclass(frozen=True, slots=True)
class Shard:
    """One checked file."""

    path: Path
    stamp: Stamp
    tensors: Mapping[str, TensorInfo]


@dataclass(frozen=True, slots=True)
class Index:
    """The shards that an index file names. Which tensors are in them they say themselves, and so their bytes: what an
    index says of that is often of another version of the model."""

    path: Path
    shards: frozenset[str]  # file names

    def missing(self, name: str) -> ModelFileError:
        """The error for a shard that is not there."""
        return bad_file("MISSING_SHARD", f"the file {shown(name)} is missing", self.path, hint=_SHARD_HINT)


def open_shard(path: Path) -> Shard:
    """Check one file. Raises ModelFileError, also for what the format's own library refuses."""
    with open_regular(path) as file:
        stamp = stamp_of(file)
        tensors = read_header(lambda offset, n_bytes: read_up_to(file, path, offset, n_bytes), stamp.size, path)
    check_with_library(path)
    return Shard(path, stamp, tensors)


def check_with_library(path: Path) -> None:
    """ModelFileError where the safetensors library refuses a file whose header has been read.

    It tells neither where tensors lie nor in a sentence what is wrong, so that ours reads first. It maps the file,
    looks at the header alone and lets go of it: no weight is read, and memory holds no more than the header.
    """
    from safetensors import SafetensorError, safe_open  # not at the start of every program

    try:
        with safe_open(path, framework="numpy"):
            pass
    except SafetensorError as error:
        raise bad_file("BAD_HEADER", f"the safetensors library refuses it: {error}", path, 8) from error
    except (OSError, MemoryError):  # of file systems that map nothing, and limits on addresses: it says nothing then
        return


def read_index(path: Path) -> Index:
    return parse_index(read_small(path, MAX_INDEX_BYTES), path)


def parse_index(raw: bytes, path: Path) -> Index:
    """Raises ModelFileError for one that names no shards, or names that no shard can have."""
    weight_map = parse_json(raw, path, "BAD_INDEX").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise bad_file("BAD_INDEX", "it has no weight_map", path, hint=_INDEX_HINT)
    for name in {str(name): name for name in weight_map.values()}.values():
        if not isinstance(name, str) or not _is_file_name(name):
            raise bad_file("BAD_SHARD_NAME", f"{shown(str(name))} cannot be the name of a shard", path)
    return Index(path, frozenset(weight_map.values()))


def open_set(index: Index) -> list[Shard]:
    """All shards, each of them there."""
    shards = []
    for name in sorted(index.shards):
        try:
            shards.append(open_shard(index.path.with_name(name)))
        except NotFoundError:
            raise index.missing(name) from None
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
