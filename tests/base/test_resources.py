from pathlib import Path

import pytest

from localrun.base import resources
from localrun.base.resources import resource


@pytest.mark.parametrize("name", ["models.toml", "builtin/localrun-tiny.gguf"])
def test_files_that_ship_are_found_from_a_checkout(name: str) -> None:
    assert resource(name).is_file()


def test_the_checkout_goes_before_the_installed_copy() -> None:
    assert resource("models.toml") == Path(resources.__file__).parents[2] / "models.toml"


def test_a_missing_resource_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-file"):
        resource("no-such-file")
