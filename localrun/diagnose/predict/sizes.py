"""Models of common sizes, known by their shapes alone. Torch-free."""

from collections.abc import Mapping

from localrun.base.dataclass import dataclass
from localrun.fit.shape import ModelShape, make_shape
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec


@dataclass(frozen=True, slots=True)
class Size:
    """A model size. `textbook_kv`: the often quoted bytes of a token in the 16-bit cache; 0 for none.

    `loaded`: precision and weight bytes of a model on disk.
    """

    name: str
    of: str  # the model whose shape it is
    shape: ModelShape
    params: float = 0.0  # as its name rounds them
    textbook_kv: float = 0.0
    loaded: tuple[str, int] | None = None


def _size(
    name: str, of: str, layers: int, heads: tuple[int, int, int], hidden: int, ffn: int, vocab: int, textbook: float = 0
) -> Size:
    """Build a size. `heads`: of queries, of keys and values, and the size of one."""
    n_heads, n_kv_heads, head_dim = heads
    spec = LayerSpec("full", None, 0, n_heads, n_kv_heads, head_dim, ffn)
    config = ModelConfig("llama", hidden, vocab, 1 << 17, 1e-5, (spec,) * layers, (RopeSpec(5e5, head_dim),))
    params = float(name.removesuffix("B")) * 1e9
    return Size(name, of, make_shape(config, tied=params < 4e9), params, textbook)


SIZES: Mapping[str, Size] = {
    size.name: size
    for size in (
        _size("1B", "Llama 3.2 1B", 16, (32, 8, 64), 2048, 8192, 128256),
        _size("3B", "Llama 3.2 3B", 28, (24, 8, 128), 3072, 8192, 128256),
        _size("7B", "Llama 2 7B", 32, (32, 32, 128), 4096, 11008, 32000, 0.5e6),
        _size("8B", "Llama 3.1 8B", 32, (32, 8, 128), 4096, 14336, 128256),
        _size("13B", "Llama 2 13B", 40, (40, 40, 128), 5120, 13824, 32000, 1e6),
        _size("32B", "Qwen2.5 32B", 64, (40, 8, 128), 5120, 27648, 152064),
        _size("70B", "Llama 3.1 70B", 80, (64, 8, 128), 8192, 28672, 128256, 2.5e6),
    )
}
