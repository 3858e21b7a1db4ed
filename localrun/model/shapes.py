"""Shapes of all weights that a model may have, by localrun's names: the one place that knows them. Torch-free."""

from math import prod
from typing import TypeAlias

from localrun.model.config import LayerSpec, Mixture, ModelConfig
from localrun.model.latent_sizes import LatentSizes

Shapes: TypeAlias = dict[str, tuple[int, ...]]  # matrices [n_rows, n_cols], vectors [n]
Ranks: TypeAlias = tuple[tuple[str, int], ...]  # of an adapter, for every weight that it changes
NORMS_APART = ("shared_post_norm", "experts_norm", "experts_post_norm")
BIASED = ("q", "k", "v", "o", "gate", "up", "down")  # matrices of a layer that may have a bias
XIELU = ("xielu_alpha_p", "xielu_alpha_n", "xielu_beta", "xielu_eps")  # a number each, as `XieluNumbers` has them
# In some files alone: an output that is not the embedding, biases (those of a mixture are known), a layer's scale, and
# what a layer that drafts may have of its own.
OWN_OF_DRAFT = ("draft_embed", "draft_output")
OPTIONAL = frozenset(("output", "out_scale", *OWN_OF_DRAFT, *(f"{name}_bias" for name in BIASED)))


def weight_shapes(config: ModelConfig) -> Shapes:
    """Shapes of every weight: `embed`, `layers.3.q`, …; including OPTIONAL ones that a file may lack."""
    shapes = outer_shapes(config)
    for index, spec in enumerate(config.layers):
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer_shapes(config, spec).items()}
    return shapes


def outer_shapes(config: ModelConfig) -> Shapes:
    """Shapes of the weights before and after all layers: `embed`, `output`, …"""
    if config.body_size:
        return assistant_shapes(config)
    hidden, of_all = config.hidden_size, config.n_layers * config.per_layer_size
    shapes: Shapes = {"embed": (config.vocab_size, hidden), "output_norm": (hidden,)}
    shapes["output"] = shapes["embed"]
    if size := config.per_layer_size:
        shapes["per_layer_embed"] = (config.vocab_size, of_all)
        shapes["per_layer_projection"] = (of_all, hidden)
        shapes["per_layer_norm"] = (size,)
    if config.reads_hidden:
        shapes |= draft_shapes(config)
    return shapes


def draft_shapes(config: ModelConfig) -> Shapes:
    """Shapes of the weights beside the layer that drafts: both halves of a matrix for a token's embedding and the
    hidden row before it, their norms, the last norm."""
    hidden = config.hidden_size
    shapes: Shapes = {f"draft_{name}": (hidden,) for name in ("embed_norm", "hidden_norm", "norm")}
    shapes |= {"draft_from_embed": (hidden, hidden), "draft_from_hidden": (hidden, hidden)}
    return shapes | dict.fromkeys(OWN_OF_DRAFT, (config.vocab_size, hidden))


def assistant_shapes(config: ModelConfig) -> Shapes:
    """Shapes of the weights around the layers of an assistant: `draft_embed` is the embedding of its model, whose
    hidden rows it reads and gives."""
    hidden, body = config.hidden_size, config.body_size
    shapes: Shapes = {"draft_embed": (config.vocab_size, body), "output": (config.vocab_size, hidden)}
    shapes |= {
        "draft_from_embed": (hidden, body),
        "draft_from_hidden": (hidden, body),
        "draft_to_hidden": (body, hidden),
    }
    if config.clusters is not None:
        shapes["centroids"] = (config.clusters.n, hidden)
    return shapes | {"output_norm": (hidden,)}


