"""A folder that was named means one model; where it holds several, none is guessed."""

from collections.abc import Mapping, Sequence

from localrun.base.errors import LocalrunError, UsageError
from localrun.hub.disk.stored import StoredModel
from localrun.hub.names import parse_file_name, words_of

_MOST_NAMED = 5


def one_model(found: Sequence[StoredModel], name: str) -> list[StoredModel]:
    """The files of one model among those of the folder `name`: of the only one, or of that with the folder's name.

    Raises UsageError where there are several.
    """
    models: dict[str, list[StoredModel]] = {}  # GGUFs by what their names share
    for stored in found:
        if stored.format == "gguf":
            models.setdefault(parse_file_name(stored.path).model, []).append(stored)
    named = [files for model, files in models.items() if words_of(model) == words_of(files[0].repo)]
    originals = [stored for stored in found if stored.format == "safetensors"]
    ggufs = next(iter(named or models.values()), [])
    if (len(models) > 1 and len(named) != 1) or not _are_alike([*originals, *ggufs[:1]]):
        raise _several(originals, models, name)
    return [*originals, *ggufs]


def _are_alike(files: Sequence[StoredModel]) -> bool:
    """Whether they may be one model, by the start of each; what cannot be read is left to its reader."""
    try:
        return len(files) < 2 or len({_sizes(stored) for stored in files}) == 1
    except (LocalrunError, OSError):
        return True


def _sizes(stored: StoredModel) -> tuple[str, int, int]:
    from localrun.hub.disk.obstacles import skim  # for the few folders that hold a model in both formats
    from localrun.model.archs import arch_of

    source = skim(stored)
    arch = arch_of(source)
    config = arch.config(source)
    return arch.name, config.hidden_size, config.n_layers


def _several(originals: Sequence[StoredModel], models: Mapping[str, Sequence[StoredModel]], name: str) -> UsageError:
    paths = [stored.path / "config.json" for stored in originals] + [files[0].path for files in models.values()]
    names = ["one in safetensors"] * len(originals) + [files[0].path.name for files in models.values()]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    told = f"{name} holds {len(names)} models: {', '.join(names[:_MOST_NAMED])}{more}"
    return UsageError(told, f"name one of them, such as {paths[0]}")
