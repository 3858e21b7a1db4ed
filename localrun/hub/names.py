"""What the name of a model, a file or a repository says: precision, shard, repository and file."""

import re
from dataclasses import dataclass
from pathlib import PurePath

_PRECISION = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d+(?:_[A-Z0-9]+)*|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4|BF16|FP?(?:16|32)|INT[248]))$",
    re.IGNORECASE,
)
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
_HUB_PREFIX = re.compile(r"^(?:https?://)?(?:huggingface\.co|hf\.co)/|^hf:(?://)?", re.IGNORECASE)
_HUB_NAME = re.compile(r"^\w[\w.-]*/\w[\w.-]*$")
_HUB_FILE_PAGE = re.compile(r"^(\w[\w.-]*/\w[\w.-]*)/(?:resolve|blob)/[^/]+/([^?#]+)")

_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?(?:[bmk](?![a-z0-9]))?")
_SILENT = frozenset(("latest", "gguf"))  # say nothing about a model

# What to take of several precisions on disk when none was asked for and none was used: the usual balance first.
RECOMMENDED = ("Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_XS", "Q5_K_M", "Q5_K_S", "Q6_K", "Q8_0")


@dataclass(frozen=True, slots=True)
class HubName:
    """`org/repo`, and the file or precision of it that was asked for (empty: any)."""

    repo: str
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class FileName:
    """A GGUF's file name taken apart: `Qwen3-4B-Q4_K_M-00001-of-00003.gguf`."""

    model: str  # qwen3-4b
    precision: str  # Q4_K_M; empty where the name does not say
    shard: int = 1
    n_shards: int = 1


def parse_file_name(name: str) -> FileName:
    """The parts of a GGUF's file name."""
    stem = PurePath(name).stem
    shard = _SHARD.search(stem)
    stem = stem[: shard.start()] if shard else stem
    precision = _PRECISION.search(stem)
    model = stem[: precision.start()] if precision and precision.start() else stem
    return FileName(
        model.lower(),
        precision[1].upper() if precision else "",
        *((int(shard[1]), int(shard[2])) if shard else (1, 1)),
    )


def words_of(name: str) -> tuple[str, ...]:
    """`org/Llama-3.2-1B-GGUF` → llama, 3.2, 1b."""
    found: list[str] = _WORD.findall(name.lower().rpartition("/")[2])
    return tuple(word for word in found if word not in _SILENT)


def without_precision(name: str) -> str:
    """`llama3.1:8b-q4_K_M` without its end."""
    found = _PRECISION.search(name)
    return name[: found.start()] if found else name


def parse_hub_name(text: str) -> HubName | None:
    """`text` as a repository of the hub, with a file or a precision behind a colon; None when it is none."""
    prefix = _HUB_PREFIX.match(text)
    rest = text[prefix.end() :].rstrip("/") if prefix else text
    page = _HUB_FILE_PAGE.match(rest)
    if page:
        return HubName(page[1], page[2])
    repo, _, wanted = rest.partition(":")
    return HubName(repo, wanted) if _HUB_NAME.match(repo) else None


def same_precision(a: str, b: str) -> bool:
    """Whether two spellings mean one precision: case does not matter, and fp16 is F16."""
    return _plain(a) == _plain(b)


def _plain(precision: str) -> str:
    return precision.upper().replace("FP16", "F16").replace("FP32", "F32")
