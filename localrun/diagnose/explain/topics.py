"""The topics of `localrun explain`, in the order for a newcomer."""

from collections.abc import Callable, Mapping

from localrun.diagnose.explain import (
    batching,
    drafts,
    memory,
    phases,
    precision,
    reuse,
    token_cost,
    window,
    without_cache,
)
from localrun.diagnose.explain.topic_report import Ask, TopicReport
from localrun.engine.load import LoadedModel

TOPICS: Mapping[str, Callable[[LoadedModel, Ask], TopicReport]] = {
    "cache": lambda model, ask: without_cache.explain(model),
    "phases": lambda model, ask: phases.explain(model),
    "memory": lambda model, ask: memory.explain(model),
    "precision": lambda model, ask: precision.explain(model),
    "reuse": reuse.explain,
    "window": lambda model, ask: window.explain(model),
    "batch": lambda model, ask: batching.explain(model),
    "drafts": lambda model, ask: drafts.explain(model),
    "price": lambda model, ask: token_cost.explain(model),
}
