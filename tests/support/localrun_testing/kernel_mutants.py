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
        {"": f"{FAULT}.*different barriers"},
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
LINEAR = (
    Mutant(
        "sums of floats are added before all are there",
        ("linear_float.cuh", "  __syncthreads();\n", ""),
        "linear of floats",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "a gate is taken for what it opens",
        ("linear_bf16.cu", "row[gate_first + n]", "row[first + n]"),
        "linear in bulk",
        {"": WRONG},
    ),
    Mutant(
        "sums beyond the last column are stored",
        ("linear_bf16.cu", "  if (n >= n_out) return;\n", ""),
        "linear in bulk",
        {"address": OVERFLOW},
    ),
    Mutant(
        "signs of codes are lost",
        ("layouts.cuh", "(SIGNED_CODES ? 8 - CODE_BITS : 0)", "0"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "tiles beyond the last are read",
        ("embed.cu", "  if (place >= n_tiles * 4) return;\n", ""),
        "embed",
        {"address": OVERFLOW},
    ),
    Mutant(
        "the sums of segments are added before all are there",
        ("linear_few.cuh", "  __syncthreads();\n", ""),
        "linear of few",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "half of the warps do not wait for the others",
        ("linear_few.cuh", "  __syncthreads();\n", "  if (segment < 4) __syncthreads();\n"),
        "linear of few",
        {"thread": RACE},
    ),
    Mutant(
        "no room for the last segment",
        ("linear_few.cuh", "partial[SIDES][N_SEGMENTS][16][9]", "partial[SIDES][N_SEGMENTS - 1][16][9]"),
        "linear of few",
        {"address": f"{OVERFLOW}|out of bounds"},
    ),
    Mutant(
        "a segment without columns writes no sum",
        ("linear_few.cuh", "j < 4; j++) partial[side]", "j < 4; j++) if (segment < 6) partial[side]"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "rows beyond the matrix are written",
        ("linear_block.cuh", "if (m >= n_x || n >= of.n_out) return;", "if (m >= n_x) return;"),
        "linear of few",
        {"address": OVERFLOW},
    ),
    Mutant(
        "rows of x that are not there are read",
        ("linear_block.cuh", "if (g < n_x) step.x", "step.x"),
        "linear of few",
        {"address": OVERFLOW},
    ),
    Mutant(
        "groups of x are read between their places",
        ("linear_block.cuh", "(const uint8_t*)(x_groups + t)", "(const uint8_t*)(x_groups + t) + 8"),
        "linear of few",
        {"address": "misaligned address"},
    ),
)
LINEAR_ENDS = (
    Mutant(
        "all matrices of a launch have the bias of the second",
        ("linear.cuh", "lr_biased(of, n, total[0]), nullptr", "lr_biased(up, n, total[0]), nullptr"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "an up has the sums of its gate",
        ("linear.cuh", "lr_biased(up, n, total[1])", "lr_biased(up, n, total[0])"),
        "mixture of few",
        {"": WRONG},
    ),
    Mutant(
        "a gate that waits is not read",
        ("linear.cuh", "waits ? to.out[at] : gate", "gate"),
        "mixture of many",
        {"": WRONG},
    ),
)
LINEAR_GATE = (
    Mutant(
        "a group is quantised before all of it is there",
        ("linear_gate.cu", "    __syncthreads();  //", "    //"),
        "gate beside up",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "columns that are not there are read and stored",
        ("linear_gate.cu", "m < n_x && n < n_out0", "m < n_x"),
        "gate beside up",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a row tile that is not there is read",
        ("linear_gate.cu", "if (row_tile * 16 < n_out0) lr", "lr"),
        "gate beside up",
        {"address": OVERFLOW},
    ),
)
LINEAR_MIXED = (
    Mutant(
        "sums of two layouts are added before all are there",
        ("linear_few.cuh", "  __syncthreads();\n", ""),
        "linear of two layouts",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "rows beyond matrices of two layouts are written",
        ("linear_block.cuh", "if (m >= n_x || n >= of.n_out) return;", "if (m >= n_x) return;"),
        "linear of two layouts",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a block reads the other layout",
        ("linear_mixed.cu", "(int)blockIdx.x < first_blocks", "(int)blockIdx.x <= first_blocks"),
        "linear of two layouts",
        {"": WRONG},
    ),
    Mutant(
        "the second layout has groups of the first",
        ("linear_mixed.cu", "#define GROUP GROUP_2", "#define GROUP 32"),
        "linear of two layouts",
        {"": WRONG},
    ),
)
LINEAR_MANY = (
    Mutant(
        "a stage is filled while others still read it",
        ("linear_many.cuh", "    __syncthreads();  //", "    //"),
        "linear of many",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "no wait for a stage",
        ("linear_many.cuh", "    lr_copy_wait<STAGES - 2>();\n", ""),
        "linear of many",
        {"": WRONG},
    ),
    Mutant(
        "a wait for the stage before",
        ("linear_many.cuh", "lr_copy_wait<STAGES - 2>", "lr_copy_wait<STAGES - 1>"),
        "linear of many",
        {"": WRONG},
    ),
    Mutant(
        "more stages than the launch has room for",
        ("linear_many.cuh", "#define STAGES 3", "#define STAGES 4"),
        "linear of many",
        {"address": OVERFLOW},
    ),
    Mutant(
        "rows beyond x are written",
        ("linear_many.cu", "if (n < of.n_out && m < n_x)", "if (n < of.n_out)"),
        "linear of many",
        {"address": OVERFLOW},
    ),
)
ATTENTION = (
    Mutant(
        "weights are read before other lanes have written them",
        ("attention.cuh", "false);\n  __syncwarp();\n", "false);\n"),
        "attention of few",
        {"thread": RACE},
    ),
    Mutant(
        "values take the place of weights that others still read",
        ("attention.cu", "  __syncwarp();  // o", "  // o"),
        "attention of few",
        {"thread": RACE},
    ),
    Mutant(
        "blocks are merged before all are there",
        ("attention.cu", "    __syncthreads();\n    // A warp merges", "    // A warp merges"),
        "attention of few",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "a block that nobody sees is merged",
        ("attention.cu", "if (!sight.sees(position, unit * UNIT_BLOCKS + w)) continue;", ""),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "a part is merged twice",
        ("attention.cu", "if (first + i < n_seen) o =", "o ="),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "a head is quantised before all of it is there",
        ("attention.cu", "  else __syncthreads();\n", ""),
        "attention of few",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "shuffles whose mask lacks a lane",
        ("attention.cuh", "#define ALL_LANES 0xffffffffu", "#define ALL_LANES 0x7fffffffu"),
        "attention of few",
        {"": f"{FAULT}.*a lane is not in its own mask at attention.cuh"},
    ),
    Mutant(
        "keys are overwritten while others still read them",
        ("attention_tiles.cu", "    __syncthreads();  // it is there", "    // it is there"),
        "attention of many",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "no wait for keys",
        ("attention_tiles.cu", "    lr_copy_wait<0>();\n", ""),
        "attention of many",
        {"": f"{WRONG}|{FAULT}"},
    ),
    Mutant(
        "more queries than the launch has room for",
        ("attention_tiles.cu", "Query queries[N_WARPS]", "Query queries[N_WARPS + 2]"),
        "attention of many",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a query sees the key after its own",
        ("attention.cuh", "min(last + 1, KEYS)", "min(last + 2, KEYS)"),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "the queries of two steps change places",
        ("attention.cuh", "[2 * run][lane], q1", "[2 * run + 1][lane], q1"),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "values take the weights of other keys",
        ("attention.cuh", "from.high[g][16 * step + 8 * i", "from.high[g][16 * step + 8 * (1 - i)"),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "matrices of values change places",
        ("attention_tiles.cu", "16 * tile + 8 * (matrix % 2)", "16 * tile + 8 * (1 - matrix % 2)"),
        "attention of many",
        {"": WRONG},
    ),
    Mutant(
        "values are weighted before all weights are there",
        ("attention_f32.cu", "    __syncthreads();  // weights are there", "    // weights are there"),
        "attention of floats",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "queries are read before all are there",
        ("attention_f32.cu", "  }\n  __syncthreads();\n\n  const int number", "  }\n\n  const int number"),
        "attention of floats",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
)
CODES = (
    Mutant(
        "a query reads codes of block 0 where it should read halves",
        ("attention.cuh", "HAS_RING && (number == 0 || number == own)", "HAS_RING && number == own"),
        "attention of codes",
        {"": WRONG},
    ),
    Mutant(
        "nibbles of the upper half are those of the lower",
        ("cache.cuh", "codes[i] >> (upper ? 4 : 0)", "codes[i] >> 0"),
        "attention of codes",
        {"": WRONG},
    ),
    Mutant(
        "codes of eight bits have another zero",
        ("cache.cuh", "BITS == 8 ? 128 : 8, scale", "BITS == 8 ? 127 : 8, scale"),
        "attention of codes",
        {"": WRONG},
    ),
    Mutant(
        "the Hadamard matrix has a wrong sign",
        ("rotate.cuh", "x[low] = a + b, x[high] = a - b;", "x[low] = a + b, x[high] = b - a;"),
        "codes",
        {"": WRONG},
    ),
    Mutant(
        "steps of the transform overtake each other",
        ("rotate.cuh", "stride *= 2) {\n    __syncthreads();", "stride *= 2) {"),
        "codes",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "scales are used before they are there",
        ("rope_append.cu", "  __syncthreads();\n  const auto code", "  const auto code"),
        "codes",
        {"thread": RACE},
        SCHEDULES,
    ),
)
LOGITS = (
    Mutant(
        "numbers change places before others have read them",
        ("logits.cu", "      __syncthreads();\n      for", "      for"),
        "ranking",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "of equal logits the higher id comes first",
        ("numbers.cuh", "<< 32 | ~(uint32_t)id", "<< 32 | (uint32_t)id"),
        "ranking",
        {"": WRONG},
    ),
    Mutant(
        "a part reads logits of the next row",
        ("logits.cu", "n = min(PART, vocab - first)", "n = PART"),
        "ranking",
        {"": WRONG, "address": OVERFLOW},
    ),
)
NORM = (
    Mutant(
        "the sums of warps are added before all are there",
        ("numbers.cuh", "  __syncthreads();\n  float total", "  float total"),
        "norm",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "codes beyond the padding are written",
        ("q8.cuh", "  if (column >= to.stride) return;\n", ""),
        "quantize",
        {"address": OVERFLOW},
    ),
)
MUTANTS = (
    *(*INTRINSICS, *LINEAR, *LINEAR_ENDS, *LINEAR_GATE, *LINEAR_MIXED, *LINEAR_MANY),
    *(*ATTENTION, *CODES, *LOGITS, *NORM),
)
