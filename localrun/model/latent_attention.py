"""The program of latent attention: one arithmetic for every row, queries brought to the latents of all tokens."""

from localrun.model.config import LayerSpec
from localrun.model.layer_weights import LatentWeights
from localrun.ops.instructions import Attention, Linear, Norm
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.recording import Ops
from localrun.ops.types import Value


def attend_latents(ops: Ops, a: Value, index: int, spec: LayerSpec, weights: LatentWeights) -> Value:
    """Record layer `index`: normed `a`, f32 [R, hidden] -> the operand of its output matrix."""
    assert spec.latent is not None
    eps, n_heads, of_keys = spec.latent.eps, spec.n_heads, (weights.kv_a, weights.k_rope)
    queries = (weights.q_nope, weights.q_rope)
    if weights.q_a is None:
        q_nope, q_rope, latent, k_rope = ops(Linear(a, (*queries, *of_keys)))
    else:
        made_of, latent, k_rope = ops(Linear(a, (weights.q_a, *of_keys)))
        (made_of,) = ops(Norm(made_of, weights.q_a_norm, eps))
        q_nope, q_rope = ops(Linear(made_of, queries))
    (latent,) = ops(Norm(latent, weights.kv_a_norm, eps))
    (q,) = ops(HeadLinear(q_nope, weights.k_b, n_heads))  # [R, n_heads · rank]
    (q,) = ops(LatentAppend(q, q_rope, latent, k_rope, index, spec.rope))
    (o,) = ops(Attention(q, index, spec.attn_scale, spec.attn_softcap))
    return ops(HeadLinear(o, weights.v_b, n_heads))[0]
