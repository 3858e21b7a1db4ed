"""Parameters of the screen: the values each goes through, and how it reads. No widgets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.diagnose.predict.sizes import SIZES, Size
from localrun.diagnose.predict.what_if import HEADS, PRECISIONS, WhatIf, heads_of
from localrun.ops.kv import KV_CODECS

CONTEXTS = tuple(1 << power for power in range(9, 18))
WINDOWS = (None, 512, 1024, 4096, 16384)
CHATS = (1, 2, 4, 8, 16, 32)
CODECS = tuple(name for name in KV_CODECS if name != "f32")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`key` turns it on, with Shift back; `values` of what is set now, `said` as it reads."""

    key: str
    title: str
    field: str
    values: Callable[[WhatIf], Sequence[Any]]
    said: Callable[[WhatIf], str]


def _precisions(what: WhatIf) -> Sequence[str]:
    loaded = what.size.loaded
    return (*PRECISIONS, loaded[0]) if loaded and loaded[0] not in PRECISIONS else PRECISIONS


def _heads_said(what: WhatIf) -> str:
    counts = {spec.n_kv_heads for spec in what.config.layers if spec.has_attention}
    return f"{what.heads or heads_of(what.config)} {counts.pop() if len(counts) == 1 else ''}".strip()


PARAMETERS: Sequence[Parameter] = (
    Parameter("s", "Size", "size", lambda what: [*SIZES.values()], lambda what: what.size.name),
    Parameter("p", "Weights", "weights", _precisions, lambda what: what.weights),
    Parameter("h", "KV heads", "heads", lambda what: HEADS, _heads_said),
    Parameter("k", "KV", "codec", lambda what: CODECS, lambda what: what.codec),
    Parameter("c", "Cache", "cached", lambda what: (True, False), lambda what: "on" if what.cached else "off"),
    Parameter(
        "w", "Window", "window", lambda what: WINDOWS, lambda what: f"{what.window:,}" if what.window else "none"
    ),
    Parameter("b", "Chats", "chats", lambda what: CHATS, lambda what: str(what.chats)),
    Parameter("left,right", "Context", "ctx", lambda what: CONTEXTS, lambda what: f"{what.ctx:,}"),
)
BY_FIELD = {parameter.field: parameter for parameter in PARAMETERS}


def turned(what: WhatIf, parameter: Parameter, by: int, loaded: Size | None = None) -> WhatIf:
    """The next value or the one before, round and round; contexts end. `loaded`: the model that is here is a size,
    too."""
    values = [*parameter.values(what)]
    if parameter.field == "size":
        values = [*([loaded] if loaded else []), *values]
    now = getattr(what, parameter.field)
    if parameter.field == "heads" and now is None:
        now = heads_of(what.config)
    at = values.index(now) + by if now in values else 0
    value = values[min(max(at, 0), len(values) - 1)] if parameter.field == "ctx" else values[at % len(values)]
    if parameter.field == "size":
        return of_size(what, value)
    return replace(what, **{parameter.field: value})


def of_size(what: WhatIf, size: Size) -> WhatIf:
    """Another model, with heads as it has them, in the precision it is here in."""
    weights = size.loaded[0] if size.loaded else what.weights if what.weights in PRECISIONS else "INT4"
    return replace(what, size=size, heads=None, weights=weights)


def near(ctx: int) -> int:
    """The longest of the contexts that a model loaded with `ctx` holds."""
    return max((n for n in CONTEXTS if n <= ctx), default=CONTEXTS[0])


def share_of_contexts(what: WhatIf) -> float:
    """How far the slider is, from 0 to 1."""
    return CONTEXTS.index(what.ctx) / (len(CONTEXTS) - 1) if what.ctx in CONTEXTS else 0.0
