"""Shape of a tower: a vision transformer and the merger that makes rows of a language model from its patches."""

from __future__ import annotations

from localrun.base.dataclass import dataclass
from localrun.images.sizes import SmartResize
from localrun.ops.types import SingleActivation

Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class TowerConfig:
    """A tower of Qwen3-VL, and of Qwen3.5, whose `tapped` is empty: ViT with learned positions and 2-D rope.

    (Qwen3-VL: arXiv 2511.21631.) What layers in `tapped` leave goes through a merger of its own, and is added to the
    image's rows after the first layers of the language model (deepstack).
    """

    n_layers: int
    hidden_size: int
    n_heads: int
    ffn_size: int
    out_size: int  # hidden size of the language model
    patch_size: int  # pixels
    merge: int  # patches of a side that become one row
    n_positions: int  # rows of the table of positions, a square
    eps: float
    activation: SingleActivation
    tapped: tuple[int, ...]
    sizes: SmartResize
    mean: Colour
    std: Colour
    rope_theta: float = 10000.0

    @property
    def n_added(self) -> int:
        """Layers of text that get additions."""
        return len(self.tapped)

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.n_heads

    @property
    def patch_values(self) -> int:
        """Numbers of a patch: of a still image, whose two frames are one."""
        return 3 * self.patch_size**2

    @property
    def merged_size(self) -> int:
        """Numbers of the patches that become one row."""
        return self.hidden_size * self.merge**2

    def tflop(self, n_rows: int) -> float:
        """Floating point operations of an image of so many rows, in 10^12."""
        n, hidden = n_rows * self.merge**2, self.hidden_size
        of_layer = n * (4 * hidden**2 + 2 * hidden * self.ffn_size) + 2 * n**2 * hidden
        of_merger = n_rows * self.merged_size * (self.merged_size + self.out_size)
        total = self.n_layers * of_layer + (1 + len(self.tapped)) * of_merger + n * self.patch_values * hidden
        return 2e-12 * total
