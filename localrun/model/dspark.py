"""Programs of DSpark: one stores keys and values of a text, another guesses the block of tokens after it. Torch-free.

Of every token the model gives rows after some of its layers, which one matrix brings together. Of these each layer
makes the keys and values that the rows of a block read, beside those of the whole block: the newest token and masks.
"""

from localrun.base.dataclass import dataclass
from localrun.model.assembly import Assembler
from localrun.model.config import ModelConfig
from localrun.model.decoder import projections
from localrun.model.layer_weights import AttentionWeights, ModelWeights, TapWeights
from localrun.ops.instructions import LogitsOf, RopeAppend
from localrun.ops.recording import Ops
from localrun.ops.types import Value


@dataclass(frozen=True, slots=True)
class ContextProgram:
    """Stores keys and values of rows that the model gives."""

    config: ModelConfig
    weights: ModelWeights

    def forward(self, ops: Ops, rows: Value) -> Value:
        """Record one step; `rows`: f32 [R, hidden] -> Logits, which mean nothing."""
        config = self.config
        for index, (spec, layer) in enumerate(zip(config.layers, self.weights.layers, strict=True)):
            assert isinstance(layer.mixing, AttentionWeights)
            q, k, v, _ = projections(ops, rows, layer.mixing)
            norms = (spec.qk_norm, layer.q_norm, layer.k_norm, config.rms_eps, spec.v_norm)
            ops(RopeAppend(q, k, v, index, spec.rope, *norms))
        return ops(LogitsOf(rows, self.weights.output.packed))[0]


def tap_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of the matrices for rows after some layers of a model, and of the norm of their sum."""
    hidden = config.hidden_size
    return {f"taps.{layer}": (hidden, hidden) for layer in config.taps} | (
        {"taps.norm": (hidden,)} if config.taps else {}
    )


def tap_weights(taps: tuple[int, ...], weights: Assembler, eps: float) -> TapWeights | None:
    """Assemble these; `eps`: of the norm. None where nothing reads such rows."""
    if not taps:
        return None
    matrices = {layer: weights.linear(f"taps.{layer}") for layer in taps}
    return TapWeights(matrices, weights.required_vector("taps.norm"), eps)
