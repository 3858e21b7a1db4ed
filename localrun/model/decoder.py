"""The one forward pass. It is run once, on a recorder; what it asks for is what every step replays."""

from dataclasses import dataclass

from localrun.model.config import LayerSpec, Mixture, ModelConfig
from localrun.ops.interface import Ops, Value
from localrun.ops.layouts import Packed, Vector
from localrun.ops.terms import GatedActivation

GATED: dict[str, GatedActivation] = {"silu": "silu_mul", "gelu": "gelu_mul"}
Linear = tuple[Packed, Vector | None]  # weight and bias


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one layer; what its LayerSpec does not use is None. In a mixture gate, up and down are those of all
    experts, one after the other."""

    q: Linear
    k: Linear
    v: Linear
    o: Linear
    gate: Linear
    up: Linear
    down: Linear
    attn_norm: Vector | None = None
    attn_post_norm: Vector | None = None
    ffn_norm: Vector | None = None
    ffn_post_norm: Vector | None = None
    q_norm: Vector | None = None
    k_norm: Vector | None = None
    router: Packed | None = None


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """All weights. With tied embeddings `output` is `embed` itself."""

    embed: Packed
    layers: tuple[LayerWeights, ...]
    output_norm: Vector
    output: Packed


@dataclass(frozen=True, slots=True)
class Model:
    """A config and its weights on one device."""

    config: ModelConfig
    weights: ModelWeights

    def forward(self, ops: Ops) -> Value:
        """Ask `ops` for one step of the model -> Logits."""
        config, weights = self.config, self.weights
        x = ops.embed(weights.embed, config.embed_scale)  # [R, hidden]
        for index, (spec, layer) in enumerate(zip(config.layers, weights.layers, strict=True)):
            x = attention_block(ops, x, index, spec, layer, config.rms_eps)
            x = ffn_block(ops, x, spec, layer, config.rms_eps)
        a = ops.norm(x, weights.output_norm, config.rms_eps)
        return ops.logits(a, weights.output, config.logit_scale, config.logit_softcap)


def attention_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    a = x if layer.attn_norm is None else ops.norm(x, layer.attn_norm, eps)
    q, k, v = ops.linear(a, [layer.q, layer.k, layer.v])
    turned_twice = spec.sink_window is not None and spec.rope is not None
    q, sink_q = ops.rope_append(
        q, k, v, index, spec.rope, spec.qk_norm, layer.q_norm, layer.k_norm, eps, sink_query=turned_twice
    )
    o = ops.attention(
        q, index, spec.attn_scale, spec.attn_softcap, spec.window, sink_query=sink_q, sink_window=spec.sink_window
    )
    return close_block(ops, x, o, layer.o, layer.attn_post_norm, spec.residual_scale, eps)


def ffn_block(ops: Ops, x: Value, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    a = x if layer.ffn_norm is None else ops.norm(x, layer.ffn_norm, eps)
    if spec.mixture is not None and layer.router is not None:
        return mixture_block(ops, x, a, spec, spec.mixture, layer, layer.router, eps)
    (hidden,) = ops.linear(a, [layer.gate, layer.up], act=GATED[spec.activation])
    return close_block(ops, x, hidden, layer.down, layer.ffn_post_norm, spec.residual_scale, eps)


def mixture_block(
    ops: Ops, x: Value, a: Value, spec: LayerSpec, mixture: Mixture, layer: LayerWeights, router: Packed, eps: float
) -> Value:
    """A few of the layer's experts for each row, added to the residual stream."""
    experts = (layer.gate[0], layer.up[0], layer.down[0])
    chosen = (mixture.n_used, mixture.normalize, GATED[spec.activation], spec.residual_scale)
    if layer.ffn_post_norm is None:
        return ops.moe(a, router, experts, *chosen, residual=x)
    return ops.norm(ops.moe(a, router, experts, *chosen), layer.ffn_post_norm, eps, residual=x)


def close_block(
    ops: Ops, x: Value, inner: Value, weight: Linear, post_norm: Vector | None, scale: float, eps: float
) -> Value:
    """Project back to the hidden size and add to the residual stream, through a norm where the layer has one."""
    if post_norm is None:
        return ops.linear(inner, [weight], out_scale=scale, residual=x)[0]
    (y,) = ops.linear(inner, [weight], out_scale=scale)
    return ops.norm(y, post_norm, eps, residual=x)
