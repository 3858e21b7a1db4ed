"""Parsing of model names, file names and repository names: precision, shard, repository and file."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TypeVar

from localrun.base.dataclass import dataclass
from localrun.formats.gguf_names import part_number, whole_name
from localrun.formats.helper_files import helper_beside_model

T = TypeVar("T")

# Anywhere in a name between other words: what the hub labels files by.
_PRECISION = re.compile(
    r"(?<![a-z0-9])((?:UD-)?(?:I?Q\d+(?:_(?:\d+|[KSMLXNTHPBV]{1,3}|R\d+)(?![a-z0-9]))*|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4"
    r"|BF16|FP?(?:16|32)|INT[248]))(?![a-z0-9])",
    re.IGNORECASE,
)
_VAGUE = re.compile(r"I?Q\d+|INT[248]", re.IGNORECASE)  # precisions at the end of a name only: Q3 may be a quarter
_FLOAT = re.compile(r"BF16|FP?(?:16|32)", re.IGNORECASE)
_SEPARATORS = "-._ (["
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
    """The parts of a GGUF file name such as `Qwen3-4B-Q4_K_M-imat-00001-of-00003.gguf`."""

    model: str  # qwen3-4b; empty where the name is no more than a precision
    precision: str  # Q4_K_M; empty where the name does not say
    shard: int = 1
    n_shards: int = 1
    remark: str = ""  # imat, or bf16 for BF16-Q8_0: of which it was made

    @property
    def label(self) -> str:
        """The precision with the remark, which tells apart two files of one precision."""
        return f"{self.precision}-{self.remark}" if self.remark else self.precision


def parse_file_name(path: str | PurePath) -> FileName:
    """Parse the name of a GGUF file; without a precision in it, one at the end of its folder's name counts."""
    path = PurePath(path)
    stem = PurePath(whole_name(path.name)).stem
    found = _find_precision(stem)
    model, remarks = stem, list[str]()
    if found:
        start = _first_beside(stem, found)
        words = [word for word in re.split(r"[^A-Za-z0-9]+", _PRECISION.sub(" ", stem[start:])) if word]
        remarks = [word for word in words if word.lower() in _REMARKS]
        remarks += [other[1] for other in _PRECISION.finditer(stem, start) if other.span() != found.span()]
        others = (word for word in words if word.lower() not in _REMARKS)
        model = "-".join((stem[:start].rstrip(_SEPARATORS), *others)).strip("-")
    else:
        found = _find_precision(path.parent.name)
        found = found if found and found.end() == len(path.parent.name) else None
    precision = found[1].upper() if found else ""
    return FileName(model.lower(), precision, *part_number(path.name), "-".join(remarks).lower())


def _find_precision(stem: str) -> re.Match[str] | None:
    """Find the precision in a name: the last one, quantised types before floats.

    A float type beside a quantised one names the source or a few tensors (BF16-Q8_0, Q4_K_M-f16).
    """

    def telling(found: re.Match[str]) -> tuple[bool, bool, int]:
        return not _FLOAT.fullmatch(found[1]), not _VAGUE.fullmatch(found[1]), found.start()

    return max(_precisions(stem), key=telling, default=None)


def _first_beside(stem: str, found: re.Match[str]) -> int:
    """Start of the run of precisions that ends with `found`."""
    start = found.start()
    for other in reversed(_precisions(stem)):
        if other.end() <= start and not stem[other.end() : start].strip(_SEPARATORS):
            start = other.start()
    return start


def _precisions(stem: str) -> list[re.Match[str]]:
    """All precisions in a name; ambiguous ones count at its end only."""
    every = _PRECISION.finditer(stem)
    return [found for found in every if found.end() == len(stem) or not _VAGUE.fullmatch(found[1])]


def words_of(name: str) -> tuple[str, ...]:
    """Words of a name: `org/Llama-3.2-1B-GGUF` → llama, 3.2, 1b."""
    found: list[str] = _WORD.findall(name.lower().rpartition("/")[2])
    return tuple(word for word in found if word not in _SILENT)


def without_precision(name: str) -> str:
    """A name such as `llama3.1:8b-q4_K_M` without the precision at its end."""
    found = _find_precision(name)
    return name[: found.start()].rstrip("-._") if found and found.end() == len(name) else name


def parse_hub_name(text: str) -> HubName | None:
    """Parse `text` as a repository of the hub, with a file or precision after a colon; None for other text."""
    prefix = _HUB_PREFIX.match(text)
    rest = text[prefix.end() :].rstrip("/") if prefix else text
    page = _HUB_FILE_PAGE.match(rest)
    if page:
        return HubName(page[1], page[2])
    repo, _, wanted = rest.partition(":")
    return HubName(repo, wanted) if _HUB_NAME.match(repo) else None


def same_precision(a: str, b: str) -> bool:
    """Whether two spellings mean one precision, ignoring case; fp16 is F16."""
    return _plain(a) == _plain(b)


def of_precision(items: Iterable[T], wanted: str, precision_of: Callable[[T], str]) -> list[T]:
    """Items in the precision `wanted`; where there is none, those in its `UD-` variant."""
    items = list(items)
    exact = [item for item in items if same_precision(precision_of(item), wanted)]
    return exact or [item for item in items if same_precision(precision_of(item), f"UD-{wanted}")]


def _plain(precision: str) -> str:
    return precision.upper().replace("FP16", "F16").replace("FP32", "F32")


def main_model(repo: str, sizes: Mapping[str, Sequence[int]]) -> str:
    """The model that a repository is named after, else the one with the most precisions, else the largest.

    Helpers of another model do not count. `sizes`: bytes of each precision, by the name that its files share. Empty
    where there is no model.
    """

    def likeliness(model: str) -> tuple[bool, int, int, int]:
        words_apart = len(set(words_of(model)) ^ set(words_of(repo)))
        return not helper_beside_model(model, repo), -words_apart, len(sizes[model]), max(sizes[model])

    return max(sizes, key=likeliness, default="")
