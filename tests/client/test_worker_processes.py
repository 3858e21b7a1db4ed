"""Worker clients in faces that are processes of their own: no torch there, no orphans, and the built-in model."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient

pytestmark = pytest.mark.process

MODEL = "localrun/builtin/localrun-tiny.gguf"
REQUEST = Request(
    messages=({"role": "user", "content": "Tell me a story about an otter."},),
    sampling=Sampling(temperature=0.0),
    max_tokens=60,
)

STREAM_FOR_EVER = """
import sys
from pathlib import Path
from localrun.base.request import LoadOptions, Request
from localrun.client.worker.client import WorkerClient

client = WorkerClient(LoadOptions(Path("x")), module="localrun_testing.fake_worker")
for event in client.generate(Request(prompt=sys.argv[1])):
    print(client._worker.pid, flush=True)
"""

CHAT_WITH_DEATHS = f"""
import json, os, signal, sys
from localrun.base.errors import EngineDiedError
from localrun.base.events import Done, Token
from localrun.base.resources import resource
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.worker.client import WorkerClient

progress = []
options = LoadOptions(resource({MODEL!r}), name="builtin")
client = WorkerClient(options, lambda done, total: progress.append((done, total)))
request = Request(
    messages=({{"role": "user", "content": "Tell me a story about an otter."}},),
    sampling=Sampling(temperature=0.0),
    max_tokens=60,
)
answers = []
for kill_after in json.loads(sys.argv[1]):
    ids, end = [], ""
    try:
        for number, event in enumerate(client.generate(request)):
            if isinstance(event, Token) and event.token_id is not None:
                ids.append(event.token_id)
            if number == kill_after:
                os.kill(client._worker.pid, signal.SIGKILL)
            if isinstance(event, Done):
                end = event.completion.stop_reason
    except EngineDiedError as error:
        end = "died"
    answers.append((ids, end))
view = client.view()
client.close()
print(json.dumps([answers, progress[-1], "torch" in sys.modules, view.n_tokens]))
"""


def child(code: str, *arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, env=environment, encoding="utf-8"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere (macOS, Windows) a stuck worker ends when it goes on")
@pytest.mark.parametrize("state", ["streaming", "in a native call", "stopped"])
def test_a_worker_ends_with_its_face(state: str) -> None:
    with child(STREAM_FOR_EVER, "fall_asleep 5" if state == "in a native call" else "count 100000 0.01") as face:
        assert face.stdout is not None
        for _ in range(6):
            line = face.stdout.readline()
        worker = psutil.Process(int(line))
        if state == "stopped":
            worker.suspend()
        face.kill()
        face.wait()
        psutil.wait_procs([worker], timeout=60)
        assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on Windows")
@pytest.mark.parametrize(
    "kill_after", [[7, None], pytest.param([0, None, 1, 30, None, 55, None], marks=pytest.mark.slow)], ids=str
)
def test_the_built_in_model_survives_deaths_and_answers_as_in_this_process(kill_after: list[int | None]) -> None:
    with child(CHAT_WITH_DEATHS, json.dumps(kill_after)) as face:
        out, _ = face.communicate(timeout=240)
    answers, progress, has_torch, n_held = json.loads(out)
    assert not has_torch
    assert progress[0] == progress[1] > 0
    with LocalClient(LoadOptions(Path(resource(MODEL)), name="builtin")) as client:
        *_, last = client.generate(REQUEST)
    assert isinstance(last, Done)
    whole = list(last.completion.token_ids)
    assert n_held >= len(whole)
    for n_events, (ids, end) in zip(kill_after, answers, strict=True):
        if n_events is None:
            assert (ids, end) == (whole, last.completion.stop_reason)
        else:  # all of the rest may have been on its way when the worker was killed
            assert end in ("died", last.completion.stop_reason)
            assert n_events + 1 - 3 <= len(ids)  # all but Accepted and the first and last Prefill
            assert ids == whole[: len(ids)]


def test_sigterm_of_the_face_leaves_no_worker() -> None:
    with child(STREAM_FOR_EVER, "count 100000 0.01") as face:
        assert face.stdout is not None
        worker = psutil.Process(int(face.stdout.readline()))
        face.send_signal(signal.SIGTERM)
        face.wait()
        psutil.wait_procs([worker], timeout=60)
        assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