def layer_shapes(config: ModelConfig, spec: LayerSpec) -> Shapes:
    """Shapes of the weights of one layer: `attn_norm`, `q`, …"""
    hidden = config.hidden_size
    shapes: Shapes = {}
    for block, present in (("attn", spec.kind != "none"), ("ffn", spec.ffn_size > 0)):
        norms = {f"{block}_norm": spec.pre_norm, f"{block}_post_norm": spec.post_norm}
        shapes |= {name: (hidden,) for name, has_it in norms.items() if present and has_it}
    if spec.mixer is not None:
        shapes |= spec.mixer.matrices(hidden)
        shapes |= {name: (prod(sizes),) for name, sizes in spec.mixer.vectors().items()}
    elif spec.latent is not None:
        shapes |= latent_shapes(hidden, spec.n_heads, spec.latent)
    elif spec.has_attention:
        shapes |= attention_shapes(hidden, spec)
    if spec.mixture is not None:
        shapes |= mixture_shapes(hidden, spec, spec.mixture) if spec.ffn_size else {}
    elif spec.ffn_size:
        networks = network_shapes(hidden, spec.ffn_size, spec.has_gate)
        shapes |= networks | {f"{name}_bias": (n_rows,) for name, (n_rows, _) in networks.items()}
    if spec.activation == "xielu" and spec.xielu is None:
        shapes |= dict.fromkeys(XIELU, (1,))
    if size := config.per_layer_size:
        shapes |= {"besides_gate": (size, hidden), "besides_out": (hidden, size), "besides_norm": (hidden,)}
    return shapes | {"out_scale": (1,)}


def attention_shapes(hidden: int, spec: LayerSpec) -> Shapes:
    """Shapes of head or row norms, matrices with their biases, and learned scores."""
    q_rows, kv_rows = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
    heads = {"q": q_rows} | dict.fromkeys(made_of_a_token(spec), kv_rows)
    shapes: Shapes = {}
    if spec.qk_norm != "none" and not spec.bare_qk_norm:
        normed = heads if spec.qk_norm == "row" else dict.fromkeys(heads, spec.head_dim)
        shapes |= {f"{name}_norm": (n,) for name, n in normed.items() if name != "v"}
    shapes |= {name: (n_rows, hidden) for name, n_rows in heads.items()}
    if spec.gated:
        shapes["attn_gate"] = (q_rows, hidden)
    if spec.sinks:
        shapes["sinks"] = (spec.n_heads,)
    return shapes | {"o": (hidden, q_rows)} | {f"{name}_bias": (n,) for name, n in (heads | {"o": hidden}).items()}


def latent_shapes(hidden: int, n_heads: int, sizes: LatentSizes) -> Shapes:
    """Shapes of the matrices of latent attention, and of the norms of latents."""
    of_queries: Shapes = {}
    if sizes.q_rank is not None:
        of_queries = {"q_a": (sizes.q_rank, hidden), "q_a_norm": (sizes.q_rank,)}
    n_in = sizes.q_rank or hidden
    return of_queries | {
        "q_nope": (n_heads * sizes.nope_dims, n_in),
        "q_rope": (n_heads * sizes.rope_dims, n_in),
        "kv_a": (sizes.rank, hidden),
        "kv_a_norm": (sizes.rank,),
        "k_rope": (sizes.rope_dims, hidden),
        "k_b": (n_heads * sizes.rank, sizes.nope_dims),
        "v_b": (n_heads * sizes.value_dim, sizes.rank),
        "o": (hidden, n_heads * sizes.value_dim),
    }


def network_shapes(hidden: int, size: int, has_gate: bool) -> dict[str, tuple[int, int]]:
    """Shapes of the matrices of one feed-forward network."""
    return ({"gate": (size, hidden)} if has_gate else {}) | {"up": (size, hidden), "down": (hidden, size)}


def mixture_shapes(hidden: int, spec: LayerSpec, mixture: Mixture) -> Shapes:
    """Shapes of a router, the networks of all experts, the shared one, and their own norms."""
    n = mixture.n_experts
    shapes: Shapes = {"router": (n, hidden)}
    if mixture.biases:
        shapes["router_bias"] = (n,)
    if mixture.choice_bias:
        shapes["choice_bias"] = (n,)
    for name, (n_rows, n_cols) in network_shapes(hidden, spec.ffn_size, spec.has_gate).items():
        shapes[name] = (n * n_rows, n_cols)
        if mixture.biases:
            shapes[f"{name}_bias"] = (n * n_rows,)
    if size := mixture.shared_size:
        shapes |= {f"shared_{name}": shape for name, shape in network_shapes(hidden, size, spec.has_gate).items()}
        shapes |= {"shared_router": (1, hidden)} if mixture.shared_gate else {}
    if mixture.apart:
        shapes |= dict.fromkeys((*NORMS_APART, "router_norm"), (hidden,)) | {"expert_scale": (n,)}
    return shapes


def made_of_a_token(spec: LayerSpec) -> tuple[str, ...]:
    """Which of keys and values a layer has matrices for."""
    if spec.shares_cache is not None:
        return ()
    return ("k",) if spec.k_is_v else ("k", "v")
