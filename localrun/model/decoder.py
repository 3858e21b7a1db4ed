"""The one forward pass. It runs once, on a recorder; every step replays the recorded program."""

from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.model.config import LayerSpec, ModelConfig
from localrun.model.latent_attention import attend_latents
from localrun.model.layer_weights import (
    AttentionWeights,
    LatentWeights,
    LayerWeights,
    MixerWeights,
    ModelWeights,
    PerLayerTable,
    PerLayerWeights,
    SeparateNorms,
    TapWeights,
)
from localrun.ops.instructions import (
    AddImageRows,
    Attention,
    Embed,
    Experts,
    GeluMul,
    Linear,
    LinearWeight,
    LogitsOf,
    Moe,
    Norm,
    RopeAppend,
    Router,
    Scale,
    SigmoidMul,
    Xielu,
)
from localrun.ops.layouts import Vector
from localrun.ops.recording import Ops
from localrun.ops.types import Value

PAD = 0  # the token whose per-layer embedding rows of images have (Gemma 4)


@dataclass(frozen=True, slots=True)
class Model:
    """A config and its weights on one device."""

    config: ModelConfig
    weights: ModelWeights
    taps: TapWeights | None = None

    def forward(self, ops: Ops) -> Value:
        """Record one step of the model -> Logits, and the rows of its taps beside them."""
        config, weights = self.config, self.weights
        x = embedded(ops, weights.embed, config.embed_scale)  # [R, hidden]
        x = normed(ops, x, weights.embed_norm, config.rms_eps)
        tapped = self.tap(ops, x, -1, None)
        per_layer = per_layer_inputs(ops, x, weights.per_layer, config) if weights.per_layer else None
        for index, (spec, layer) in enumerate(zip(config.layers, weights.layers, strict=True)):
            if layer.mixing is not None:
                x = mixing_block(ops, x, index, spec, layer, config.rms_eps)
            if spec.ffn_size:
                x = ffn_block(ops, x, spec, layer, config.rms_eps)
            if layer.per_layer is not None:
                x = per_layer_block(ops, x, per_layer, index, layer.per_layer, config)
            if layer.out_scale != 1.0:
                (x,) = ops(Scale(x, layer.out_scale))
            if index < config.n_added:
                (x,) = ops(AddImageRows(x, index))
            tapped = self.tap(ops, x, index, tapped)
        if self.taps is not None and tapped is not None:
            (tapped,) = ops(Norm(tapped, self.taps.norm, self.taps.eps))
        (a,) = ops(Norm(x, weights.output_norm, config.rms_eps))
        output, scale = weights.output, config.logit_scale * weights.output.scale
        (logits,) = ops(LogitsOf(a, output.packed, scale, config.logit_softcap, beside=tapped))
        return logits

    def tap(self, ops: Ops, x: Value, index: int, before: Value | None) -> Value | None:
        """Add what the rows after layer `index` give to what drafts beside the model -> the sum so far."""
        if self.taps is None or index not in self.taps.matrices:
            return before
        return ops(Linear(x, (self.taps.matrices[index],), residual=before))[0]


def embedded(ops: Ops, weight: LinearWeight, scale: float, image_id: int | None = None) -> Value:
    """Rows of a table by the step's token ids, times `scale`; `image_id`: what rows of images read in place of their
    own -> f32 [R, n]."""
    return ops(Embed(weight.packed, scale * weight.scale, image_id))[0]


def mixing_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    """Attention or a mixer, added to the residual stream."""
    if spec.latent is not None:
        return latent_block(ops, x, index, spec, layer, eps)
    return (attention_block if spec.mixer is None else recurrent_block)(ops, x, index, spec, layer, eps)


def attention_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    weights = layer.mixing
    assert isinstance(weights, AttentionWeights)
    a = normed(ops, x, layer.attn_norm, eps)
    q, k, v, gate = projections(ops, a, weights)
    index = index if spec.shares_cache is None else spec.shares_cache
    turned_twice = spec.sink_window is not None and spec.rope is not None
    norms = (spec.qk_norm, layer.q_norm, layer.k_norm, eps, spec.v_norm)
    q, *sink_q = ops(RopeAppend(q, k, v, index, spec.rope, *norms, sink_query=turned_twice))
    rules = (spec.attn_scale, spec.attn_softcap, spec.window, weights.sinks)
    sink_query = sink_q[0] if sink_q else None
    (o,) = ops(Attention(q, index, *rules, sink_query=sink_query, sink_window=spec.sink_window, spans=spec.image_spans))
    if gate is not None:
        (o,) = ops(SigmoidMul(o, gate))
    return close_block(ops, x, o, weights.o, layer.attn_post_norm, spec.residual_scale, spec.post_eps or eps)


def latent_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    weights = layer.mixing
    assert isinstance(weights, LatentWeights)
    o = attend_latents(ops, normed(ops, x, layer.attn_norm, eps), index, spec, weights)
    return close_block(ops, x, o, weights.o, layer.attn_post_norm, spec.residual_scale, spec.post_eps or eps)


def projections(ops: Ops, a: Value, weights: AttentionWeights) -> tuple[Value | None, ...]:
    """q, k, v and gate, None for what the layer does not make; v is k where it has no matrix of its own."""
    wanted = (weights.q, weights.k, weights.v, weights.gate)
    made = iter(ops(Linear(a, tuple(weight for weight in wanted if weight is not None))))
    q, k, v, gate = (None if weight is None else next(made) for weight in wanted)
    return q, k, k if v is None else v, gate


