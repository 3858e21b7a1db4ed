"""Regular expressions in a config.json that select modules."""

import re

_LONGEST = 300
_MOST_REPEATS = 4  # with each of them a search may take as many times longer as a name has letters
_REPEATED_REPEAT = re.compile(r"[)*+}][*+{]")  # may take for ever


def pattern_of(text: str) -> re.Pattern[str] | None:
    """Compile a pattern that is safe to match; None for an unsafe or invalid one."""
    n_repeats = len(re.findall(r"[*+{]", text))
    if len(text) > _LONGEST or n_repeats > _MOST_REPEATS or _REPEATED_REPEAT.search(text):
        return None
    try:
        return re.compile(text)
    except re.error:
        return None
