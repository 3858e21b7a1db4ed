"""What each precision takes, before a download and for what is on disk; and what choosing one does."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from localrun_testing.fake_hub import FakeHub
from localrun_testing.model_screens import ScreenApp, hub_with_models, known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from localrun_testing.raw_files import Entry, safetensors_file
from textual.pilot import Pilot

from localrun.base.settings import read_settings, write_setting
from localrun.client.choice import ModelChoice
from localrun.client.open_client import options_for
from localrun.fit.estimate import Fit, FitRow
from localrun.hub.disk.stored import StoredModel, stored_at
from localrun.hub.downloads.download import download
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.precision_offer import Offer, PrecisionChoice, Subject, read_offer
from localrun.hub.remote import api
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.preview import find_on_hub
from localrun_tui.screens.models import precision_menu
from localrun_tui.screens.models.precision_menu import DOWNLOADING, PrecisionMenu
from localrun_tui.state.background import Task

GIB = 1 << 30
CONFIG = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 320,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "float16",
}
_LAYER = {
    "input_layernorm": (64,),
    "self_attn.q_proj": (64, 64),
    "self_attn.k_proj": (32, 64),
    "self_attn.v_proj": (32, 64),
    "self_attn.o_proj": (64, 64),
    "self_attn.q_norm": (16,),
    "self_attn.k_norm": (16,),
    "post_attention_layernorm": (64,),
    "mlp.gate_proj": (128, 64),
    "mlp.up_proj": (128, 64),
    "mlp.down_proj": (64, 128),
}
SHAPES: dict[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (320, 64),
    **{f"model.layers.{layer}.{name}.weight": shape for layer in range(2) for name, shape in _LAYER.items()},
    "model.norm.weight": (64,),
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with hub_with_models(tmp_path, monkeypatch) as running:
        yield running


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known_machine(monkeypatch)


def menu(name: str, budget: int = 8 * GIB) -> PrecisionMenu:
    return PrecisionMenu(Subject(name, wanted=find_on_hub(name)), lambda: budget)


def fetch(name: str, file: str) -> None:
    """Have one file of a repository on disk."""
    http = Http(read_access())
    repo = read_repo(http, name)
    download(http, repo, [repo.file(file)])
    http.close()


def test_offline_the_catalogue_is_enough() -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "★ Q4_K_M")
        shown = screen_text(pilot.app)
        rows = [line.split() for line in shown.splitlines() if "GiB " in line and "≈" in line]
        assert [row[0] for row in rows] == ["▌★", "Q5_0", "Q6_K", "Q8_0"]
        assert (rows[0][1], rows[0][4:6]) == ("Q4_K_M", ["4.9", "✔"])
        assert rows[-1][4:6] == ["◌", "disk"]
        assert "offline: sizes are estimated" in shown
        assert "HERE is for 8,192 tokens" in shown
        assert "KV 8,192 tokens + spare 1.1" in shown  # the gauge of the highlighted row
        await pilot.press("right")
        await until_text(pilot, "HERE is for 4,096 tokens")
        await pilot.press("left", "left", "k")
        await until_text(pilot, "HERE is for 40,960 tokens")
        shown = screen_text(pilot.app)
        assert "‹ f16 ›" in shown
        assert "✔ fits" not in shown
        assert "too much" in shown
        await pilot.press("enter")
        await until_text(pilot, "localrun is offline")
        await pilot.press("escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(menu("qwen3-8b"))
    drive(app, steps)
    assert app.answer is None


@pytest.mark.parametrize(("budget", "is_elsewhere"), [(3 * GIB, True), (16 * GIB, False)])
def test_where_memory_is_missing_other_machines_are_named(budget: int, is_elsewhere: bool) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "offline: sizes are estimated")
        assert ("localrun handover qwen3-8b --gpus" in screen_text(pilot.app)) == is_elsewhere

    drive(ScreenApp(menu("qwen3-8b", budget)), steps, LARGE)


def test_where_the_hub_cannot_be_reached_the_catalogue_answers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "RETRY_SECONDS", ())
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "★ Q4_K_M")
        await until_text(pilot, ": sizes are estimated from the public shape")
        assert "127.0.0.1" in screen_text(pilot.app)

    drive(ScreenApp(menu("qwen3-8b")), steps, LARGE)


def test_online_the_header_is_read_and_nothing_is_fetched_unasked(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "LONGEST")
        shown = screen_text(pilot.app)
        assert "apache-2.0" in shown.splitlines()[0]
        assert shown.count("download") == 2
        assert max(hub.sent(name) for name in ("tiny-F16.gguf", "tiny-F32.gguf")) <= 64 << 10
        await pilot.press("home", "enter")
        await until_text(pilot, "Download org/tiny-GGUF F16?")
        shown = screen_text(pilot.app)
        assert all(word in shown for word in ("licence", "apache-2.0", "free", "memory", "size"))
        await pilot.press("n")
        assert not pilot.app.downloads.all()  # type: ignore[attr-defined]
        monkeypatch.setattr(precision_menu, "_free_disk", lambda: 10_000)
        await pilot.press("enter")
        await until_text(pilot, "too little")
        assert pilot.app.screen.query_one("#no").has_focus
        await pilot.press("y")
        await until(pilot, lambda: app.closed)
        await until(pilot, lambda: app.downloads.all()[0].stored)

    app = ScreenApp(menu("org/tiny-GGUF"))
    drive(app, steps, LARGE)
    assert app.answer == DOWNLOADING


def test_a_hub_in_trouble_is_asked_again(hub: FakeHub) -> None:
    hub.break_file("api", "busy")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "r Try again")
        assert "k KV cache" not in screen_text(pilot.app)
        hub.trouble.clear()
        await pilot.press("r")
        await until_text(pilot, "LONGEST")
        await until_text(pilot, "k KV cache")
        assert "r Try again" not in screen_text(pilot.app)

    drive(ScreenApp(menu("org/tiny-GGUF")), steps)


def test_auto_is_the_finest_codec_even_where_a_coarser_one_takes_more() -> None:
    """Short contexts: a quantised cache keeps its newest block in 16 bit beside the rest."""
    one = PrecisionChoice("F16", 1, 1, 16.0)
    row = FitRow("F16", 1024, "f16", 1, 100, 0, 1, 1, 9, "fits", 1024, 1, 1.0, 1.0, False)
    rows = (row, replace(row, kv_codec="q8", kv_bytes=120))
    (line,) = Offer(Subject("x"), (one,), Fit(rows, "")).lines(1024, "auto")
    assert line.fit == row


@pytest.mark.parametrize(("wished", "is_there"), [("q8", True), ("auto", True), ("f16", True), ("f32", False)])
def test_a_codec_that_changes_nothing_reads_as_the_one_that_is_kept(wished: str, is_there: bool) -> None:
    """Latents stay in 16 bits, so that no row speaks of q8; f32 takes more than any row says."""
    one = PrecisionChoice("F16", 1, 1, 16.0)
    row = FitRow("F16", 1024, "f16", 1, 100, 0, 1, 1, 9, "fits", 1024, 1, 1.0, 1.0, False)
    (line,) = Offer(Subject("x"), (one,), Fit((row,), "")).lines(1024, wished)
    assert line.fit == (row if is_there else None)


def test_what_is_on_disk_is_loaded_and_can_be_forced(hub: FakeHub) -> None:
    fetch("org/tiny-GGUF", "tiny-F32.gguf")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "on disk")
        rows = [line for line in screen_text(pilot.app).splitlines() if "F32" in line or "F16" in line]
        assert [("on disk" in row, "download" in row) for row in rows[:2]] == [(False, True), (True, False)]
        await pilot.press("right", "end", "enter")
        await until_text(pilot, "Load it all the same?")
        await pilot.press("y")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(menu("org/tiny-GGUF", budget=1 << 20))
    drive(app, steps)
    assert isinstance(app.answer, ModelChoice)
    assert (app.answer.precision, app.answer.ctx, app.answer.kv) == ("F32", 4096, "f16")


@pytest.mark.parametrize(
    ("name", "says"), [("org/locked-GGUF", "is gated"), ("org/nothing", "the hub has no org/nothing")]
)
def test_what_cannot_be_offered_says_why(hub: FakeHub, name: str, says: str) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, says)
        await pilot.press("enter", "right", "k", "escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(menu(name))
    drive(app, steps)


def test_a_token_is_asked_for_where_one_is_wanted(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = "hf_" + "a1B2" * 8

    def login(token: str, add_to_git_credential: bool) -> None:
        monkeypatch.setenv("HF_TOKEN", token)

    monkeypatch.setattr(huggingface_hub, "login", login)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "t Token")
        assert "goes into Token (t)" in " ".join(screen_text(pilot.app).split())
        assert "HF_TOKEN" not in screen_text(pilot.app)
        assert "c Compare" not in screen_text(pilot.app)
        await pilot.press("t", *"hf_short")
        await until_text(pilot, "•" * len("hf_short"))
        await pilot.press("escape")
        await until_text(pilot, "is gated")
        await pilot.press("t", *hub.token, "enter")
        await until_text(pilot, "LONGEST")
        assert "t Token" not in screen_text(pilot.app)

    drive(ScreenApp(menu("org/locked-GGUF")), steps)


def test_the_context_that_is_set_is_the_first_and_auto_can_be_chosen_over_it(hub: FakeHub) -> None:
    fetch("org/tiny-GGUF", "tiny-F32.gguf")
    write_setting("ctx", "5000")
    ctx: list[int | None] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "‹ 5,000 ›")
        assert "HERE is for 5,000 tokens" in screen_text(pilot.app)
        assert "KV 5,000 tokens + spare" in screen_text(pilot.app)
        if ctx:
            await pilot.press("left", "left")
            await until_text(pilot, "‹ auto ›")
        await pilot.press("end", "enter")
        await until(pilot, lambda: app.closed)
        assert isinstance(app.answer.stored, StoredModel)
        ctx.append(options_for(app.answer.stored, app.answer, read_settings()).ctx)

    for _ in range(2):
        app = ScreenApp(menu("org/tiny-GGUF"))
        drive(app, steps)
    assert ctx == [5000, None]


def test_a_context_that_is_set_and_that_the_model_was_not_made_for_is_told_and_not_chosen(hub: FakeHub) -> None:
    write_setting("ctx", "9000")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "9,000 tokens of context are set, and it was made for 8,192")
        assert "‹ auto ›" in screen_text(pilot.app)
        await pilot.press("left")
        await until_text(pilot, "‹ 8,192 ›")

    drive(ScreenApp(menu("org/tiny-GGUF")), steps)


def test_an_offer_without_a_network_has_what_is_on_disk(hub: FakeHub) -> None:
    fetch("org/tiny-GGUF", "tiny-F16.gguf")
    hub.break_file("api", "rate-limit")
    offer = read_offer(Subject("org/tiny-GGUF", wanted=find_on_hub("org/tiny-GGUF")), lambda: 8 * GIB, Task().on_cancel)
    (line,) = offer.lines(0, "auto")
    assert (line.name, line.recommended, line.stored is not None) == ("F16", True, True)
    assert offer.notes[0].startswith("only what is on disk: ")


def original(home: Path) -> StoredModel:
    """A checkpoint in the models folder, whose weights a load may quantise."""
    folder = home / "models" / "original"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    weights, end = {}, 0
    for name, shape in SHAPES.items():
        begin, end = end, end + 2 * math.prod(shape)
        weights[name] = Entry("F16", shape, (begin, end))
    (folder / "model.safetensors").write_bytes(safetensors_file(weights, bytes(end)))
    (stored,) = stored_at(folder, "models", "original")
    return stored


def test_a_checkpoint_begins_at_the_recommended_precision(home: Path) -> None:
    """All of them are at its path; the first of the list was int2."""
    screen = PrecisionMenu(Subject("original", original(home)), lambda: 8 * GIB)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "★ ")
        await until(pilot, lambda: screen._list.highlighted and screen._list.highlighted.value.recommended)
        await pilot.press("escape")

    drive(ScreenApp(screen), steps)


def test_an_original_on_disk_serves_the_precisions_made_from_it(home: Path) -> None:
    stored = original(home)
    offer = read_offer(Subject("original", stored), lambda: 8 * GIB, Task().on_cancel)
    lines = {line.name: line for line in offer.lines(0, "auto")}
    assert set(lines) == {"fp16", "int8", "int4", "int2"}
    assert [lines[name].stored and lines[name].stored.precision for name in lines] == list(lines)  # type: ignore[union-attr]
    assert lines["int4"].weights_bytes < lines["int8"].weights_bytes
    assert not lines["int4"].approximate
    only = read_offer(Subject("original", replace(stored, precision="int4")), lambda: 8 * GIB, Task().on_cancel)
    assert only.notes == ()