def per_layer_inputs(ops: Ops, x: Value, table: PerLayerTable, config: ModelConfig) -> Value:
    """Per-layer embedding of each token -> f32 [R, n_layers · size]: a row of the table, and a projection
    of the embedding."""
    row = embedded(ops, table.embed, config.per_layer_size**0.5, image_id=PAD)
    (projected,) = ops(Linear(x, (table.projection,), out_scale=config.hidden_size**-0.5))
    (total,) = ops(Norm(projected, table.norm, config.rms_eps, residual=row))
    return ops(Scale(total, 0.5**0.5))[0]


def per_layer_block(
    ops: Ops, x: Value, per_layer: Value, index: int, weights: PerLayerWeights, config: ModelConfig
) -> Value:
    """Add the layer's part of the per-layer embedding, gated by the residual stream."""
    (gate,) = ops(Linear(x, (weights.gate,)))
    (gated,) = ops(GeluMul(gate, per_layer, index * config.per_layer_size))
    return close_block(ops, x, gated, weights.out, weights.norm, 1.0, config.rms_eps)


def recurrent_block(ops: Ops, x: Value, index: int, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    weights = layer.mixing
    assert spec.mixer is not None
    assert isinstance(weights, MixerWeights)
    y = spec.mixer.mix(ops, normed(ops, x, layer.attn_norm, eps), index, weights)
    return close_block(
        ops, x, y, weights.matrices["out"], layer.attn_post_norm, spec.residual_scale, spec.post_eps or eps
    )


def ffn_block(ops: Ops, x: Value, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    a = normed(ops, x, layer.ffn_norm, eps)
    if spec.mixture is not None:
        return mixture_block(ops, x, a, spec, layer, eps)
    network = networks_of(spec, layer)
    (hidden,) = ops(Linear(a, network.widening, act=network.act))
    if layer.xielu is not None:
        (hidden,) = ops(Xielu(hidden, *layer.xielu.operands))
    return close_block(ops, x, hidden, network.down, layer.ffn_post_norm, spec.residual_scale, spec.post_eps or eps)


def networks_of(spec: LayerSpec, layer: LayerWeights) -> Experts:
    """The layer's feed-forward network, or all of its experts."""
    assert layer.up is not None
    assert layer.down is not None
    return Experts(layer.gate, layer.up, layer.down, spec.ffn_activation)


def mixture_block(ops: Ops, x: Value, a: Value, spec: LayerSpec, layer: LayerWeights, eps: float) -> Value:
    """A few of the layer's experts for each row, added to the residual stream."""
    if layer.separate_norms is not None:
        return branches_block(ops, x, a, spec, layer, layer.separate_norms, eps)
    op = Moe(a, router_of(spec, layer), networks_of(spec, layer), layer.shared, spec.residual_scale)
    if layer.ffn_post_norm is None:
        return ops(replace(op, residual=x))[0]
    (y,) = ops(op)
    return ops(Norm(y, layer.ffn_post_norm, spec.post_eps or eps, residual=x))[0]


def branches_block(
    ops: Ops, x: Value, a: Value, spec: LayerSpec, layer: LayerWeights, norms: SeparateNorms, eps: float
) -> Value:
    """A network for every row and a few experts beside it: each with norms of its own, and one for the sum."""
    assert layer.shared is not None
    every, experts = layer.shared.expert, networks_of(spec, layer)
    (hidden,) = ops(Linear(a, every.widening, act=every.act))
    (y,) = ops(Linear(hidden, (every.down,)))
    (of_every,) = ops(Norm(y, norms.shared_post, eps))
    (read,), (chosen_by,) = (ops(Norm(x, weight, eps)) for weight in (norms.experts, norms.router))
    (y,) = ops(Moe(read, router_of(spec, layer), experts, chosen_by=chosen_by))
    (both,) = ops(Norm(y, norms.experts_post, eps, residual=of_every))
    if layer.ffn_post_norm is None:
        return both
    return ops(Norm(both, layer.ffn_post_norm, spec.post_eps or eps, residual=x))[0]


def router_of(spec: LayerSpec, layer: LayerWeights) -> Router:
    """Router of a layer with experts."""
    assert spec.mixture is not None
    assert layer.router is not None
    return Router(layer.router.packed, spec.mixture.routing, layer.router.bias, layer.choice_bias, layer.expert_scale)


def normed(ops: Ops, x: Value, norm: Vector | None, eps: float) -> Value:
    """Input of a block: the residual stream, normalised where there is a norm."""
    return x if norm is None else ops(Norm(x, norm, eps))[0]


def close_block(
    ops: Ops, x: Value, inner: Value, weight: LinearWeight, post_norm: Vector | None, scale: float, eps: float
) -> Value:
    """Project back to the hidden size and add to the residual stream, through a norm where the layer has one."""
    if post_norm is None:
        return ops(Linear(inner, (weight,), out_scale=scale, residual=x))[0]
    (y,) = ops(Linear(inner, (weight,), out_scale=scale))
    return ops(Norm(y, post_norm, eps, residual=x))[0]
