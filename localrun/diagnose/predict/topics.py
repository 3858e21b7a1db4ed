"""Every topic of `explain` by formula alone, for a model of any size. Torch-free."""

from collections.abc import Callable, Mapping

from localrun.diagnose.explain.lesson import Lesson
from localrun.diagnose.foretell import memory_topics, time_topics
from localrun.diagnose.foretell.times import Times

FORETOLD: Mapping[str, Callable[[Times], Lesson]] = {
    "cache": time_topics.cache,
    "phases": time_topics.phases,
    "memory": memory_topics.memory,
    "precision": memory_topics.precision,
    "reuse": time_topics.reuse,
    "window": memory_topics.window,
    "batch": time_topics.batch,
    "price": time_topics.price,
}
