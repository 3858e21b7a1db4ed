"""The one forward pass. It is run once, on a recorder; what it asks for is what every step replays."""

from dataclasses import dataclass, replace

from localrun.model.config import LayerSpec, ModelConfig
from localrun.model.layer_weights import AttentionWeights, LayerWeights, MixerWeights, ModelWeights
from localrun.ops.instructions import (
    Attention,
    Embed,
    Experts,
    Linear,
    LinearWeight,
    LogitsOf,
    Moe,
    Norm,
    RopeAppend,
    Router,
    SigmoidMul,
    Value,
)
from localrun.ops.layouts import Vector
from localrun.ops.program import Ops


@dataclass(frozen=True, slots=True)
class Model:
    """A config and its weights on one device."""

    config: ModelConfig
    weights: ModelWeights

    def forward(self, ops: Ops) -> Value:
        """Ask `ops` for one step of the model -> Logits."""
        config, weights = self.config, self.weights
        (x,) = ops(Embed(weights.embed, config.embed_scale))  # [R, hidden]
        for index, (spec, layer) in enumerate(zip(config.layers, weights.layers, strict=True)):
            mixing_block = attention_block if spec.mixer is None else recurrent_block
            x = mixing_block(ops, x, index, spec, layer, config.rms_eps)
            x = ffn_block(ops, x, spec, layer, config.rms_eps)
        (a,) = ops(Norm(x, weights.output_norm, config.rms_eps))
        (logits,) = ops(LogitsOf(a, weights.output, config.logit_scale, config.logit_softcap))
        return logits


def attention_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    weights = layer.mixing
    assert isinstance(weights, AttentionWeights)
    a = normed(ops, x, layer.attn_norm, eps)
    gates = (weights.gate,) if weights.gate else ()
    q, k, v, *gate = ops(Linear(a, (weights.q, weights.k, weights.v, *gates)))
    turned_twice = spec.sink_window is not None and spec.rope is not None
    norms = (spec.qk_norm, layer.q_norm, layer.k_norm, eps)
    q, *sink_q = ops(RopeAppend(q, k, v, index, spec.rope, *norms, sink_query=turned_twice))
    rules = (spec.attn_scale, spec.attn_softcap, spec.window, weights.sinks)
    sink_query = sink_q[0] if sink_q else None
    (o,) = ops(Attention(q, index, *rules, sink_query=sink_query, sink_window=spec.sink_window))
    if gate:
        (o,) = ops(SigmoidMul(o, gate[0]))
    return close_block(ops, x, o, weights.o, layer.attn_post_norm, spec.residual_scale, eps)


def recurrent_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    weights = layer.mixing
    assert spec.mixer is not None
    assert isinstance(weights, MixerWeights)
    y = spec.mixer.mix(ops, normed(ops, x, layer.attn_norm, eps), index, weights)
    out = (weights.matrices["out"], None)
    return close_block(ops, x, y, out, layer.attn_post_norm, spec.residual_scale, eps)


def ffn_block(ops: Ops, x: Value, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    a = normed(ops, x, layer.ffn_norm, eps)
    if spec.mixture is not None:
        return mixture_block(ops, x, a, spec, layer, eps)
    (hidden,) = ops(Linear(a, (layer.gate, layer.up), act=spec.gated_activation))
    return close_block(ops, x, hidden, layer.down, layer.ffn_post_norm, spec.residual_scale, eps)


def mixture_block(ops: Ops, x: Value, a: Value, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    """A few of the layer's experts for each row, added to the residual stream."""
    experts = Experts(layer.gate, layer.up, layer.down, spec.gated_activation)
    op = Moe(a, router_of(spec, layer), experts, layer.shared, spec.residual_scale)
    if layer.ffn_post_norm is None:
        return ops(replace(op, residual=x))[0]
    (y,) = ops(op)
    return ops(Norm(y, layer.ffn_post_norm, eps, residual=x))[0]


def router_of(spec: LayerSpec, layer: LayerWeights) -> Router:
    """How a layer chooses among its experts."""
    assert spec.mixture is not None
    assert layer.router is not None
    weight, bias = layer.router
    return Router(weight, spec.mixture.routing, bias, layer.choice_bias)


def normed(ops: Ops, x: Value, norm: Vector | None, eps: float) -> Value:
    """What a block reads of the residual stream."""
    return x if norm is None else ops(Norm(x, norm, eps))[0]


def close_block(
    ops: Ops, x: Value, inner: Value, weight: LinearWeight, post_norm: Vector | None, scale: float, eps: float
) -> Value:
    """Project back to the hidden size and add to the residual stream, through a norm where the layer has one."""
    if post_norm is None:
        return ops(Linear(inner, (weight,), out_scale=scale, residual=x))[0]
    (y,) = ops(Linear(inner, (weight,), out_scale=scale))
    return ops(Norm(y, post_norm, eps, residual=x))[0]
