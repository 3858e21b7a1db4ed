"""What the name of a model, a file or a repository says: precision, shard, repository and file."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from localrun.formats.gguf_names import part_number, whole_name

T = TypeVar("T")

# Anywhere in a name between other words, the last one counts: what the hub labels files by.
_PRECISION = re.compile(
    r"(?<![a-z0-9])((?:UD-)?(?:I?Q\d+(?:_(?:\d+|[KSMLXNTHPBV]{1,3}|R\d+)(?![a-z0-9]))*|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4"
    r"|BF16|FP?(?:16|32)|INT[248]))(?![a-z0-9])",
    re.IGNORECASE,
)
_VAGUE = re.compile(r"I?Q\d+|INT[248]", re.IGNORECASE)  # precisions at the end of a name only: Q3 may be a quarter
_REMARKS = frozenset(("imat", "imatrix", "i1"))  # about how a file was quantized, not about which model it is
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
    """A GGUF's file name taken apart: `Qwen3-4B-Q4_K_M-imat-00001-of-00003.gguf`."""

    model: str  # qwen3-4b; empty where the name is no more than a precision
    precision: str  # Q4_K_M; empty where the name does not say
    shard: int = 1
    n_shards: int = 1
    remark: str = ""  # imat


def parse_file_name(path: str | PurePath) -> FileName:
    """The parts of a GGUF's file name; where that has no precision, one at the end of its folder's name counts."""
    path = PurePath(path)
    stem = PurePath(whole_name(path.name)).stem
    found = _find_precision(stem)
    model, remarks = stem, ""
    if found:
        behind = [word for word in re.split(r"[^A-Za-z0-9]+", stem[found.end() :]) if word]
        remarks = "-".join(word for word in behind if word.lower() in _REMARKS)
        others = (word for word in behind if word.lower() not in _REMARKS)
        model = "-".join((stem[: found.start()].rstrip("-._ (["), *others)).strip("-")
    else:
        found = _find_precision(path.parent.name)
        found = found if found and found.end() == len(path.parent.name) else None
    precision = found[1].upper() if found else ""
    return FileName(model.lower(), precision, *part_number(path.name), remarks.lower())


def _find_precision(stem: str) -> re.Match[str] | None:
    """The last precision in a name."""
    for found in reversed(list(_PRECISION.finditer(stem))):
        if found.end() == len(stem) or not _VAGUE.fullmatch(found[1]):
            return found
    return None


def words_of(name: str) -> tuple[str, ...]:
    """`org/Llama-3.2-1B-GGUF` → llama, 3.2, 1b."""
    found: list[str] = _WORD.findall(name.lower().rpartition("/")[2])
    return tuple(word for word in found if word not in _SILENT)


def without_precision(name: str) -> str:
    """`llama3.1:8b-q4_K_M` without its end."""
    found = _find_precision(name)
    return name[: found.start()].rstrip("-._") if found and found.end() == len(name) else name


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


def of_precision(items: Iterable[T], wanted: str, precision_of: Callable[[T], str]) -> list[T]:
    """The items in the precision `wanted`; where there is none, those in one whose name is that behind `UD-`."""
    items = list(items)
    exact = [item for item in items if same_precision(precision_of(item), wanted)]
    return exact or [item for item in items if same_precision(precision_of(item), f"UD-{wanted}")]


def _plain(precision: str) -> str:
    return precision.upper().replace("FP16", "F16").replace("FP32", "F32")
