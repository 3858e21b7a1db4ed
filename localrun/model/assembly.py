"""Assembly of a model's weights by their part, from any source. Torch-free."""

from abc import ABC, abstractmethod
from dataclasses import replace

from localrun.model.config import LayerSpec, ModelConfig, RecurrentMixer
from localrun.model.layer_weights import (
    AttentionWeights,
    LatentWeights,
    LayerWeights,
    MixerWeights,
    ModelWeights,
    PerLayerTable,
    PerLayerWeights,
    SeparateNorms,
)
from localrun.model.shapes import NORMS_APART, XIELU
from localrun.model.xielu import XieluNumbers
from localrun.ops.instructions import Experts, LinearWeight, LowRank, SharedExpert
from localrun.ops.layouts import Packed, Vector

VECTORS = (
    "attn_norm",
    "attn_post_norm",
    "ffn_norm",
    "ffn_post_norm",
    "q_norm",
    "k_norm",
    "choice_bias",
    "expert_scale",
)


class Assembler(ABC):
    """Requests every weight by localrun's name (`embed`, `layers.3.q`, …), as `weight_shapes` lists them."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether the model has a weight."""

    @abstractmethod
    def matrix(self, name: str) -> Packed: ...
    @abstractmethod
    def table(self, name: str) -> Packed:
        """A matrix whose rows are looked up, as stored in the file."""

    @abstractmethod
    def required_vector(self, name: str) -> Vector: ...
    @abstractmethod
    def ones(self, n: int) -> Vector:
        """The weights of a norm that has none."""

    @abstractmethod
    def number(self, name: str) -> float:
        """A vector of one."""

    def scale(self, name: str) -> float | Vector:
        """The factor on the products of a matrix; one number for each expert."""
        return 1.0

    def gather(self, name: str) -> Vector | None:
        """The order of a matrix's columns, where it has one of its own."""
        return None

    def adapters(self, name: str) -> tuple[LowRank, ...]:
        """Additions of adapters to the products of a matrix."""
        return ()

    def weights(self, config: ModelConfig) -> ModelWeights:
        embed = self.linear("embed")
        layers = tuple(self.layer(index, spec) for index, spec in enumerate(config.layers))
        output = self.linear("output") if self.has("output") else embed
        embed_norm = self.ones(config.hidden_size) if config.norms_embedding else None
        output_norm = self.required_vector("output_norm")
        return ModelWeights(embed, layers, output_norm, output, self.per_layer_table(), embed_norm)

    def layer(self, index: int, spec: LayerSpec) -> LayerWeights:
        prefix = f"layers.{index}."
        gate, up, down = (self.optional_linear(prefix + name) for name in ("gate", "up", "down"))
        vectors = {name: self.vector(prefix + name) for name in VECTORS}
        if spec.bare_qk_norm:
            vectors |= dict.fromkeys(("q_norm", "k_norm"), self.ones(spec.head_dim))
        router = self.linear(prefix + "router") if spec.mixture else None
        shared = self.shared_expert(prefix, spec) if spec.mixture and spec.mixture.shared_size else None
        return LayerWeights(
            self.mixing(prefix, spec),
            gate,
            up,
            down,
            **vectors,
            router=router,
            shared=shared,
            separate_norms=self.separate_norms(prefix) if spec.mixture and spec.mixture.apart else None,
            per_layer=self.per_layer(prefix),
            xielu=self.xielu(prefix, spec) if spec.activation == "xielu" else None,
            out_scale=self.number(prefix + "out_scale") if self.has(prefix + "out_scale") else 1.0,
        )

    def mixing(self, prefix: str, spec: LayerSpec) -> AttentionWeights | LatentWeights | MixerWeights | None:
        if spec.mixer is not None:
            return self.mixer(prefix, spec.mixer)
        if spec.latent is not None:
            return self.latent_attention(prefix)
        return self.attention(prefix) if spec.has_attention else None

    def xielu(self, prefix: str, spec: LayerSpec) -> XieluNumbers:
        return spec.xielu or XieluNumbers(*(self.number(prefix + name) for name in XIELU))

    def separate_norms(self, prefix: str) -> SeparateNorms:
        names = (*NORMS_APART, "router_norm")
        return SeparateNorms(*(self.required_vector(prefix + name) for name in names))

    def per_layer_table(self) -> PerLayerTable | None:
        if not self.has("per_layer_embed"):
            return None
        table = LinearWeight(self.table("per_layer_embed"), scale=self.scale("per_layer_embed"))
        return PerLayerTable(table, self.linear("per_layer_projection"), self.required_vector("per_layer_norm"))

    def per_layer(self, prefix: str) -> PerLayerWeights | None:
        if not self.has(prefix + "besides_gate"):
            return None
        gate, out = (self.linear(f"{prefix}besides_{name}") for name in ("gate", "out"))
        return PerLayerWeights(gate, out, self.required_vector(prefix + "besides_norm"))

    def attention(self, prefix: str) -> AttentionWeights:
        q, o = self.linear(prefix + "q"), self.linear(prefix + "o")
        k, v, gate = (self.optional_linear(prefix + name) for name in ("k", "v", "attn_gate"))
        return AttentionWeights(q, k, v, o, gate, self.vector(prefix + "sinks"))

    def latent_attention(self, prefix: str) -> LatentWeights:
        return LatentWeights(
            self.optional_linear(prefix + "q_a"),
            self.vector(prefix + "q_a_norm"),
            self.linear(prefix + "q_nope"),
            self.linear(prefix + "q_rope"),
            self.linear(prefix + "kv_a"),
            self.required_vector(prefix + "kv_a_norm"),
            self.linear(prefix + "k_rope"),
            self.linear(prefix + "k_b"),
            self.linear(prefix + "v_b"),
            self.linear(prefix + "o"),
        )

    def mixer(self, prefix: str, mixer: RecurrentMixer) -> MixerWeights:
        matrices = {name: self.unbiased(prefix + name) for name in mixer.matrices(0)}
        return MixerWeights(matrices, {name: self.required_vector(prefix + name) for name in mixer.vectors()})

    def shared_expert(self, prefix: str, spec: LayerSpec) -> SharedExpert:
        gate = self.optional_linear(prefix + "shared_gate")
        up, down = (self.linear(f"{prefix}shared_{name}") for name in ("up", "down"))
        name = prefix + "shared_router"
        router = self.matrix(name) if self.has(name) else None
        return SharedExpert(Experts(gate, up, down, spec.ffn_activation), router)

    def linear(self, name: str) -> LinearWeight:
        return replace(self.unbiased(name), bias=self.vector(name + "_bias"))

    def unbiased(self, name: str) -> LinearWeight:
        """A matrix of a mixer without bias, since one of its vectors may have a bias's name."""
        return LinearWeight(self.matrix(name), None, self.scale(name), self.adapters(name), self.gather(name))

    def optional_linear(self, name: str) -> LinearWeight | None:
        return self.linear(name) if self.has(name) else None

    def vector(self, name: str) -> Vector | None:
        return self.required_vector(name) if self.has(name) else None
