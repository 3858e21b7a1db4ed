"""Ways to break the CUDA kernels of mixtures of experts, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant
from localrun_testing.kernel_mutants import FAULT, RACE

MUTANTS = (
    Mutant(
        "tiles are made before all rows have been routed",
        ("mixture.cu", "  __syncthreads();\n  for (int p", "  for (int p"),
        "mixture of few",
        {"": f"{WRONG}|killed", "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "weights are added up before they are written",
        ("mixture.cu", "  __syncwarp();\n  for (int k", "  for (int k"),
        "mixture of few",
        {"thread": RACE},
    ),
    Mutant(
        "groups are ranked before all keys are there",
        ("mixture.cu", "  __syncwarp();\n  for (int group", "  for (int group"),
        "mixture of floats",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "the best groups are those that are left out",
        ("mixture.cu", "if (groups[i / size])", "if (!groups[i / size])"),
        "mixture of floats",
        {"": WRONG},
    ),
    Mutant(
        "a pair leaves the first place of its tile empty",
        ("mixture.cu", "((1u << lane) - 1)", "((2u << lane) - 1)"),
        "mixture of many",
        {"": f"{WRONG}|killed"},
    ),
    Mutant(
        "a shared expert is weighted by what its gate was before",
        ("mixture.cu", "lr_sigmoid(__ldcg(share + row))", "__ldcg(share + row)"),
        "mixture of floats",
        {"": WRONG},
    ),
    Mutant(
        "all experts have the biases of the first",
        ("experts.cuh", "bias + (int64_t)expert * n_out", "bias"),
        "mixture of few",
        {"": WRONG},
    ),
    Mutant(
        "pairs read rows by their own number",
        ("experts.cu", "__ldcg(pairs)) / pairs_a_row", "__ldcg(pairs))"),
        "mixture of few",
        {"": WRONG},
    ),
    Mutant(
        "pairs of a tile are read before they are there",
        ("experts_many.cu", "  __syncthreads();\n  int n_eights", "  int n_eights"),
        "mixture of many",
        {"": f"{WRONG}|{FAULT}|killed", "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "rows have the scales of their neighbours",
        ("experts_many.cu", "neighbours[odd >> 2 * n & 1]", "neighbours[1 - (odd >> 2 * n & 1)]"),
        "mixture of many",
        {"": WRONG},
    ),
)
