"""Rounded numbers that are often quoted, and the exact ones. Torch-free."""

from localrun.base.units import gib, percent
from localrun.diagnose.predict.what_if import WhatIf, heads_of, with_heads
from localrun.fit.bytes import kv_bytes_per_token
from localrun.ops.kv import KV_CODECS

NOTEWORTHY = 0.02  # of the exact number; a smaller difference is what rounding is for


def kv_correction(what: WhatIf) -> str:
    """Bytes of a token in 16 bits, as textbooks round it and exactly; empty where they agree."""
    said, config = what.size.textbook_kv, what.size.shape.config
    if not said:
        return ""
    exact = kv_bytes_per_token(config, KV_CODECS["f16"])
    text = f"{said / 1e6:g} MB a token is often said of a {what.size.name} in f16. Exactly it is {exact:,} bytes"
    if heads_of(config) == "MHA":
        return f"{text}, {_off(exact, said)}."
    spec = config.layers[0]
    every = kv_bytes_per_token(with_heads(config, "MHA"), KV_CODECS["f16"])
    return f"{text}: {spec.n_kv_heads} KV heads, where {spec.n_heads} as in older models would take {every:,}."


def weights_correction(what: WhatIf) -> str:
    """Bytes of the weights by the rule of thumb, and exactly; empty where they agree."""
    if not what.size.params or what.heads not in (None, heads_of(what.size.shape.config)):
        return ""
    bits = int(what.bits)
    rough = what.size.params * bits / 8
    if abs(what.weights_bytes / rough - 1) < NOTEWORTHY:
        return ""
    scales = ", with scales" if what.bits != bits else ""
    return (
        f"By the rule of thumb a {what.size.name} in {bits} bits takes {rough / 1e9:.1f} GB. Exactly its "
        f"{what.n_params / 1e9:.2f} B parameters at {what.bits:g} bits{scales} take {what.weights_bytes / 1e9:.2f} GB, "
        f"or {gib(what.weights_bytes)}: {_off(what.weights_bytes, rough)}."
    )


def _off(exact: float, said: float) -> str:
    share = abs(exact / said - 1)
    return f"{percent(share)} {'less' if exact < said else 'more'}"
