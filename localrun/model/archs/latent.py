"""Base of architectures with latent attention: its sizes in both formats, its rope and its scale."""

from collections.abc import Mapping
from typing import Any, ClassVar

from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.names import HF_EXPERT_NAMES, HF_SHARED_EXPERTS
from localrun.model.archs.reading import hf_rope_parameters
from localrun.model.config import LayerSpec, RopeSpec
from localrun.model.fields import Fields
from localrun.model.latent_sizes import LatentSizes
from localrun.model.rope import latent_scale, rope_from_gguf

CLASS_EPS = 1e-6  # of the norms of latents in transformers' classes, whatever config.json says of other norms
# As DeepSeek-V2 and V3 choose experts. A GGUF that does not say that weights sum to one has those whose do not.
SOFTMAX = ExpertRules(normalize=False, group_rank=1)
SIGMOID = ExpertRules("sigmoid", normalize=False, choice_bias=True)


class LatentArch(Arch):
    """Layers with latent attention, the first ones dense, the others with experts and some that every token uses."""

    hf_names: ClassVar[Mapping[str, str]] = {
        **HF_EXPERT_NAMES,
        **HF_SHARED_EXPERTS,
        "choice_bias": "layers.{}.mlp.gate.e_score_correction_bias",
    }

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        heads, kv_heads = fields["n_heads"], fields["n_kv_heads"]
        if kv_heads not in (None, 1, heads):
            raise fields.error(f"{kv_heads} key-value heads cannot be made of latents for {heads} heads")
        if fields.format == "gguf":
            return
        if fields.value("attention_bias"):
            raise unsupported(fields, "biases beside latents (attention_bias)")
        share = fields.within(hf_rope_parameters(fields))["partial_rotary_factor"] or fields["partial_rotary_factor"]
        if share not in (None, 1.0):
            raise unsupported(fields, f"a rope of a part of its dims (partial_rotary_factor = {share:g})")

    def base_layer(self, fields: Fields) -> LayerSpec:
        sizes = self.latent_sizes(fields)
        return LayerSpec(
            kind="full",
            window=None,
            rope=0,
            n_heads=fields["n_heads"],
            n_kv_heads=1,
            head_dim=sizes.rank + sizes.rope_dims,
            ffn_size=fields["ffn_size"],
            activation=self.read_activation(fields),
            attn_scale=sizes.key_dim**-0.5 * self.yarn_scale(fields),
            attn_softcap=fields["attn_softcap"] or None,
            latent=sizes,
        )

    def latent_sizes(self, fields: Fields) -> LatentSizes:
        """Sizes of latents and of what they make. Raises ModelFileError for those that do not fit together."""
        rank, rope_dims = fields.required("kv_rank"), fields.required("rope_dims")
        if fields.format != "gguf":
            nope_dims, value_dim = fields.required("nope_dims"), fields.required("unabsorbed_value_dim")
            interleaved = fields.value("rope_interleave") is not False
            return LatentSizes(rank, rope_dims, nope_dims, value_dim, fields["q_rank"], CLASS_EPS, interleaved)
        key_dim, value_dim = (fields[f"unabsorbed_{part}_dim"] for part in ("key", "value"))
        if key_dim is None and value_dim is None:  # early files, whose other keys are of heads
            key_dim, value_dim = fields.required("head_dim"), fields.required("value_dim")
        if key_dim is None or value_dim is None:
            raise fields.error("the size of the keys or values of a head is missing (key_length_mla, value_length_mla)")
        if key_dim <= rope_dims:
            raise fields.error(f"of keys of {key_dim} numbers {rope_dims} cannot turn")
        return LatentSizes(rank, rope_dims, key_dim - rope_dims, value_dim, fields["q_rank"] or None, fields["rms_eps"])

    def yarn_scale(self, fields: Fields) -> float:
        return latent_scale(fields, {} if fields.format == "gguf" else hf_rope_parameters(fields))

    def rope_dims(self, fields: Fields, head_dim: int) -> int:
        return int(fields.required("rope_dims"))

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        if source.format != "gguf":
            return super().ropes(source, fields, dims)
        return (rope_from_gguf(source, fields, fields["rope_theta"], dims, of_latents=True),)


def unsupported(fields: Fields, what: Any) -> ModelFileError:
    return ModelFileError("UNSUPPORTED", f"{what} cannot be run", path=fields.path)
