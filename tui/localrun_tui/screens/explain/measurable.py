"""Measuring topics on the model that is loaded, if that is possible."""

from collections.abc import Callable

from localrun.base.errors import UsageError
from localrun.client.interface import EngineClient
from localrun.client.measure import Explainer
from localrun.diagnose.explain.topic_report import TopicReport
from localrun_tui.screens.explain.measurement import MeasureTopic


def measurable(client: EngineClient | None, is_answering: Callable[[], bool]) -> MeasureTopic | None:
    """The function that measures a topic; None for a model on a server, and without a model.

    It refuses during an answer, which would slow both.
    """
    if not isinstance(client, Explainer):
        return None

    def explain(topic: str, watch: Callable[[int], None]) -> TopicReport:
        if is_answering():
            raise UsageError("an answer is on its way, and both would be slow", "measure when it is done")
        return client.explain(topic, watch)

    return explain
