"""An assistant: a small model that drafts tokens for a larger one, with no cache of its own. Torch-free.

Its one row a text reads the model's embedding of the newest token and the hidden row that the model chose it from, then
attends the model's keys and values of all tokens before it; after that its own guess, and the hidden row that it gave,
at the same position (Gemma 4).
"""

from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.model.assembly import Assembler
from localrun.model.config import ModelConfig
from localrun.model.decoder import attention_block, embedded, ffn_block
from localrun.model.layer_weights import LayerWeights
from localrun.ops.instructions import Linear, LinearWeight, LogitsOf, Norm, Scale
from localrun.ops.layouts import Vector
from localrun.ops.recording import Ops
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class Assistant:
    """A config with a `body_size`, its weights, and the embedding of its model."""

    config: ModelConfig
    embed: LinearWeight  # [vocab, body]
    from_embed: LinearWeight  # [hidden, body]
    from_hidden: LinearWeight  # [hidden, body]
    layers: tuple[LayerWeights, ...]
    output_norm: Vector
    to_hidden: LinearWeight  # [body, hidden]
    output: LinearWeight  # [vocab, hidden], or of clusters of tokens

    def forward(self, ops: Ops, hidden: Value) -> Value:
        """Record one step; `hidden`: f32 [R, body] -> Logits, and rows [R, body] beside them."""
        config, eps = self.config, self.config.rms_eps
        (x,) = ops(Linear(embedded(ops, self.embed, config.embed_scale), (self.from_embed,)))
        (x,) = ops(Linear(hidden, (self.from_hidden,), residual=x))
        for index, (spec, layer) in enumerate(zip(config.layers, self.layers, strict=True)):
            x = attention_block(ops, x, index, replace(spec, shares_cache=None), layer, eps)
            x = ffn_block(ops, x, spec, layer, eps)
            if layer.out_scale != 1.0:
                (x,) = ops(Scale(x, layer.out_scale))
        (a,) = ops(Norm(x, self.output_norm, eps))
        (rows,) = ops(Linear(a, (self.to_hidden,)))
        (logits,) = ops(LogitsOf(a, self.output.packed, self.output.scale, beside=rows))
        return logits


def assistant(config: ModelConfig, weights: Assembler, embed: LinearWeight | None = None) -> Assistant:
    """Assemble an assistant; `embed` is that of its model."""
    return Assistant(
        config,
        embed or weights.linear("draft_embed"),
        weights.linear("draft_from_embed"),
        weights.linear("draft_from_hidden"),
        tuple(weights.layer(index, spec) for index, spec in enumerate(config.layers)),
        weights.required_vector("output_norm"),
        weights.linear("draft_to_hidden"),
        weights.linear("output" if config.clusters is None else "centroids"),
    )
