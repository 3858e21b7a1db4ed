"""State of this machine and of the model that is loaded; reads files, and may measure."""

from collections.abc import Callable
from pathlib import Path

from localrun.backends.registry import usual_memory
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.diagnose.predict.sizes import Size
from localrun.fit.machine_rates import machine_rates
from localrun.fit.rates import Rates
from localrun.hub.catalogue import shown_name


@dataclass(frozen=True, slots=True)
class MachineState:
    """`free`: bytes that a model may take in the place of the one that is loaded; `loaded` None where none is, or
    where its file is elsewhere."""

    rates: Rates
    free: int
    loaded: Size | None = None


def read_machine_state(info: ModelInfo | None, held: Callable[[], int]) -> MachineState:
    """Measures the machine where that was never done, which takes a second."""
    return MachineState(machine_rates(), usual_memory().available + held(), loaded_size(info))


def loaded_size(info: ModelInfo | None) -> Size | None:
    """The model that is loaded, as one of the sizes to choose from."""
    from localrun.fit.shape import shape_of
    from localrun.formats.detect import open_model_file

    if info is None or not info.weights_bytes:
        return None
    try:
        shape = shape_of(open_model_file(Path(info.path)))
    except LocalrunError:
        return None
    return Size(shown_name(info.name), info.name, shape, loaded=(info.precision.upper(), info.weights_bytes))
