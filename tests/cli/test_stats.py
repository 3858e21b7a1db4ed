"""The lines of --stats about a GPU."""

from localrun.base.device_figures import DeviceFigures
from localrun.cli.stats import device_lines


def test_a_processor_has_no_line() -> None:
    assert not device_lines(DeviceFigures())


def test_steps_that_were_begun_ahead_and_steps_without_a_graph_have_one_each() -> None:
    ahead, graphs = device_lines(DeviceFigures(steps_ahead=1100, steps_ahead_used=1043, steps_without_room=7))
    assert "1,043 of 1,100 steps" in ahead
    assert "7 steps were launched kernel by kernel" in graphs
    assert "no room" in graphs
