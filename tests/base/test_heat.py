"""Time that heat took, as the system counts it."""

from pathlib import Path

from localrun.base.processors import throttled_seconds


def counter(processors: Path, cpu: str, name: str, text: str) -> None:
    folder = processors / cpu / "thermal_throttle"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_it_is_that_of_the_processor_that_was_slowed_down_longest(tmp_path: Path) -> None:
    counter(tmp_path, "cpu0", "core_throttle_total_time_ms", "120\n")
    counter(tmp_path, "cpu0", "package_throttle_total_time_ms", "4500\n")
    counter(tmp_path, "cpu11", "core_throttle_total_time_ms", "7000\n")
    assert throttled_seconds(tmp_path) == 7.0


def test_throttling_is_zero_without_counters(tmp_path: Path) -> None:
    assert throttled_seconds(tmp_path) == 0.0
    (tmp_path / "cpu0").mkdir()
    (tmp_path / "cpufreq").mkdir()
    counter(tmp_path, "cpu1", "core_throttle_total_time_ms", "never\n")
    assert throttled_seconds(tmp_path) == 0.0
