"""Whether a model can be loaded in place of another, found out before the other one is freed."""

from pathlib import Path

import pytest

from localrun.base.errors import DoesNotFitError, ModelFileError, NotFoundError
from localrun.base.machine import Memory
from localrun.base.request import LoadOptions
from localrun.client.choice import builtin
from localrun.engine import load_plan

BUILTIN = builtin().stored.path  # type: ignore[union-attr]


def check(path: Path, freed: int = 0) -> None:
    load_plan.check_ahead(LoadOptions(path, backend="reference"), freed)


def test_what_the_other_holds_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    check(BUILTIN)
    monkeypatch.setattr(load_plan, "memory", lambda: Memory(1 << 40, 1 << 20))
    with pytest.raises(DoesNotFitError, match="free"):
        check(BUILTIN)
    check(BUILTIN, freed=4 << 30)


def test_files_that_are_damaged_or_gone(tmp_path: Path) -> None:
    path = tmp_path / "short.gguf"
    path.write_bytes(BUILTIN.read_bytes()[:-100_000])
    with pytest.raises(ModelFileError, match="cut short"):
        check(path)
    path.unlink()
    with pytest.raises(NotFoundError):
        check(path)
