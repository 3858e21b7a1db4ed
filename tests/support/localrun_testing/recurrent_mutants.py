"""Ways to break the kernels of recurrent layers, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant
from localrun_testing.kernel_mutants import OVERFLOW, RACE

END_OF_ROWS = "          }\n        }\n"  # that a threadgroup of Metal reads together

CUDA = (
    Mutant(
        "a convolution has channels that are not there",
        ("short_conv.cu", "  if (channel >= channels) return;\n", ""),
        "short convolution",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a convolution leaves the inputs of a row too early",
        ("short_conv.cu", "* channels] = seen[tap];", "* channels] = seen[tap - 1];"),
        "short convolution",
        {"": WRONG},
    ),
    Mutant(
        "rows of the rule are used before all are there",
        ("head_state.cuh", "asked[i]);\n        __syncthreads();", "asked[i]);"),
        "delta rule",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "rows of the rule are overwritten while they are used",
        ("head_state.cuh", "        __syncthreads();  // nobody", "        // nobody"),
        "delta rule",
        {"thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "the rule forgets nothing of what it reads",
        ("delta_rule.cu", "delta, decay * lr_parts_sum(read))", "delta, lr_parts_sum(read))"),
        "delta rule",
        {"": WRONG},
    ),
    Mutant(
        "value heads share key heads in the wrong order",
        ("delta_rule.cu", "tiled ? head", "!tiled ? head"),
        "delta rule",
        {"": WRONG},
    ),
    Mutant(
        "a state has columns that are not there",
        ("head_state.cuh", "return there && (", "return ("),
        "delta rule",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a state has keys that are not there",
        ("head_state.cuh", "KEYS % 16 == 0 || ", "true || "),
        "selective scan",
        {"address": OVERFLOW},
    ),
    Mutant(
        "the rule reads keys that are not there",
        ("head_state.cuh", "i < KEYS ? __ldcg(row + i) : 0.f", "__ldcg(row + i)"),
        "delta rule",
        {"": WRONG},
    ),
    Mutant(
        "the scan reads keys that are not there",
        ("head_state.cuh", "i < KEYS ? __ldcg(row + i) : 0.f", "__ldcg(row + i)"),
        "selective scan",
        {"": WRONG},
    ),
    Mutant(
        "a text is written where it has no place",
        ("head_state.cuh", "if (wanted >= 0) state", "state"),
        "selective scan",
        {"": f"{WRONG}|killed", "address": "AddressSanitizer: "},
    ),
    Mutant(
        "a quarter of the keys is left out of what is read",
        ("head_state.cuh", "return v + __shfl_xor_sync(0xffffffffu, v, 16);", "return v;"),
        "selective scan",
        {"": WRONG},
    ),
    Mutant(
        "rows of the scan are used before all are there",
        ("head_state.cuh", "asked[i]);\n        __syncthreads();", "asked[i]);"),
        "selective scan",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "warps read the rows that others have",
        ("head_state.cuh", "at + ROWS + i * WARPS + warp", "at + ROWS + warp * (ROWS / WARPS) + i"),
        "selective scan",
        {"": WRONG},
    ),
    Mutant(
        "the gate comes after the norm that is to see it",
        ("gated_norm.cu", "if (gate_first) v", "if (!gate_first) v"),
        "selective scan",
        {"": WRONG},
    ),
)
METAL = (
    Mutant(
        "a convolution leaves the inputs of a row too early",
        ("short_conv.metal", "* channels] = seen[tap];", "* channels] = seen[tap - 1];"),
        "short convolution",
        {"": WRONG},
    ),
    Mutant(
        "rows of the rule are used before all are there",
        (
            "delta_rule.metal",
            f"{END_OF_ROWS}        threadgroup_barrier(mem_flags::mem_threadgroup);",
            END_OF_ROWS,
        ),
        "delta rule",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "a state has columns that are not there",
        ("head_state.metal", "return state.there && (", "return ("),
        "delta rule",
        {"address": OVERFLOW},
    ),
    Mutant(
        "rows of the scan are used before all are there",
        (
            "selective_scan.metal",
            f"{END_OF_ROWS}        threadgroup_barrier(mem_flags::mem_threadgroup);",
            END_OF_ROWS,
        ),
        "selective scan",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "the gate comes after the norm that is to see it",
        ("gated_norm.metal", "gate_first != 0", "gate_first == 0"),
        "selective scan",
        {"": WRONG},
    ),
)
MUTANTS = (*CUDA, *METAL)
