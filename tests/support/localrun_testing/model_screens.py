"""A small app around one screen about models, and models small enough to be served and read in no time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen

from localrun.backends import registry
from localrun.base.machine import Memory
from localrun.fit.rates import Rates
from localrun.hub import candidates, fits
from localrun.hub.remote import api
from localrun_testing.fake_hub import FakeHub, FakeRepo
from localrun_testing.stub_gguf import stub_gguf
from localrun_tui.screens import first_run
from localrun_tui.screens.downloads.downloads_queue import Downloads
from localrun_tui.screens.explain import machine_state
from localrun_tui.screens.models import catalogue_section, model_sections, models_screen


class ScreenApp(App[None]):
    """`answer` is what the screen was left with; `closed` tells that it was."""

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self.downloads = Downloads(self)
        self.first = screen
        self.answer: Any = None
        self.closed = False

    def on_mount(self) -> None:
        self.push_screen(self.first, self._keep)

    def on_unmount(self) -> None:
        self.downloads.close()

    def _keep(self, answer: Any) -> None:
        self.answer = answer
        self.closed = True


def known_machine(monkeypatch: pytest.MonkeyPatch, idle: bool = True) -> None:
    """A machine whose memory and speed do not depend on where and when the test runs."""
    for module in (fits, machine_state):
        monkeypatch.setattr(module, "machine_rates", lambda: Rates(40e9, 200e9, idle=idle))
    monkeypatch.setattr(fits, "disk_rate", lambda: 2e9)
    monkeypatch.setattr(candidates, "packing_room", lambda download=0: 1 << 50)
    for module in (models_screen, catalogue_section, model_sections, registry, machine_state):
        monkeypatch.setattr(module, "usual_memory", lambda: Memory(16 << 30, 10 << 30))
    monkeypatch.setattr(first_run, "memory", lambda: Memory(16 << 30, 10 << 30))


@contextmanager
def hub_with_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that the environment points to: a tiny model in two precisions, a gated one, and one of the catalogue."""
    files = {name: stub_gguf(folder, name) for name in ("tiny-F16.gguf", "tiny-F32.gguf")}
    repos = {
        "org/tiny-GGUF": FakeRepo(files, gguf={"architecture": "qwen3", "total": 20_000_000, "context_length": 8192}),
        "org/locked-GGUF": FakeRepo(files, gated=True),
        "Qwen/Qwen3-0.6B-GGUF": FakeRepo({"Qwen3-0.6B-Q8_0.gguf": files["tiny-F16.gguf"]}),
    }
    monkeypatch.setattr(api, "RETRY_SECONDS", ())
    with FakeHub(repos) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        yield hub
