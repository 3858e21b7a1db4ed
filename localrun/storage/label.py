"""Labels of fingerprints: model, codec and settings of blocks, for people and for finding blocks out of use."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from localrun.base.files import write_whole
from localrun.base.state_file import read_state
from localrun.ops.kv import BLOCK_TOKENS

FILE = "label.json"


@dataclass(frozen=True, slots=True)
class Label:
    """`weights` and `numerics` are those that the fingerprint counts with; a block holds `block_tokens` tokens.

    `form`: of files of packed weights; 0 for those from before it was told.
    """

    model: str = ""
    path: str = ""
    precision: str = ""
    codec: str = ""
    weights: str = ""
    numerics: int = 0
    block_tokens: int = BLOCK_TOKENS
    form: int = 0

    def outlives(self, other: "Label") -> bool:
        """Blocks of `other` are of no use to anybody any more: its model is gone or changed, or computes otherwise."""
        changed = other.path == self.path and other.weights != self.weights
        return changed or other.numerics != self.numerics or not os.path.exists(other.path)


NO_LABEL = Label()


def write_label(folder: Path, label: Label) -> None:
    """Into the folder of a fingerprint, where there is none that can be read: the first one stays."""
    if read_label(folder) == NO_LABEL:
        with suppress(OSError):
            write_whole(folder / FILE, json.dumps(asdict(label)))


def read_label(folder: Path) -> Label:
    """NO_LABEL where there is none that can be read; other fields of newer versions are ignored."""
    found, usual = read_state(folder / FILE), asdict(NO_LABEL)
    return replace(NO_LABEL, **{name: found[name] for name in usual if type(found.get(name)) is type(usual[name])})
