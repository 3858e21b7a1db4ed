"""GGUF files that lie beside a model and are none: projectors, importance matrices, adapters, models that draft.

The file itself says what it is (`general.type`, `general.architecture`); its name counts where it is not here to be
read, and for a model that drafts, which may be a whole model that lies beside a larger one.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from localrun.base.errors import LocalrunError
from localrun.formats.files import fetch_from
from localrun.formats.gguf_skim import skim_gguf

PROJECTOR = "a projector, through which a model sees or hears (mmproj)"
IMATRIX = "an importance matrix (imatrix), which is used to quantize a model"
ADAPTER = "an adapter (LoRA), which changes another model"
CONTROL_VECTOR = "a control vector, which steers another model"
DRAFT = "a draft model, which guesses tokens for a larger one"
VOCODER = "a vocoder, which turns the tokens of a model into sound"
APPLE_DOUBLE = "what macOS notes about another file (AppleDouble)"

_TYPES = {"mmproj": PROJECTOR, "projector": PROJECTOR, "imatrix": IMATRIX, "adapter": ADAPTER}
_ARCHITECTURES = {
    **dict.fromkeys(("clip", "mmproj"), PROJECTOR),
    "imatrix": IMATRIX,
    **dict.fromkeys(("controlvector", "control_vector"), CONTROL_VECTOR),
    "wavtokenizer-dec": VOCODER,
}
_DRAFT_ARCHITECTURE = re.compile(r"(?:.*[-_])?(?:assistant|draft(?:er)?|mtp|eagle\d?|dflash|medusa)")
_KEYS = {"adapter.type": ADAPTER, "imatrix.chunk_count": IMATRIX, "clip.projector_type": PROJECTOR}


# Words of names, as patterns that are compiled where a name is looked at.
_QTYPE = r"I?Q\d+(?:_[A-Z0-9]{1,3})*|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4"  # an imatrix has none of these
_BESIDE = {
    r"draft(?:er)?|mtp|eagle\d?|dflash|medusa|assistant|speculator": DRAFT,
    r"q?lora|adapter": ADAPTER,
    r"control[-_]?vectors?|cvector|steering[-_]?vectors?": CONTROL_VECTOR,
    r"vocoder|wavtokenizer": VOCODER,
}


def _words(pattern: str, name: str) -> set[str]:
    found = re.findall(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", name, re.IGNORECASE)
    return {word.lower() for word in found}


def declared_helper(values: Mapping[str, Any]) -> str:
    """The helper that a GGUF is instead of a model, by its key-values; empty for a model."""
    kind, arch = values.get("general.type"), values.get("general.architecture")
    if isinstance(kind, str) and kind.lower() in _TYPES:
        return _TYPES[kind.lower()]
    if isinstance(arch, str):
        if helper := _ARCHITECTURES.get(arch.lower()):
            return helper
        if _DRAFT_ARCHITECTURE.fullmatch(arch.lower()):
            return DRAFT
    return next((helper for key, helper in _KEYS.items() if key in values), "")


def helper_at(path: Path) -> str:
    """The helper that a GGUF on disk is instead of a model: by its key-values, or its name where it cannot be read."""
    try:
        return declared_helper(skim_gguf(fetch_from(path), path.stat().st_size, path))
    except (LocalrunError, OSError):
        return named_helper(path.name)


def named_helper(path: str) -> str:
    """The helper that a GGUF is by its name, whatever lies beside it; empty for what may be a model."""
    name = PurePath(path).name
    if name.startswith("._") or "__MACOSX" in PurePath(path).parts:
        return APPLE_DOUBLE
    if re.search(r"mm[-_]?proj", path, re.IGNORECASE):
        return PROJECTOR
    before, imatrix, _ = name.lower().partition("imatrix")
    if imatrix and not (before and _words(_QTYPE, name)):
        return IMATRIX
    return ""


def head_beside(model: Path) -> Path | None:
    """The GGUF of a layer that drafts for a model, which lies beside it: NAME-mtp.gguf beside NAME.gguf."""
    beside = model.with_name(f"{model.stem}-mtp.gguf")
    return beside if beside.is_file() else None


def helper_beside_model(name: str, repo: str) -> str:
    """The helper that a file is by its name where a model lies beside it: `mtp-gem-Q8_0.gguf` beside `gem-Q4_K_M.gguf`.

    A word that the repository or folder `repo` has in its own name says nothing.
    """
    for pattern, helper in _BESIDE.items():
        if _words(pattern, name) - _words(pattern, repo):
            return helper
    return ""
