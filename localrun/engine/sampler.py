"""Sampler settings of a request, with every choice made; the chain itself is `ops.sampling`."""

from localrun.base.dataclass import dataclass
from localrun.base.request import DEFAULT_SAMPLING, Sampling

MAX_SEED = 2**53  # of the seeds we draw: readers of JSON in other languages keep no more digits


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """A Sampling with every choice made."""

    temperature: float = DEFAULT_SAMPLING["temperature"]
    top_k: int = int(DEFAULT_SAMPLING["top_k"])
    top_p: float = DEFAULT_SAMPLING["top_p"]
    min_p: float = DEFAULT_SAMPLING["min_p"]
    repeat_penalty: float = DEFAULT_SAMPLING["repeat_penalty"]
    presence_penalty: float = DEFAULT_SAMPLING["presence_penalty"]
    frequency_penalty: float = DEFAULT_SAMPLING["frequency_penalty"]

    @property
    def adjusts_logits(self) -> bool:
        """Penalties, or a temperature of the row's logsumexp."""
        penalties = self.repeat_penalty != 1.0 or self.presence_penalty or self.frequency_penalty
        return bool(penalties) or self.temperature not in (0.0, 1.0)


def resolve_settings(wish: Sampling, own: Sampling) -> SamplerSettings:
    """Settings of the request, else those of the model, else our defaults."""
    chosen = {}
    for name in SamplerSettings.__dataclass_fields__:
        value = getattr(wish, name)
        value = getattr(own, name) if value is None else value
        if value is not None:
            chosen[name] = value
    return SamplerSettings(**chosen)
