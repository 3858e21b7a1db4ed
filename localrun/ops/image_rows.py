"""Images as rows of a step: the interface between a projector and the text side of a model.

A projector turns the bytes of a file into rows that stand for embeddings. A prompt knows of an image only its span: a
digest, how many rows it takes and how their angles run. So it is planned, cached and asked about again without a pixel.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Protocol

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.ops.interface import CancelFlag

EncodeProgress = Callable[[float], None]  # of 0 … 1


@dataclass(frozen=True, slots=True)
class ImageSpan:
    """The rows of one image in a prompt."""

    digest: bytes  # 16 bytes, see image_digest
    n_rows: int
    grid: tuple[int, int] | None = None  # lines and columns that the angles count; None: rows count on as text does
    sees_itself: bool = False  # each row sees those after it, too, in layers whose attention has spans

    def angles(self) -> np.ndarray:
        """Angles (t, h, w) of the rows, counted from the first angle of the image: int32 [n_rows, 3]."""
        if self.grid is None:
            return np.repeat(np.arange(self.n_rows, dtype=np.int32)[:, None], 3, axis=1)
        line, column = np.divmod(np.arange(self.n_rows, dtype=np.int32), np.int32(self.grid[1]))
        return np.stack([np.zeros_like(line), line, column], axis=1)

    @property
    def n_angles(self) -> int:
        """Angles that the image takes: text goes on so much further."""
        return self.n_rows if self.grid is None else max(self.grid)


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """Size and cost of an image, known before anything is computed."""

    width: int  # pixels, by the family's size rule
    height: int
    n_rows: int
    grid: tuple[int, int] | None  # as in ImageSpan
    tflop: float  # of encoding it


@dataclass(frozen=True, slots=True)
class ImageRows:
    """An encoded image."""

    rows: np.ndarray  # f32 [n_rows, hidden], in place of embeddings: no model scales them
    added: tuple[np.ndarray, ...] = ()  # f32 [n_rows, hidden] each: added after text layers 0, 1, … (deepstack)


@dataclass(frozen=True, slots=True)
class ImageMarks:
    """Control tokens of an image, by their text; `placeholder` is both written by the chat template and a row's id."""

    placeholder: str  # once in the rendered prompt, n_rows times in its token ids
    before: str = ""  # token that comes before the rows and is not in the template; empty: none
    after: str = ""


class Projector(Protocol):
    """The half of a model that sees, its weights loaded with the first image. Used by one thread at a time."""

    @property
    def identity(self) -> str:
        """Names weights, arithmetic and preprocessing: equal identities encode equal files to equal rows."""
        ...

    @property
    def marks(self) -> ImageMarks: ...

    @property
    def n_added(self) -> int:
        """Text layers that get added rows."""
        ...

    @property
    def n_bytes(self) -> int:
        """Bytes of weights that are held: none before the first image."""
        ...

    def plan(self, width: int, height: int, most_rows: int) -> ImagePlan:
        """The plan of an image of that many pixels, in at most `most_rows` rows; ImageError where it has none."""
        ...

    def encode(self, data: bytes, plan: ImagePlan, progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        """Rows of the image in a file's bytes. Raises StepCancelled, or an error that names what is wrong with it, or
        with the weights, or that memory is short."""
        ...


def image_digest(file_sha256: str, projector_identity: str, plan: ImagePlan) -> bytes:
    """Names the rows of an image: equal for the same file, projector and size only."""
    text = f"{file_sha256} {plan.width}x{plan.height} {projector_identity}"
    return sha256(text.encode()).digest()[:16]
