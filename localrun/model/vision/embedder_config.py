"""Shape of Gemma 4's embedder of images (12B): one matrix on large patches, and no tower. Read from config.json or from
the keys of a projector."""

from __future__ import annotations

from localrun.base.dataclass import dataclass
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorSource
from localrun.images.sizes import FillBudget
from localrun.model.vision.gemma_config import EPS, GGUF_POOLED, USUAL_BUDGET, budget_of, dict_of
from localrun.model.vision.read_config import check_numbers, wrong

LAYER_EPS = 1e-5  # of every layer norm in the class of transformers


@dataclass(frozen=True, slots=True)
class EmbedderConfig:
    """Each patch becomes one row: layer norms around a matrix, two tables of positions for its column and its line, a
    third layer norm, and the projection."""

    hidden_size: int
    out_size: int  # hidden size of the language model
    patch_size: int  # pixels
    n_positions: int  # rows of each table of positions
    eps: float  # of the RMS norm before the projection
    sizes: FillBudget

    n_added = 0  # layers of text that get additions

    @property
    def patch_values(self) -> int:
        """Numbers of a patch."""
        return 3 * self.patch_size**2

    def tflop(self, n_rows: int) -> float:
        """Floating point operations of an image of so many rows, in 10^12."""
        return 2e-12 * n_rows * self.hidden_size * (self.patch_values + self.out_size)


def embedder(source: TensorSource) -> EmbedderConfig:
    """The checked config in a checkpoint, or in a projector. Raises ModelFileError."""
    metadata = source.metadata
    if source.format == "gguf":
        key = "clip.vision."
        pool = metadata.get_int(f"{key}projector.scale_factor", GGUF_POOLED)
        positions = source.tensors.get("v.position_embd.weight")
        numbers = {
            "hidden_size": metadata.get_int(f"{key}embedding_length"),
            "out_size": metadata.get_int(f"{key}projection_dim"),
            "patch_size": metadata.get_int(f"{key}patch_size") * pool,
            "n_positions": positions.shape[-2] if positions is not None and len(positions.shape) == 3 else 1,
        }
        return checked(metadata, numbers, metadata.get_float(f"{key}attention.layer_norm_epsilon", EPS), USUAL_BUDGET)
    vision, text = (Metadata(dict_of(metadata, f"{part}_config"), metadata.path) for part in ("vision", "text"))
    numbers = {
        "hidden_size": vision.get_int("mm_embed_dim", 3840),
        "out_size": text.get_int("hidden_size", 2304),
        "patch_size": vision.get_int("patch_size", 16) * vision.get_int("pooling_kernel_size", 3),
        "n_positions": vision.get_int("mm_posemb_size", 1120),
    }
    if vision.get_int("output_proj_dims", numbers["hidden_size"]) != numbers["hidden_size"]:
        raise wrong(metadata.path, "mm_embed_dim and output_proj_dims of its embedder differ")
    return checked(metadata, numbers, vision.get_float("rms_norm_eps", EPS), budget_of(source))


def checked(metadata: Metadata, numbers: dict[str, int], eps: float, budget: int) -> EmbedderConfig:
    """The config, if all numbers are possible."""
    check_numbers(metadata.path, numbers)
    if not 0.0 < eps < 0.1:
        raise wrong(metadata.path, "eps of a norm of its embedder is impossible")
    if numbers["n_positions"] < budget:
        raise wrong(metadata.path, f"{numbers['n_positions']:,} positions are fewer than images of {budget} rows take")
    return EmbedderConfig(**numbers, eps=eps, sizes=FillBudget(numbers["patch_size"], budget))
