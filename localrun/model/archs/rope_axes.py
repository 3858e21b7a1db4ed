"""Axes of rotary pairs: time, height and width of the rows of an image (M-RoPE: Wang et al. 2024). Torch-free.

Text has one angle for all three, so axes change nothing about it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.model.archs.reading import hf_rope_parameters
from localrun.model.config import RopeSpec
from localrun.model.fields import Fields

TIME, HEIGHT, WIDTH = range(3)


@dataclass(frozen=True, slots=True)
class AxisRule:
    """How a family shares its pairs among the axes. `sections`: where a file does not say, pairs of each axis."""

    interleaved: bool
    sections: tuple[int, int, int]

    def axes(self, fields: Fields, n_pairs: int) -> tuple[int, ...]:
        """The axis of every pair. Raises ModelFileError for sections that are not those of the pairs."""
        sections = said_sections(fields)
        sections = list(self.sections if sections is None else sections)[:3]
        if not all(isinstance(n, int) and n >= 0 for n in sections) or len(sections) < 3:
            raise fields.error("the sections of the rope should be three numbers of pairs")
        return (interleaved_axes if self.interleaved else chunked_axes)(sections, n_pairs)


def said_sections(fields: Fields) -> Any:
    """Pairs of each axis as a file says; a GGUF adds a zero."""
    if fields.format == "gguf":
        said = fields.first(f"{fields.prefix}.rope.", "dimension_sections mrope_section")[1]
    else:
        said = hf_rope_parameters(fields).get("mrope_section")
    if said is not None and not isinstance(said, Sequence):
        raise fields.error("the sections of the rope should be a list")
    return said


def interleaved_axes(sections: Sequence[int], n_pairs: int) -> tuple[int, ...]:
    """Height and width at every third pair as far as their sections go, time elsewhere (Qwen3-VL, Qwen3.5)."""
    axes = [TIME] * n_pairs
    for axis in (HEIGHT, WIDTH):
        for pair in range(axis, min(3 * sections[axis], n_pairs), 3):
            axes[pair] = axis
    return tuple(axes)


def chunked_axes(sections: Sequence[int], n_pairs: int) -> tuple[int, ...]:
    """One axis after the other (Qwen2-VL, Qwen2.5-VL); pairs beyond the sections are time's."""
    axes = [axis for axis, n in enumerate(sections) for _ in range(n)][:n_pairs]
    return tuple(axes + [TIME] * (n_pairs - len(axes)))


def with_axes(ropes: Sequence[RopeSpec], rule: AxisRule, fields: Fields) -> tuple[RopeSpec, ...]:
    """The same ropes, their pairs shared among the axes."""
    return tuple(replace(rope, axes=rule.axes(fields, rope.dims // 2)) for rope in ropes)
