"""A worker whose engine can be asked in two ways: as `localrun serve` asks it, and as `localrun run` asks its own.

    python -m benchmarks.silent_worker, which server_decode.py starts: calls come on stdin, replies go to stdout

The engine of `run` is in its process, and nothing of an answer leaves it before the end. A request whose events may
wait that long is answered likewise: they are read here, and only the last is sent.
"""

import argparse
from collections.abc import Iterator

from localrun.base.events import Accepted, Done, Event
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.base.startup import look_less_often, switch_threads_often
from localrun.client.interface import Generation
from localrun.client.local import LocalClient
from localrun.client.worker.main import serve

UNTIL_THE_END = 3_600_000  # milliseconds that events may be gathered


class SilentClient(LocalClient):
    """An engine of this process that says of some answers only how they ended."""

    def generate(self, request: Request) -> Generation:
        generation = super().generate(request)
        if request.gather_ms < UNTIL_THE_END:
            return generation
        return Generation(_without_words(generation), generation.cancel, generation.raise_priority)


def _without_words(events: Iterator[Event]) -> Iterator[Event]:
    return (event for event in events if isinstance(event, Accepted | Done))


def open_silent(options: LoadOptions, progress: ProgressCallback) -> SilentClient:
    return SilentClient(options, progress)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    switch_threads_often()
    look_less_often()
    serve(open_silent)


if __name__ == "__main__":
    main()
