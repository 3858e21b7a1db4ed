"""Ways to break kernels that a GPU might forgive, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant

FAULT = "EmulatedFault"
OVERFLOW = "AddressSanitizer: (heap|global)-buffer-overflow"
RACE = "ThreadSanitizer: data race"

INTRINSICS = (
    Mutant(
        "no __syncwarp before what other lanes wrote is read",
        ("intrinsics.cu", "  __syncwarp();\n", ""),
        "intrinsics",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "no __syncthreads before what other threads copied is read",
        ("intrinsics.cu", "  __syncthreads();\n  to[i] =", "  to[i] ="),
        "intrinsics",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "no wait for cp.async",
        ("intrinsics.cu", "  lr_copy_wait<1>();\n", ""),
        "intrinsics",
        {"": WRONG, "address": WRONG},
    ),
    Mutant(
        "a wait for one group too few",
        ("intrinsics.cu", "lr_copy_wait<0>", "lr_copy_wait<1>"),
        "intrinsics",
        {"": f"{FAULT}.*copies under way|{WRONG}"},
    ),
    Mutant(
        "no bound on a store",
        ("intrinsics.cu", "if (i < n) c[i]", "c[i]"),
        "intrinsics",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a read beyond an input",
        ("intrinsics.cu", "from + (i < n ? i : 0), i < n", "from + i + 25, i < n"),
        "intrinsics",
        {"": WRONG, "address": OVERFLOW},
    ),
    Mutant(
        "a shared array that is one row short",
        ("intrinsics.cu", "uint4 shared[32]", "uint4 shared[31]"),
        "intrinsics",
        {"address": f"{OVERFLOW}|insufficient space"},
    ),
    Mutant(
        "a launch with too little shared memory",
        ("intrinsics.cu", "shared + blockDim.x + i, from", "shared + blockDim.x + i + 1, from"),
        "intrinsics",
        {"address": OVERFLOW},
    ),
    Mutant(
        "an unaligned vector load",
        ("intrinsics.cu", "= rows[31", "= *(const uint4*)((const char*)rows + 4), rows[31"),
        "intrinsics",
        {"address": "misaligned address"},
    ),
    Mutant(
        "a shuffle in a branch",
        ("intrinsics.cu", "  to[32 + lane] =", "  if (lane < 9) to[32 + lane] ="),
        "intrinsics",
        {"": f"{FAULT}.*(deadlock|different places).*intrinsics.cu"},
    ),
    Mutant(
        "a mask without the last lane",
        ("intrinsics.cu", "__shfl_up_sync(0xffffffffu", "__shfl_up_sync(0x7fffffffu"),
        "intrinsics",
        {"": f"{FAULT}.*a lane is not in its own mask at intrinsics.cu"},
    ),
    Mutant(
        "two barriers for one",
        (
            "intrinsics.cu",
            "  __syncthreads();\n  to[i] =",
            "  if (i < 32) __syncthreads();\n  else __syncthreads();\n  to[i] =",
        ),
        "intrinsics",
        {"": f"{FAULT}.*different __syncthreads"},
    ),
    Mutant(
        "a warp that leaves its part unwritten",
        ("intrinsics.cu", "  lr_copy_async(shared + i", "  if (i < 32) lr_copy_async(shared + i"),
        "intrinsics",
        {"": WRONG},
    ),
    Mutant(
        "another digit of a constant",
        ("device.cuh", "6.931472029e-1f", "6.931473029e-1f"),
        "intrinsics",
        {"": WRONG},
    ),
)
MUTANTS = INTRINSICS
