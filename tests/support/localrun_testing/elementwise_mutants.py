"""Ways to break kernels that change numbers one by one, decode weights or draw tokens, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant
from localrun_testing.kernel_mutants import OVERFLOW, RACE

NUMBERS = tuple(
    Mutant(what, (f"elementwise.{ending}", old, new), case, {"": WRONG})
    for ending in ("cu", "metal")
    for what, old, new, case in (
        ("a gate is opened twice", "x[at] * lr_sigmoid(gate[at])", "gate[at] * lr_sigmoid(gate[at])", "gates"),
        ("rows of what a gate opens begin elsewhere", "x_width + first + i", "x_width + i", "gates"),
        ("numbers are scaled by another factor", "x[at] * factor", "x[at] + factor", "gates"),
        ("a sum of powers has a wrong term", "1.f / 6.f", "1.f / 5.f", "xielu"),
        ("rows change places", "if (i < n && place >= 0)", "if (i < n && place > 0)", "gathering"),
    )
)
BOUNDS = (
    Mutant(
        "a row without a place is written",
        ("elementwise.cu", "if (i < n && place >= 0)", "if (i < n)"),
        "gathering",
        {"address": OVERFLOW},
    ),
)
WEIGHTS = (
    Mutant(
        "columns of decoded weights change places",
        ("dequantize.cu", "n / 2 * 16 + t * 4;", "n / 2 * 16 + (3 - t) * 4;"),
        "dequantize",
        {"": WRONG},
    ),
    Mutant(
        "rows beyond a decoded matrix are written",
        ("dequantize.cu", "row >= n_rows || ", ""),
        "dequantize",
        {"address": OVERFLOW},
    ),
    Mutant(
        "pairs of experts of floats read rows by their own number",
        ("experts_float.cu", "(max(pair, 0) / pairs_a_row)", "max(pair, 0)"),
        "mixture of floats",
        {"": f"{WRONG}|killed"},
    ),
)
DRAWS = (
    Mutant(
        "a token is drawn before all shares are there",
        ("logits.cu", "  __syncthreads();\n  if (i) return;\n  int n", "  if (i) return;\n  int n"),
        "drawing",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "shares are summed up to the token before",
        ("logits.cu", "shares[k] = sum += least;", "shares[k] = sum, sum += least;"),
        "drawing",
        {"": WRONG},
    ),
    Mutant(
        "candidates that do not decide are drawn from",
        ("logits.cu", "decided ? of_row[k] : -1", "of_row[k]"),
        "drawing",
        {"": WRONG},
    ),
    Mutant(
        "tokens beyond the rows of a step are taken",
        ("logits.cu", "  if (row < rows) token_ids", "  token_ids"),
        "drawing",
        {"address": OVERFLOW},
    ),
)
MUTANTS = (*NUMBERS, *BOUNDS, *WEIGHTS, *DRAWS)
