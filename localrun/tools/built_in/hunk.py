"""The diff of two texts as one hunk of a unified diff: all lines between the first and the last change."""

from localrun.tools.built_in.file_text import lines_of

_CONTEXT = 3  # lines around it
_ENDS = "\r\n"
_NO_END = "\n\\ no line break at the end"


def hunk(name: str, before: str | None, after: str) -> str:
    """The diff; `before` None for a new file. Takes linear time."""
    old, new = lines_of(before or ""), lines_of(after)
    most = min(len(old), len(new))
    first = next((i for i in range(most) if old[i] != new[i]), most)
    last = next((i for i in range(most - first) if old[-1 - i] != new[-1 - i]), most - first)
    start = max(first - _CONTEXT, 0)
    lines = [f"--- {'/dev/null' if before is None else name}", f"+++ {name}"]
    end = min(last, _CONTEXT)
    n_old, n_new = len(old) - last + end - start, len(new) - last + end - start
    lines.append(f"@@ -{start + 1},{n_old} +{start + 1},{n_new} @@")
    lines += _marked(" ", old[start:first])
    lines += _marked("-", old[first : len(old) - last])
    lines += _marked("+", new[first : len(new) - last])
    lines += _marked(" ", old[len(old) - last : len(old) - last + end])
    return "\n".join(lines)


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [f"{mark}{line.rstrip(_ENDS)}{'' if line.endswith(_ENDS[-1]) else _NO_END}" for line in lines]
