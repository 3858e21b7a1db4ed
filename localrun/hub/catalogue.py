"""models.toml: the models localrun knows by a short name, without asking anybody."""

import tomllib
from functools import cache
from typing import NotRequired, TypedDict, cast

from localrun.base.resources import resource
from localrun.fit.shape import Shape, make_shape
from localrun.model.capability import obstacle_of
from localrun.model.config import LayerSpec, Mixture, ModelConfig, RopeSpec
from localrun.ops.types import Routing

BUILTIN = "builtin"
_FIRST_MODELS = ((15 << 30, "qwen3-8b"), (7 << 30, "qwen3-4b"), (0, "qwen3-1.7b"))  # from so much memory on


class CatalogueShape(TypedDict):
    """What the sizes of a model follow from; names as in ModelConfig."""

    arch: str  # general.architecture of its GGUF
    n_layers: int
    hidden_size: int
    ffn_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    tied: bool  # the output matrix is the embedding
    window: NotRequired[int]  # tokens that windowed layers see
    full_every: NotRequired[int]  # every n-th layer sees everything; the others are windowed
    n_experts: NotRequired[int]
    n_experts_used: NotRequired[int]  # for one token
    expert_ffn_size: NotRequired[int]


class CatalogueModel(TypedDict):
    """One table of models.toml."""

    title: str  # as shown to people
    licence: str  # SPDX identifier, or the hub's tag
    note: str  # one line: what it is good for
    files: NotRequired[dict[str, str]]  # precision -> file that ships with localrun; only of `builtin`
    gguf: NotRequired[str]  # repository with GGUF files
    safetensors: NotRequired[str]  # repository of the original
    precisions: NotRequired[list[str]]  # of the GGUF repository; there may be more
    thinking: NotRequired[bool]  # can think before it answers
    max_context: NotRequired[int]  # tokens
    shape: NotRequired[CatalogueShape]


@cache
def read_catalogue() -> dict[str, CatalogueModel]:
    """Every model of models.toml by its short name."""
    with resource("models.toml").open("rb") as file:
        return cast("dict[str, CatalogueModel]", tomllib.load(file)["models"])


def suggest(total_memory: int) -> str:
    """A good first model for a machine with so many bytes of memory."""
    return next(name for least, name in _FIRST_MODELS if total_memory >= least)


def search_catalogue(term: str) -> dict[str, CatalogueModel]:
    """The models that can be downloaded whose name, title, note or repository has every word of `term`."""
    words = term.lower().split()

    def text(name: str, model: CatalogueModel) -> str:
        return f"{name} {model['title']} {model['note']} {model['licence']} {model.get('gguf', '')}".lower()

    found = {name: model for name, model in read_catalogue().items() if name != BUILTIN}
    return {name: model for name, model in found.items() if all(word in text(name, model) for word in words)}


def catalogue_shape(model: CatalogueModel) -> Shape | None:
    """The shape of a catalogue model; None where the catalogue does not know it. Good for sizes, not for running."""
    if "shape" not in model or "max_context" not in model:
        return None
    shape = model["shape"]
    window, full_every = shape.get("window"), shape.get("full_every", 0)
    mixture = Mixture(shape["n_experts"], Routing(shape["n_experts_used"])) if "n_experts" in shape else None
    layers = []
    for index in range(shape["n_layers"]):
        windowed = window is not None and (full_every == 0 or (index + 1) % full_every != 0)
        layers.append(
            LayerSpec(
                kind="window" if windowed else "full",
                window=window if windowed else None,
                rope=0,
                n_heads=shape["n_heads"],
                n_kv_heads=shape["n_kv_heads"],
                head_dim=shape["head_dim"],
                ffn_size=shape["expert_ffn_size"] if mixture else shape["ffn_size"],
                mixture=mixture,
            )
        )
    config = ModelConfig(
        arch=shape["arch"],
        hidden_size=shape["hidden_size"],
        vocab_size=shape["vocab_size"],
        max_context=model["max_context"],
        rms_eps=1e-6,
        layers=tuple(layers),
        ropes=(RopeSpec(10000.0, shape["head_dim"]),),
    )
    obstacle = obstacle_of(shape["arch"], shape.get("n_experts", 0))
    return make_shape(config, shape["tied"], obstacle=obstacle)
