"""Shape of a tower of Gemma 4, read from config.json or from the keys of a projector."""

from __future__ import annotations

from localrun.base.dataclass import dataclass
from localrun.formats.metadata import Metadata
from localrun.formats.source import TensorSource
from localrun.images.sizes import GEMMA4_BUDGETS, FillBudget
from localrun.model.vision.read_config import check_numbers, preprocessor_of, unsupported, wrong

USUAL_BUDGET = 280  # rows of an image, where no file says so: projectors never do
ROPE_THETA = 100.0
EPS = 1e-6
CLAMPED = ".input_max"  # the end of a bound's name
GGUF_POOLED = 3  # patches of a side that become one row, where a projector does not say


@dataclass(frozen=True, slots=True)
class GemmaTowerConfig:
    """A vision transformer with RMS norms around attention and network, 2-D rope, and two tables of positions, for the
    columns and the lines of patches. Squares of `pool` · `pool` patches become one row: their mean."""

    n_layers: int
    hidden_size: int
    n_heads: int
    head_dim: int
    ffn_size: int
    out_size: int  # hidden size of the language model
    patch_size: int  # pixels
    pool: int  # patches of a side that become one row
    n_positions: int  # rows of each table of positions
    eps: float
    rope_theta: float
    is_clamped: bool  # what linears read and what they give has bounds, which are weights
    is_standardised: bool  # rows have a mean taken off and are scaled, by weights, before they are projected
    sizes: FillBudget

    n_added = 0  # layers of text that get additions

    @property
    def attn_size(self) -> int:
        return self.n_heads * self.head_dim

    @property
    def patch_values(self) -> int:
        """Numbers of a patch."""
        return 3 * self.patch_size**2

    @property
    def n_kept_positions(self) -> int:
        """Rows of each table that the longest image in the budget reads."""
        return min(self.n_positions, self.pool * self.sizes.budget)

    def tflop(self, n_rows: int) -> float:
        """Floating point operations of an image of so many rows, in 10^12."""
        n = n_rows * self.pool**2
        of_layer = n * self.hidden_size * (4 * self.attn_size + 3 * self.ffn_size) + 2 * n**2 * self.attn_size
        ends = n * self.patch_values * self.hidden_size + n_rows * self.hidden_size * self.out_size
        return 2e-12 * (self.n_layers * of_layer + ends)


def gemma_tower(source: TensorSource) -> GemmaTowerConfig:
    """The checked config of the tower in a checkpoint, or in a projector. Raises ModelFileError."""
    return gguf_gemma_tower(source) if source.format == "gguf" else hf_gemma_tower(source)


def hf_gemma_tower(source: TensorSource) -> GemmaTowerConfig:
    metadata = source.metadata
    vision, text = (Metadata(dict_of(metadata, f"{part}_config"), metadata.path) for part in ("vision", "text"))
    rope = Metadata(dict_of(vision, "rope_parameters"), metadata.path)
    if vision.get_str("hidden_activation", "gelu_pytorch_tanh") != "gelu_pytorch_tanh":
        raise unsupported(metadata.path, "other activations of its tower than gelu_pytorch_tanh")
    if rope.get_str("rope_type", "axial") not in ("axial", "default") or vision.get_bool("attention_bias", False):
        raise unsupported(metadata.path, "biases of attention or another rope than the axial one in its tower")
    n_heads = vision.get_int("num_attention_heads", 12)
    if vision.get_int("num_key_value_heads", n_heads) != n_heads:
        raise unsupported(metadata.path, "keys that several heads of its tower share")
    numbers = {
        "n_layers": vision.get_int("num_hidden_layers", 16),
        "hidden_size": vision.get_int("hidden_size", 768),
        "n_heads": n_heads,
        "head_dim": vision.get_int("head_dim", 64),
        "ffn_size": vision.get_int("intermediate_size", 3072),
        "out_size": text.get_int("hidden_size", 2304),
        "patch_size": vision.get_int("patch_size", 16),
        "pool": vision.get_int("pooling_kernel_size", 3),
        "n_positions": vision.get_int("position_embedding_size", 10 * 1024),
    }
    eps, theta = vision.get_float("rms_norm_eps", EPS), rope.get_float("rope_theta", ROPE_THETA)
    flags = vision.get_bool("use_clipped_linears", False), vision.get_bool("standardize", False)
    return checked(metadata, numbers, (eps, theta), flags, budget_of(source))


def gguf_gemma_tower(source: TensorSource) -> GemmaTowerConfig:
    metadata, key, shapes = source.metadata, "clip.vision.", source.tensors
    hidden, n_heads = metadata.get_int(f"{key}embedding_length"), metadata.get_int(f"{key}attention.head_count")
    positions = shapes.get("v.position_embd.weight")
    numbers = {
        "n_layers": metadata.get_int(f"{key}block_count"),
        "hidden_size": hidden,
        "n_heads": n_heads,
        "head_dim": hidden // max(n_heads, 1),
        "ffn_size": metadata.get_int(f"{key}feed_forward_length"),
        "out_size": metadata.get_int(f"{key}projection_dim"),
        "patch_size": metadata.get_int(f"{key}patch_size"),
        "pool": metadata.get_int(f"{key}projector.scale_factor", GGUF_POOLED),
        "n_positions": positions.shape[-2] if positions is not None and len(positions.shape) == 3 else 1,
    }
    eps = metadata.get_float(f"{key}attention.layer_norm_epsilon", EPS)
    flags = any(name.startswith("v.blk.") and name.endswith(CLAMPED) for name in shapes), "v.std_scale" in shapes
    return checked(metadata, numbers, (eps, ROPE_THETA), flags, USUAL_BUDGET)


def dict_of(values: Metadata, key: str) -> dict[str, object]:
    """A part of a config; empty where it is left out."""
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def budget_of(source: TensorSource) -> int:
    """Rows that an image is scaled to, as the preprocessor's settings say."""
    path = source.metadata.path
    budget = preprocessor_of(path.parent).get_int("max_soft_tokens", USUAL_BUDGET)
    if budget not in GEMMA4_BUDGETS:
        raise wrong(path, f"max_soft_tokens is {budget:,}, and has to be one of {GEMMA4_BUDGETS}")
    return budget


def checked(
    metadata: Metadata,
    numbers: dict[str, int],
    reals: tuple[float, float],
    flags: tuple[bool, bool],
    budget: int,
) -> GemmaTowerConfig:
    """The config, if all numbers are possible and fit each other; `reals` are eps and theta."""
    path = metadata.path
    check_numbers(path, numbers)
    if numbers["head_dim"] % 8:
        raise wrong(path, f"heads of its tower have {numbers['head_dim']} numbers, no multiple of 8")
    if not 0.0 < reals[0] < 0.1 or not 1.0 < reals[1] < 1e9:
        raise wrong(path, "eps of a norm or theta of the rope of its tower is impossible")
    if numbers["n_positions"] < numbers["pool"] * budget:
        raise wrong(path, f"its tower has {numbers['n_positions']:,} positions, and images of {budget} rows take more")
    sizes = FillBudget(numbers["patch_size"] * numbers["pool"], budget)
    return GemmaTowerConfig(
        **numbers, eps=reals[0], rope_theta=reals[1], is_clamped=flags[0], is_standardised=flags[1], sizes=sizes
    )
