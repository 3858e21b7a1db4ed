"""Places of the weights of an assistant, and their loading beside its model's. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.finite import first_not_finite
from localrun.formats.floats import FLOATS
from localrun.formats.source import TensorSource
from localrun.model.archs import ASSISTANT
from localrun.model.archs.names import HF_NAMES
from localrun.model.assistant import Assistant, assistant
from localrun.model.config import ModelConfig
from localrun.model.load import Loader
from localrun.model.shapes import assistant_shapes
from localrun.model.weight_ref import WeightRef, check_tensor, scale_refs
from localrun.model.weights import ROPE_TENSORS, Namer
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import Layout

if TYPE_CHECKING:
    import torch

HALVES = ("draft_from_embed", "draft_from_hidden")  # of the columns of one matrix
ORDER, ORDER_TYPES = HF_NAMES["token_order"], {"I64": "<i8", "I32": "<i4"}


@dataclass(frozen=True, slots=True)
class TokenClusters:
    """The tokens of every cluster, and their rows of the output, in the file's own floats."""

    tokens: np.ndarray  # i32 [n, tokens of a cluster]
    rows: np.ndarray  # u8 [n, bytes of a cluster]
    qtype: str

    def logits(self, hidden: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of some clusters, and their logits after a hidden row, f32 [hidden]."""
        rows = FLOATS[self.qtype](self.rows[clusters].ravel()).reshape(-1, len(hidden))
        return self.tokens[clusters].ravel(), rows @ hidden


def assistant_refs(source: TensorSource, config: ModelConfig) -> dict[str, WeightRef]:
    """Every weight of an assistant and its place, checked. Raises ModelFileError."""
    within, around = Namer(ASSISTANT, config, source), Namer(ASSISTANT, config, source)
    around.prefix = ""
    refs = dict(outer_refs(config, within, around))
    for index, spec in enumerate(config.layers):
        refs |= {f"layers.{index}.{name}": ref for name, ref in within.layer_refs(index, spec)}
    refs |= scale_refs(source, refs)
    for ref in refs.values():
        check_tensor(source, ref)
    known = {name for ref in refs.values() for name in ref.tensors} | {*ROPE_TENSORS, *within.unread}
    for name in source.tensors:
        if name not in known and "masked_embedding" not in name and name != HF_NAMES["output"]:
            told = f"tensor {clean(name)!r} has no place in an assistant of Gemma 4"
            raise ModelFileError("UNSUPPORTED", told, path=str(source.path))
    return refs


def outer_refs(config: ModelConfig, within: Namer, around: Namer) -> Iterator[tuple[str, WeightRef]]:
    """The weights around the layers: but for the embedding of its model all are its own."""
    for name, shape in assistant_shapes(config).items():
        if name in HALVES:
            both = around.ref("draft_pre", shape)
            in_file = (shape[0], 2 * shape[1])
            yield name, replace(both, file_shape=in_file, part=HALVES.index(name))
        elif name == "output":
            yield name, within.embedding(within.ref("embed", shape))
        elif name == "output_norm":
            yield name, within.ref(name, shape)
        elif name != "draft_embed":
            yield name, around.ref(name, shape)


def searched_in_clusters(source: TensorSource, config: ModelConfig) -> bool:
    """Whether only tokens of the likeliest clusters get logits: their rows are looked up where they are floats."""
    embed = next((info for name, info in source.tensors.items() if name.endswith(HF_NAMES["embed"])), None)
    return config.clusters is not None and ORDER in source.tensors and embed is not None and embed.qtype in FLOATS


def cluster_bytes(source: TensorSource, config: ModelConfig, refs: dict[str, WeightRef]) -> int:
    """Bytes of the clusters of an assistant in memory, in the place of its output."""
    return 0 if config.clusters is None else source.tensors[refs["output"].name].nbytes + 4 * config.vocab_size


def load_assistant(
    source: TensorSource,
    refs: dict[str, WeightRef],
    config: ModelConfig,
    embed: LinearWeight,
    layout: Layout,
    device: torch.device | None,
) -> Assistant:
    """Load an assistant beside the embedding of its model."""
    loader = Loader(source, refs, layout, device, lambda done, total: None)
    with layout.packing():
        return assistant(config, loader, embed)


def load_clusters(source: TensorSource, refs: dict[str, WeightRef], config: ModelConfig) -> TokenClusters | None:
    """Load the tokens of an assistant's clusters; None where it has none. Raises ModelFileError."""
    if config.clusters is None:
        return None
    info, output = source.tensors[ORDER], source.tensors[refs["output"].name]
    order = np.frombuffer(source.read(ORDER), ORDER_TYPES[info.qtype]) if info.qtype in ORDER_TYPES else np.empty(0)
    if not np.array_equal(np.sort(order), np.arange(config.vocab_size)):
        raise ModelFileError("BAD_TENSOR", f"tensor {ORDER!r} is no order of all tokens", path=str(source.path))
    rows = np.frombuffer(source.read(output.name), np.uint8).reshape(config.vocab_size, -1)
    if first_not_finite(output.qtype, rows.ravel()) is not None:
        raise ModelFileError("NOT_FINITE", f"tensor {clean(output.name)!r} is not finite", path=str(source.path))
    tokens = order.astype(np.int32).reshape(config.clusters.n, -1)
    return TokenClusters(tokens, rows[tokens.ravel()].reshape(config.clusters.n, -1), output.qtype)
