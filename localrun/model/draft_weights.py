"""Places of the weights of a layer that drafts, and their loading beside the model's. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.formats.source import TensorSource
from localrun.model.archs import arch_of
from localrun.model.archs.reading import draft_place
from localrun.model.config import ModelConfig
from localrun.model.draft_layer import DraftLayer, draft_layer
from localrun.model.layer_weights import ModelWeights
from localrun.model.load import Loader
from localrun.model.shapes import OWN_OF_DRAFT, draft_shapes
from localrun.model.weight_ref import WeightRef, check_tensor, scale_refs
from localrun.model.weights import Namer
from localrun.ops.layouts import Layout

if TYPE_CHECKING:
    import torch


def read_draft_refs(source: TensorSource, config: ModelConfig) -> dict[str, WeightRef]:
    """Every weight of the layer that drafts and its place, checked. `config` is that of the model, which has one.
    Raises ModelFileError."""
    namer, drafting = Namer(arch_of(source), config, source), config.drafting
    place = draft_place(source, config.n_layers)
    assert drafting is not None
    assert place is not None
    gguf = source.format == "gguf"
    namer.prefix = place
    refs = dict(outer_refs(namer, drafting, config.n_layers if gguf else 0))
    layer = namer.layer_refs(config.n_layers if gguf else 0, drafting.layers[0])
    refs |= {f"layers.0.{name}": ref for name, ref in layer}
    refs |= scale_refs(source, refs)
    for ref in refs.values():
        check_tensor(source, ref)
    return refs


def config_with_head(config: ModelConfig, head: TensorSource) -> ModelConfig | None:
    """The config of a model with a layer that drafts in a GGUF of its own, numbered after the model's and made like the
    last of them; None where the file has no such layer."""
    last = config.layers[-1]
    if head.format != "gguf" or draft_place(head, config.n_layers) is None or not last.has_attention or last.latent:
        return None
    return replace(config, draft=last)


def outer_refs(namer: Namer, config: ModelConfig, index: int) -> Iterator[tuple[str, WeightRef]]:
    """The weights around the layer; those that it may share with the model only where it has its own."""
    hidden = config.hidden_size
    for name, shape in draft_shapes(config).items():
        if name.startswith("draft_from"):
            both = namer.ref("draft_proj", shape, index)
            part = ("draft_from_embed", "draft_from_hidden").index(name)
            yield name, replace(both, file_shape=(hidden, 2 * hidden), part=part)
            continue
        if name == "draft_norm" and namer.gguf and namer.name(name, index) not in namer.source.tensors:
            yield name, namer.ref("output_norm", shape)
        elif name not in OWN_OF_DRAFT or (namer.gguf and namer.name(name, index) in namer.source.tensors):
            yield name, namer.ref(name, shape, index)


def load_draft_layer(
    source: TensorSource,
    refs: dict[str, WeightRef],
    config: ModelConfig,
    model: ModelWeights,
    layout: Layout,
    device: torch.device | None,
) -> DraftLayer:
    """Load the layer of `config`, which reads hidden rows, beside the weights of its model."""
    loader = Loader(source, refs, layout, device, lambda done, total: None)
    with layout.packing():
        return draft_layer(config, loader, model.embed, model.output)
