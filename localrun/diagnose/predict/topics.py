"""Every topic of `explain` by formula alone, for a model of any size. Torch-free."""

from collections.abc import Callable, Mapping

from localrun.diagnose.explain.topic_report import TopicReport
from localrun.diagnose.predict import memory_topics, time_topics
from localrun.diagnose.predict.times import Times

PREDICTED: Mapping[str, Callable[[Times], TopicReport]] = {
    "cache": time_topics.cache,
    "phases": time_topics.phases,
    "memory": memory_topics.memory,
    "precision": memory_topics.precision,
    "reuse": time_topics.reuse,
    "window": memory_topics.window,
    "batch": time_topics.batch,
    "drafts": time_topics.drafts,
    "price": time_topics.price,
}
