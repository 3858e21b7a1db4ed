"""models.toml: the models localrun knows by a short name."""

import tomllib
from functools import cache
from typing import TypedDict, cast

from localrun.base.resources import resource

BUILTIN = "builtin"


class CatalogueModel(TypedDict):
    """One table of models.toml."""

    title: str  # as shown to people
    licence: str  # SPDX identifier
    note: str  # one line: what it is good for
    files: dict[str, str]  # precision -> file that ships with localrun


@cache
def read_catalogue() -> dict[str, CatalogueModel]:
    """Every model of models.toml by its short name."""
    with resource("models.toml").open("rb") as file:
        return cast("dict[str, CatalogueModel]", tomllib.load(file)["models"])
