"""Memory and work that adapters add to a load, by their headers. Torch-free."""

from collections.abc import Sequence

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.fit.fastest import fastest_backend
from localrun.fit.shape import ModelShape
from localrun.model.archs import ARCHS
from localrun.model.recording import record_shapes
from localrun.model.shapes import Ranks


@dataclass(frozen=True, slots=True)
class AddedByAdapters:
    """Ranks by weight, of each adapter; bytes of all their matrices in memory, and multiplications that a token takes
    for them."""

    ranks: tuple[Ranks, ...] = ()
    nbytes: int = 0
    macs: int = 0


NO_ADAPTERS = AddedByAdapters()


def added_by(adapters: Sequence[AdapterChoice], shape: ModelShape) -> AddedByAdapters:
    """Open adapters and hold them against a model, as a load does. Raises NotFoundError and ModelFileError as a load
    would, and UsageError for a model that cannot run."""
    if not adapters:
        return NO_ADAPTERS
    from localrun.formats.adapters.detect import open_adapter
    from localrun.model.adapters import match  # with numpy

    arch = next((arch for arch in ARCHS if arch.name == shape.config.arch), None)
    if arch is None or shape.obstacle:
        raise UsageError("an adapter needs a model that can run", "name another model, or no adapter")
    opened = [match(open_adapter(one.path), one.scale, arch, shape.config) for one in adapters]
    ranks = tuple(adapter.ranks for adapter in opened)
    layout = fastest_backend(record_shapes(shape.config, ranks)).layout(0, 0, 1)
    nbytes = sum(adapter.nbytes(layout) for adapter in opened)
    return AddedByAdapters(ranks, nbytes, sum(adapter.macs for adapter in opened))
