"""How fast weights come from the disk: what a token reads of it, and how fast that is."""

import os
from pathlib import Path

import pytest

from localrun.fit import disk_rate as module
from localrun.fit.disk_rate import probe
from localrun.fit.mapped import Mappable, missed_bytes

MIB = 1 << 20


def experts(n: int, used: int, layers: int = 4) -> list[Mappable]:
    """Layers of experts of one MiB each."""
    return [Mappable(f"layers.{index}.up", n * MIB, used * MIB) for index in range(layers)]


def share_missed(parts: list[Mappable], cached: float) -> float:
    return missed_bytes(parts, round(cached)) / sum(part.read_bytes for part in parts)


@pytest.mark.parametrize(
    ("n", "used", "in_memory", "missed"),
    [
        (512, 10, 93 / 512, 0.565),  # what others have counted of texts, and publish
        (512, 10, 186 / 512, 0.38),
        (512, 10, 279 / 512, 0.28),
        (256, 6, 700 / 61 / 256, 0.87),
    ],
)
def test_experts_are_missed_as_often_as_traces_say(n: int, used: int, in_memory: float, missed: float) -> None:
    found = share_missed(experts(n, used), in_memory * 4 * n * MIB)
    assert found < 1 - in_memory, "fewer than by chance"
    assert found == pytest.approx(missed, abs=0.2)


def test_more_memory_misses_less() -> None:
    for parts in (experts(8, 2), experts(128, 8)):
        whole = sum(part.nbytes for part in parts)
        shares = [share_missed(parts, whole * tenth / 10) for tenth in range(11)]
        assert shares == sorted(shares, reverse=True)
        assert (shares[0], shares[-1]) == (1.0, 0.0)
    assert share_missed(experts(8, 2), 16 * MIB) > share_missed(experts(128, 8), 256 * MIB), "two of eight, by chance"


def test_cyclic_reads_hit_all_or_nothing() -> None:
    """A round through more than there is room for finds nothing: what comes next was dropped for what came last."""
    dense = [Mappable(f"layers.{index}.up", 10 * MIB, 10 * MIB) for index in range(4)]
    assert missed_bytes(dense, 39 * MIB) == 40 * MIB
    assert missed_bytes(dense, 40 * MIB) == 0
    both = [*experts(128, 8), *dense]
    assert missed_bytes(both, 39 * MIB) == (40 + 4 * 8) * MIB
    assert missed_bytes(both, 40 * MIB) == 4 * 8 * MIB
    assert missed_bytes(both, 296 * MIB) == missed_bytes(experts(128, 8), 256 * MIB)
    assert missed_bytes([Mappable("embed", 500 * MIB, 2048)], 1) == 0, "a row is nothing"
    assert missed_bytes([], 0) == 0


def test_a_disk_is_measured_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl", reason="where files cannot be dropped from memory nothing can be measured")
    found = module.disk_rate()
    assert found == 0 or 1e5 < found < 1e12
    monkeypatch.setattr(module, "probe", lambda _: 1.0)
    assert module.disk_rate() == (found or 1.0)
    monkeypatch.setattr(module, "VALID_SECONDS", -1.0)
    assert module.disk_rate() == 1.0, "that was long ago"


def test_the_better_half_of_a_probe_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("what was just written could only be read from memory")
    seconds = iter([4.0, 0.5])
    monkeypatch.setattr(module, "_seconds", lambda mapped, pieces: next(seconds) * len(pieces) / 4)
    assert probe(tmp_path) == module.PROBE_BYTES
