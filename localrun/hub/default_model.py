"""The default model: whether a name may be one."""

from localrun.base.errors import NotFoundError, UsageError
from localrun.hub.disk.obstacles import stored_obstacle
from localrun.hub.remote.preview import find_on_hub
from localrun.hub.resolve import resolve


def check_default(name: str) -> str:
    """Refuse a name that nothing is called, or that cannot be run: it would end every later call. Gives a hint where
    it can be downloaded."""
    try:
        if why := stored_obstacle(resolve(name)):
            raise UsageError(f"{name} cannot be the default model: {why}", "`localrun list` shows what is on disk")
    except NotFoundError:
        if find_on_hub(name) is None:
            raise
        return f"{name} is not on this machine yet: `localrun pull {name}`"
    return ""
