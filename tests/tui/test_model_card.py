"""What is said about a model, and about two precisions of it."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from localrun.fit.estimate import FitRow
from localrun.fit.quality import kld_text, weight_kld
from localrun.fit.shape import shape_of
from localrun.formats.detect import open_model_file
from localrun.hub.catalogue_rows import catalogue_rows
from localrun.hub.disk.library import builtin_models
from localrun.hub.disk.stored import StoredModel
from localrun.hub.precision_offer import PrecisionChoice
from localrun.hub.remote.repo import RemoteFile
from localrun.hub.remote.variants import Variant
from localrun_tui.screens.models.model_card import catalogue_card, stored_card
from localrun_tui.screens.models.newer_version import is_current
from localrun_tui.screens.models.precision_compare import compare

GIB = 1 << 30
FIT = FitRow(
    "Q4_K_M", 8192, "f16", 2 << 30, 1 << 28, 0, 1 << 28, 3 << 30, 8 << 30, "fits", 32768, 1, 20.0, 100.0, False
)


def test_the_card_of_a_model_on_disk_says_what_it_is_what_for_and_whether_it_fits(home: Path) -> None:
    (stored, *_) = builtin_models()
    max_context = shape_of(open_model_file(stored.path)).config.max_context
    text = stored_card(stored, 8 * GIB).content().plain
    for words in ("builtin Q8_0", "parameters", f"up to {max_context:,} tokens", "Apache-2.0", "Ships with", "weights"):
        assert words in text
    assert "since" not in text, "its file is as old as localrun"
    assert time.strftime("since %Y-%m-%d", time.localtime(stored.path.stat().st_mtime)) in (
        stored_card(replace(stored, source="path"), 8 * GIB).content().plain
    )


def test_cards_count_the_cache_in_the_codec_that_is_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a load does, and Explain."""

    def cards() -> list[FitRow]:
        row = next(row for row in catalogue_rows(10 << 30, []) if row.name == "qwen3.5-4b")
        return [card.fit for card in (stored_card(builtin_models()[0], 8 * GIB), catalogue_card(row)) if card.fit]

    before = cards()
    assert [fit.kv_codec for fit in before] == ["f16", "f16"]
    monkeypatch.setenv("LOCALRUN_KV", "q8")
    assert [fit.kv_codec for fit in cards()] == ["q8", "q8"]
    assert all(fit.kv_bytes < one.kv_bytes for fit, one in zip(cards(), before, strict=True))


def test_a_file_that_cannot_be_read_still_has_a_card(tmp_path: Path) -> None:
    broken = StoredModel("mine", "Q8_0", tmp_path / "no.gguf", 1, "gguf", "models")
    assert "mine Q8_0" in stored_card(broken, 8 * GIB).content().plain


def test_the_card_of_the_catalogue() -> None:
    row = next(row for row in catalogue_rows(10 << 30, []) if row.name == "qwen3.5-4b")
    text = catalogue_card(row).content().plain
    for words in ("Qwen3.5 4B", "4.20 B parameters", "up to 262,144 tokens", "Apache-2.0", "Thinks first"):
        assert words in text
    assert row.entry["note"] not in text  # which its row has


def test_two_precisions_side_by_side_say_which_is_better_in_what() -> None:
    four = PrecisionChoice("Q4_K_M", 2 << 30, 2 << 30, 4.8, fit=FIT)
    eight = PrecisionChoice(
        "Q8_0", 4 << 30, 4 << 30, 8.5, fit=replace(FIT, precision="Q8_0", est_decode_tps=11.0, total_bytes=5 << 30)
    )
    table = compare(four, eight)
    lines = {line.plain[:16].strip(): line for line in table.split("\n")}
    assert lines["speed"].plain.split() == ["speed", "~20", "tok/s", "~11", "tok/s"]
    assert lines["memory"].plain.split() == ["memory", "3.00", "GiB", "5.00", "GiB"]

    def bold(name: str) -> str:
        line = lines[name]
        return "".join(line.plain[s.start : s.end] for s in line.spans if "bold" in str(s.style)).strip()

    assert bold("speed") == "~20 tok/s"
    assert bold("bits a weight") == "8.5"
    far, near = weight_kld("Q4_K_M"), weight_kld("Q8_0")
    assert far is not None
    assert near is not None
    assert bold("KLD") == kld_text(near)
    assert f"{kld_text(far)}  {far / near:.1f} ×" in lines["KLD"].plain
    assert "SmolLM2 135M" in table.plain
    unknown = compare(four, replace(eight, name="IQ1_S")).plain
    assert "not measured" in unknown


def test_a_model_is_current_while_the_hub_names_its_bytes(tmp_path: Path) -> None:
    blob = tmp_path / "blobs" / "abc123"
    blob.parent.mkdir()
    blob.write_bytes(b"x")
    link = tmp_path / "model.gguf"
    os.symlink(blob, link)
    variant = Variant("Q8_0", "gguf", (RemoteFile("model.gguf", 1, "abc123"),))
    assert is_current(link, variant)
    assert not is_current(link, replace(variant, files=(RemoteFile("model.gguf", 1, "def456"),)))
