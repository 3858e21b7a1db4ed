"""A worker process without a model: it counts, and on demand it fails in every way a process can.

`python -m localrun_testing.fake_worker`; the name in LoadOptions says how to load, the prompt what to do.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from localrun.base.errors import DeviceLostError, DoesNotFitError, ModelFileError, NotFoundError, PromptTooLongError
from localrun.base.events import Completion, Done, Event, MemoryFigures, ModelInfo, Prefill, StopReason, Timings, Token
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.base.views import CacheView, PromptView
from localrun.client.interface import Generation
from localrun.client.worker.main import serve


class CountingEngine:
    """Answers "count N SECONDS" with the numbers from 0 on; other prompts are one of the methods below."""

    def __init__(self, options: LoadOptions, progress: ProgressCallback) -> None:
        self.options = options
        self._end_step: Callable[[], None] = lambda: None
        match options.name:
            case "huge":
                raise DoesNotFitError("it does not fit", "take a smaller one")
            case "broken":
                raise ModelFileError("BAD_MAGIC", "not a model", path=str(options.path), offset=0)
            case "bug":
                raise ValueError("what was not thought of")
            case "no memory":
                raise MemoryError
            case "no memory in torch":
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")
            case "a file" if not options.path.exists():
                raise NotFoundError("no such file", "check the path")
            case "dies":
                say_and_leave()
            case "slow" | "slow again" if options.name == "slow" or options.path.exists():
                for done in range(1000):
                    progress(done, 1000)
                    time.sleep(0.1)
            case "slow again":
                options.path.touch()
        progress(100, 100)
        backend = "fake" if options.backend == "auto" else options.backend
        self.info = ModelInfo(options.name, "", "fake", "F32", backend, "f32", options.ctx or 128, 100, 1.5)

    def watch_steps(self, at_end: Callable[[], None]) -> None:
        self._end_step = at_end

    def generate(self, request: Request) -> Generation:
        what, *numbers = (request.prompt or "count 3 0").split()
        if what == "long":
            raise PromptTooLongError("too long", "shorten it")
        cancelled = threading.Event()
        if what == "raised":
            raised = threading.Event()
            return Generation(self._once(raised), cancelled.set, raised.set)
        return Generation(self._events(cancelled, what, *map(float, numbers)), cancelled.set)

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        if request.prompt == "long":
            raise PromptTooLongError("too long", "shorten it")
        return PromptView(3, 1, (7, 8, 9), ("a", "b", "c")) if pieces else PromptView(3, 1)

    def view(self) -> CacheView | None:
        return CacheView(3, 128, 64, (), 1, 2, 0, 0, ())

    def close(self) -> None:
        if self.options.name == "does not close":
            time.sleep(60)

    def _events(self, cancelled: threading.Event, what: str, n: float = 3, seconds: float = 0.0) -> Iterator[Event]:
        yield Prefill(2, 0, 2)
        text = ""
        reason: StopReason = "stop"
        for number in range(int(n)):
            if cancelled.wait(seconds):
                reason = "cancelled"
                break
            self._end_step()
            text += f"{number} "
            yield Token(number, f"{number} ", "answer")
        if what != "count":
            time.sleep(0.3)
            self._end_step()  # with which what was said leaves
            getattr(self, what)()
        yield Done(completion(text, reason, self.info), (1, 2))

    def _once(self, raised: threading.Event) -> Iterator[Event]:
        """One word, once the request is raised."""
        yield Prefill(2, 0, 2)
        raised.wait()
        yield from self._events(threading.Event(), "count", 1)

    def crash(self) -> None:
        ctypes.string_at(0)

    def abort(self) -> None:
        os.abort()

    def leave(self) -> None:
        say_and_leave()

    def chatter(self) -> None:
        """What libraries do: print, also from C."""
        print("a warning on stdout", flush=True)
        os.write(1, b"another from C\n")
        os.write(2, b"\x1b[31ma third on stderr\n" * 50_000)
        assert sys.stdin.read() == ""

    def hold(self) -> None:
        """A long native call that lets no other thread run."""
        ctypes.PyDLL(None).sleep(2)

    def toil(self) -> None:
        """One that lets them."""
        ctypes.CDLL(None).sleep(2)

    def ignore(self) -> None:
        """Hear no cancel."""
        time.sleep(60)

    def fall_asleep(self) -> None:
        """A deadlock: no thread runs, and nothing computes."""
        ctypes.PyDLL(None).sleep(60)

    def unfit(self) -> None:
        raise DoesNotFitError("it does not fit any more", "take a smaller one")

    def lose_gpu(self) -> None:
        if self.options.backend == "auto":
            raise DeviceLostError("the GPU failed: CUDA error: unspecified launch failure", "send the message again")

    def bug(self) -> None:
        raise ValueError("what was not thought of")


def say_and_leave() -> None:
    os.write(2, b"\n\x1b]0;pwned\x07the last words\n\n")
    os._exit(3)


def completion(text: str, reason: StopReason, info: ModelInfo) -> Completion:
    n = len(text.split())
    return Completion(
        info.name, "F32", "fake", text, "", reason, 2, 0, n, tuple(range(n)),
        "f32", info.ctx, 7, timings=Timings(1.5, 2.5, 3.5, float("nan"), 4.5, 5.5), memory=MemoryFigures(1000, 2000),
    )  # fmt: skip


if __name__ == "__main__":
    serve(CountingEngine)
