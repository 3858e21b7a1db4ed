"""The layer of a model that drafts tokens (multi-token prediction), as a program of its own. Torch-free.

Row i reads the embedding of token i + 1 and the model's hidden row i, after its last norm, and gives logits of token
i + 2; its own hidden row, after a norm likewise, takes the place of the model's for a draft after that. DeepSeek-V3
(arXiv 2412.19437, 2.2), in the form of Qwen3.5: one matrix for both, and the model's own embedding and output.
"""

from localrun.base.dataclass import dataclass
from localrun.model.assembly import Assembler
from localrun.model.config import ModelConfig
from localrun.model.decoder import attention_block, embedded, ffn_block
from localrun.model.layer_weights import LayerWeights
from localrun.ops.instructions import Linear, LinearWeight, LogitsOf, Norm
from localrun.ops.layouts import Vector
from localrun.ops.recording import Ops
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class DraftLayer:
    """A config with `reads_hidden`, and the weights of its one layer and around it."""

    config: ModelConfig
    embed: LinearWeight
    embed_norm: Vector
    hidden_norm: Vector
    from_embed: LinearWeight  # [hidden, hidden]
    from_hidden: LinearWeight  # [hidden, hidden]
    layer: LayerWeights
    output_norm: Vector
    output: LinearWeight

    def forward(self, ops: Ops, hidden: Value) -> Value:
        """Record one step of the layer; `hidden`: f32 [R, hidden] -> Logits."""
        config, eps = self.config, self.config.rms_eps
        (spec,) = config.layers
        (token,) = ops(Norm(embedded(ops, self.embed, config.embed_scale), self.embed_norm, eps))
        (before,) = ops(Norm(hidden, self.hidden_norm, eps))
        (x,) = ops(Linear(token, (self.from_embed,)))
        (x,) = ops(Linear(before, (self.from_hidden,), residual=x))
        x = attention_block(ops, x, 0, spec, self.layer, eps)
        x = ffn_block(ops, x, spec, self.layer, eps)
        (a,) = ops(Norm(x, self.output_norm, eps))
        output = self.output
        (logits,) = ops(LogitsOf(a, output.packed, config.logit_scale * output.scale, config.logit_softcap))
        return logits


def draft_layer(
    config: ModelConfig, weights: Assembler, embed: LinearWeight | None = None, output: LinearWeight | None = None
) -> DraftLayer:
    """Assemble the layer of a config with `reads_hidden`; `embed` and `output` are the model's, where it has none."""
    own_embed, own_output = (weights.optional_linear(f"draft_{name}") for name in ("embed", "output"))
    embed = own_embed or embed or weights.linear("embed")
    return DraftLayer(
        config,
        embed,
        weights.required_vector("draft_embed_norm"),
        weights.required_vector("draft_hidden_norm"),
        weights.linear("draft_from_embed"),
        weights.linear("draft_from_hidden"),
        weights.layer(0, config.layers[0]),
        weights.required_vector("draft_norm"),
        own_output or output or embed,
    )
