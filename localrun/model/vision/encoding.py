"""A part of a model that sees, on a backend: loaded with the first image, its programs run in working memory of their
own."""

from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from localrun.ops.encoder_program import Encoder, EncoderInput, EncoderRecording
from localrun.ops.image_rows import EncodeProgress

T = TypeVar("T")
MakeEncoder = Callable[[EncoderRecording, int], Encoder]  # of a backend: for at most so many rows
RULES = "1"  # of opening, scaling and cutting up images: another number where any pixel changes


class EncoderPart(Generic[T]):
    """Common part of the projectors of all families; `T`: the weights that they load. Working memory is made for an
    image and given back after."""

    def __init__(
        self,
        load: Callable[[], T],
        make_encoder: MakeEncoder,
        identify: Callable[[], str],
        config_name: str,
        weight_bytes: int,
    ) -> None:
        """`load` may raise ModelFileError or DoesNotFitError. `identify` names the weights and the arithmetic of the
        backend; it may read some of them. `config_name`: everything else that rows depend on."""
        self.load, self.make_encoder, self.identify, self.config_name = load, make_encoder, identify, config_name
        self.weight_bytes = weight_bytes

    @cached_property
    def tower(self) -> T:
        return self.load()

    @cached_property
    def identity(self) -> str:
        return f"{self.identify()} images {RULES} {self.config_name}"

    @property
    def n_bytes(self) -> int:
        return self.weight_bytes if "tower" in vars(self) else 0

    def run(
        self, recording: EncoderRecording, rows: EncoderInput, progress: EncodeProgress = lambda share: None
    ) -> np.ndarray:
        """Run one program."""
        encoder = self.make_encoder(recording, sum(rows.lengths))
        try:
            return encoder.run(rows, progress)
        finally:
            encoder.close()
