"""Memory and tokens that images take of a model that sees, known from headers alone."""

from typing import Any

from localrun.base.dataclass import dataclass

USUAL_IMAGES = ((512, 512), (1280, 720), (1920, 1080), (4032, 3024))  # pixels: an icon, two screens, a camera


@dataclass(frozen=True, slots=True)
class ImageCost:
    """Cost of seeing. `tokens` are those of USUAL_IMAGES, in their order.

    `projector` is the file that a GGUF sees with, and `file_bytes` its size; empty and 0 where the tower is a part of
    the checkpoint.
    """

    tower_bytes: int  # weights, as they are held once there was an image
    room_bytes: int  # that a load keeps free: these, the encoding of an image of the usual size, encoded images
    tokens: tuple[int, ...]
    projector: str = ""
    file_bytes: int = 0

    def as_fields(self) -> dict[str, Any]:
        """The fields of `show --json` and `fit --json`."""
        sizes = (f"{width}x{height}" for width, height in USUAL_IMAGES)
        return {
            "tower_bytes": self.tower_bytes,
            "room_bytes": self.room_bytes,
            "tokens": dict(zip(sizes, self.tokens, strict=True)),
            "projector": self.projector or None,
            "projector_bytes": self.file_bytes or None,
        }
