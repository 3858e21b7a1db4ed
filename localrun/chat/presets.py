"""Sampling presets: a name that a person understands, and the sampling it sets."""

from dataclasses import fields, replace

from localrun.base.dataclass import dataclass
from localrun.base.request import Sampling
from localrun.base.settings import Settings


@dataclass(frozen=True, slots=True)
class Preset:
    """A sampling preset. `sampling` fields that are None keep their configured value."""

    title: str
    help: str
    sampling: Sampling


PRESETS: dict[str, Preset] = {
    "": Preset("Default", "what your settings or the model's makers recommend", Sampling()),
    "exact": Preset("Exact", "always the likeliest word: the same answer each time", Sampling(temperature=0.0)),
    "careful": Preset("Careful", "facts and code: little chance", Sampling(temperature=0.3, top_p=0.9)),
    "balanced": Preset("Balanced", "everyday questions", Sampling(temperature=0.7, top_p=0.95, min_p=0.05)),
    "creative": Preset("Creative", "stories and ideas: much chance", Sampling(temperature=1.1, top_p=0.98, min_p=0.05)),
}


def sampling_of(settings: Settings, preset: str = "") -> Sampling:
    """Sampling of the preset over that of config.toml; an unknown preset changes nothing."""
    names = [field.name for field in fields(Sampling) if field.name != "logit_bias"]
    configured = Sampling(**{name: getattr(settings, name) for name in names})
    chosen = PRESETS.get(preset, PRESETS[""]).sampling
    return replace(configured, **{name: value for name in names if (value := getattr(chosen, name)) is not None})
