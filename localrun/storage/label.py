"""Labels of fingerprints: model, codec and settings of blocks, for people and for finding useless blocks."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.files import write_whole
from localrun.base.state_file import read_state
from localrun.ops.kv import BLOCK_TOKENS

FILE = "label.json"
IMAGES = "images"  # in place of a codec: encoded images


@dataclass(frozen=True, slots=True)
class Label:
    """Label of a fingerprint. `weights` and `numerics` are parts of the fingerprint.

    `form`: file format of packed weights; 0 for files from before it was stored.
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
        """Whether blocks of `other` are useless now: its model is gone or changed, or computes differently."""
        changed = other.path == self.path and other.weights != self.weights
        return changed or other.numerics != self.numerics or not os.path.exists(other.path)


NO_LABEL = Label()


def write_label(folder: Path, label: Label) -> None:
    """Write the label into the folder of a fingerprint, unless there is a readable one."""
    if read_label(folder) == NO_LABEL:
        with suppress(OSError):
            write_whole(folder / FILE, json.dumps(asdict(label)))


def read_label(folder: Path) -> Label:
    """Read the label; NO_LABEL where there is no readable one. Fields of newer versions are ignored."""
    found, usual = read_state(folder / FILE), asdict(NO_LABEL)
    return replace(NO_LABEL, **{name: found[name] for name in usual if type(found.get(name)) is type(usual[name])})
