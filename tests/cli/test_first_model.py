"""Which model the command line advises to begin with: the one that the app does."""

import pytest

from localrun.base.machine import Memory
from localrun.cli import session
from localrun.cli.groups import ModelOptions
from localrun.fit.rates import Rates
from localrun.hub import catalogue_rows, preview
from localrun.hub.catalogue_rows import first_model

OPTIONS = ModelOptions(model=None, precision="auto")
MACHINE = Memory(total=16 << 30, available=12 << 30)


@pytest.mark.parametrize("read_bytes", [400e9, 40e9, 20e9, 2e9])
def test_the_command_line_advises_what_the_app_does(
    read_bytes: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = Rates(read_bytes, 200e9)
    monkeypatch.setattr(preview, "machine_rates", lambda: rates)
    monkeypatch.setattr(catalogue_rows, "known_rates", lambda: rates)
    monkeypatch.setattr(catalogue_rows, "usual_memory", lambda: MACHINE)
    monkeypatch.setattr(session, "is_terminal", lambda _: True)
    session.find_model(OPTIONS)
    in_app = first_model(catalogue_rows.catalogue_rows(MACHINE.available, []), MACHINE.total)
    assert in_app is not None
    assert f"`localrun pull {in_app.name}`" in capsys.readouterr().err


def test_without_rates_of_this_machine_it_names_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda _: True)
    session.find_model(OPTIONS)
    assert "`localrun tui` shows larger ones that fit here" in capsys.readouterr().err
