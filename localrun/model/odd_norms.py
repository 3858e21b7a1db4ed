"""Norms to which a converter added 1 once too often: such a model answers with fluent nonsense. Torch-free."""

from collections.abc import Mapping

from localrun.formats.source import TensorSource
from localrun.model.archs import arch_of
from localrun.model.weight_ref import WeightRef

TWICE = 1.5  # mean of all from which on it is twice: norms of trained models lie around 1


def odd_norms(source: TensorSource, refs: Mapping[str, WeightRef]) -> list[str]:
    """A warning about the norms of an MLX conversion, whose converter adds 1; none for usual values.

    Some published conversions of Qwen3.5 and its relatives went through it twice (Blaizzy/mlx-vlm #2114).
    """
    norms = [ref for name, ref in refs.items() if name.endswith(".attn_norm")]
    added = source.format != "gguf" and arch_of(source).hf_norm_offset > 0 and not any(ref.offset for ref in norms)
    if not added or not norms:
        return []
    import numpy as np  # takes a while to import

    from localrun.formats.floats import read_floats

    tensors = source.tensors
    means = [
        float(read_floats(tensors[ref.name].qtype, np.frombuffer(source.read(ref.name), np.uint8), ref.shape).mean())
        for ref in norms
    ]
    mean = sum(means) / len(means)
    if mean < TWICE:
        return []
    told = f"its norms average {mean:.1f}, where 1 is usual: a converter added 1 twice"
    return [f"{told}, and answers may be nonsense; get another conversion of the model"]
