"""Ways to break the kernels of mixtures of experts, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant
from localrun_testing.kernel_mutants import FAULT, RACE

CUDA = (
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
METAL = (
    Mutant(
        "tiles are made before all rows have been routed",
        ("mixture.metal", "  threadgroup_barrier(mem_flags::mem_device);\n  for (int p", "  for (int p"),
        "mixture of few",
        {"": f"{WRONG}|killed", "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "weights are added up before they are written",
        ("mixture.metal", "    simdgroup_barrier(mem_flags::mem_device);\n    for (int k", "    for (int k"),
        "mixture of few",
        {"thread": RACE},
    ),
    Mutant(
        "groups are ranked before all keys are there",
        ("mixture.metal", "  simdgroup_barrier(mem_flags::mem_threadgroup);\n  for (int group", "  for (int group"),
        "mixture of floats",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "the best groups are those that are left out",
        ("mixture.metal", "if (groups[i / size] != 0)", "if (groups[i / size] == 0)"),
        "mixture of floats",
        {"": WRONG},
    ),
    Mutant(
        "a pair leaves the first place of its tile empty",
        ("mixture.metal", "pairs[n + place - 1] = p", "pairs[n + place] = p"),
        "mixture of many",
        {"": f"{WRONG}|killed"},
    ),
    Mutant(
        "a shared expert is weighted by what its gate was before",
        ("mixture.metal", "lr_sigmoid(share[row])", "share[row]"),
        "mixture of floats",
        {"": WRONG},
    ),
    Mutant(
        "all experts have the biases of the first",
        ("experts.metal", "bias##i + long(expert) * n_out", "bias##i"),
        "mixture of few",
        {"": WRONG},
    ),
    Mutant(
        "pairs read rows by their own number",
        ("experts.metal", "max(pairs[m], 0) / pairs_a_row", "max(pairs[m], 0)"),
        "mixture of few",
        {"": WRONG},
    ),
    Mutant(
        "sums of experts are added before all are there",
        ("experts.metal", "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  const int row", "  const int row"),
        "mixture of few",
        {"thread": RACE},
    ),
    Mutant(
        "pairs of a large tile read rows by their own number",
        ("experts_many.metal", "-1 : pair / pairs_a_row", "-1 : pair"),
        "mixture of many",
        {"": f"{WRONG}|killed"},
    ),
    Mutant(
        "large tiles have the biases of the first expert",
        ("experts_many.metal", "bias + long(expert) * n_out", "bias"),
        "mixture of many",
        {"": WRONG},
    ),
    Mutant(
        "large tiles begin within others",
        ("experts_many.metal", "long(group.y) * N_X", "long(group.y) * (N_X / 2)"),
        "mixture of many",
        {"": f"{WRONG}|killed"},
    ),
)
MUTANTS = (*CUDA, *METAL)
