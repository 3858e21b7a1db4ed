"""Muse Glimmer: gated attention with a window and rope; every fourth layer sees everything and has no rope."""

import math
from dataclasses import replace

from localrun.base.errors import ModelFileError
from localrun.model.archs.base import Arch
from localrun.model.archs.names import HF_POST_NORM_NAMES
from localrun.model.archs.reading import hf_rope_parameters, hf_theta
from localrun.model.config import LayerSpec
from localrun.model.fields import Fields


class MuseGlimmer(Arch):
    name = "muse-glimmer"
    gguf = ("muse-glimmer",)
    hf = ("MuseGlimmerForConditionalGeneration",)
    hf_names = HF_POST_NORM_NAMES
    permuted_in_gguf = True
    hf_norm_offset = 1.0
    norms_as_written = frozenset(("output_norm",))
    qk_norm = "head"
    post_norm = True
    post_eps = 1e-8
    norms_embedding = True
    windows = "always"
    full_every = 4

    def check_supported(self, fields: Fields) -> None:
        super().check_supported(fields)
        if fields.format != "gguf" and not math.isclose(fields.required("post_eps"), self.post_eps):
            told = f"a {self.name} model is run with {self.post_eps:g} (post_norm_eps = {fields['post_eps']:g})"
            raise ModelFileError("UNSUPPORTED", told, path=fields.path)

    def base_layer(self, fields: Fields) -> LayerSpec:
        """A GGUF has the factor of queries as the weights of their norm, a checkpoint has no such weights."""
        return replace(super().base_layer(fields), gated=True, bare_qk_norm=fields.format != "gguf")

    def attn_scale(self, fields: Fields, head_dim: int) -> float:
        factor = 1.0 if fields.format == "gguf" else float(fields.required("q_factor"))
        return factor * super().attn_scale(fields, head_dim)

    def layer(self, fields: Fields, index: int, base: LayerSpec, windowed: bool) -> LayerSpec:
        spec = super().layer(fields, index, base, windowed)
        uses_rope = windowed if fields.format == "gguf" else self.uses_rope(fields)[index]
        return spec if uses_rope else replace(spec, rope=None)

    def window_pattern(self, fields: Fields) -> list[bool] | int | None:
        """The layers that a checkpoint does not list are counted from the last one."""
        pattern = super().window_pattern(fields)
        return pattern if fields.format == "gguf" or pattern is not None else self.all_but_every_fourth(fields)

    def uses_rope(self, fields: Fields) -> list[bool]:
        """Whether each layer of a checkpoint encodes positions: it lists their bases, 0 for none and one for all."""
        thetas = fields.value("layer_rope_theta")
        if thetas is None:
            return self.all_but_every_fourth(fields)
        n_layers, theta = fields["n_layers"], hf_theta(fields, hf_rope_parameters(fields))
        if not isinstance(thetas, list) or len(thetas) != n_layers:
            raise fields.error(f"layer_rope_theta should hold one number for each of {n_layers} layers")
        if any(one not in (0, theta) for one in thetas):
            told = f"layer_rope_theta has layers with other bases than {theta:g}, which cannot be run"
            raise ModelFileError("UNSUPPORTED", told, path=fields.path)
        return [one != 0 for one in thetas]

    def all_but_every_fourth(self, fields: Fields) -> list[bool]:
        """Flags of layers, of which every fourth, counted from the last one, is none."""
        n_layers = fields["n_layers"]
        return [(n_layers - 1 - index) % self.full_every != 0 for index in range(n_layers)]

    def logit_scale(self, fields: Fields) -> float:
        return float(fields["logit_scale"])
