"""The process that searches for a regular expression, which may be ended because a pattern may take forever.

It reads `[pattern, ignore_case, texts]` from stdin in `marshal` form, and writes as JSON, for each text, the numbers of
the matching lines.
"""

import json
import marshal
import re
import sys


def main() -> None:
    """Answer one request."""
    pattern, ignore_case, texts = marshal.loads(sys.stdin.buffer.read())
    expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    found = [[number for number, line in enumerate(text.split("\n"), 1) if expression.search(line)] for text in texts]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
