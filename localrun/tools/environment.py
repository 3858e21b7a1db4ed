"""The environment of programs that tools start: what they need to find their way about, and no tokens or keys."""

import os
import re
from collections.abc import Mapping

_KEPT = re.compile(
    r"PATH|HOME|USER(NAME)?|LOGNAME|SHELL|LANG(UAGE)?|LC_\w+|TZ|TMPDIR|TE?MP|(DY)?LD_LIBRARY_PATH"
    # and on Windows, which knows no capitals in names
    r"|SYSTEM(ROOT|DRIVE)|WINDIR|COMSPEC|PATHEXT|HOME(DRIVE|PATH)|USERPROFILE|(LOCAL)?APPDATA"
    r"|PROGRAM(FILES|DATA)|PROCESSOR_ARCHITECTURE"
)


def minimal_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Only those variables; anything else may be a token or a key."""
    return {name: value for name, value in environment.items() if _KEPT.fullmatch(name.upper())}
