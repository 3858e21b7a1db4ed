"""Files that ship beside the code: the catalogue, the built-in model, kernel sources."""

from importlib.resources import files
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]


def resource(name: str) -> Path:
    """The file `name`: the checkout's own when we run from one (always fresh), else the installed package's.

    `name` is relative to the wheel's `localrun/` folder; in a checkout it may stand there or at the root.
    """
    places = [Path(str(files("localrun").joinpath(name)))]
    if (_CHECKOUT / "pyproject.toml").is_file():
        places = [_CHECKOUT / name, _CHECKOUT / "localrun" / name, *places]
    for path in places:
        if path.is_file():
            return path
    raise FileNotFoundError(f"{name} is not part of this installation")
