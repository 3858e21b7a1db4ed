"""OLMo 2 and 3: norms only after each block, and one norm over the whole row of q and of k; 3 adds windowed layers."""

from typing import ClassVar

from localrun.formats.source import TensorSource
from localrun.model.archs.base import Arch
from localrun.model.archs.names import HF_POST_NORM_NAMES
from localrun.model.archs.reading import WINDOWED, hf_rope_parameters, hf_theta
from localrun.model.config import RopeSpec
from localrun.model.fields import Fields
from localrun.model.rope import rope_from_hf


class Olmo2(Arch):
    name = "olmo2"
    gguf: ClassVar[tuple[str, ...]] = ("olmo2", "olmo3")
    hf = ("Olmo2ForCausalLM", "Olmo3ForCausalLM")
    hf_names = HF_POST_NORM_NAMES
    pre_norm = False
    post_norm = True
    qk_norm = "row"
    windows = "always"
    full_every = 4
    window_rope = 1

    def ropes(self, source: TensorSource, fields: Fields, dims: int) -> tuple[RopeSpec, ...]:
        """Ropes; scaling for long contexts applies to full layers only, unless a checkpoint gives it for both kinds."""
        (full,) = super().ropes(source, fields, dims)
        if source.format == "gguf":
            return full, RopeSpec(fields["rope_theta_window"] or full.theta, dims)
        windowed = hf_rope_parameters(fields, WINDOWED)
        return full, rope_from_hf(fields, windowed, hf_theta(fields, windowed) if windowed else full.theta, dims)
