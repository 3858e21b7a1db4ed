"""Ways to break the Metal kernels of attention and logits, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant

RACE = "ThreadSanitizer: data race"

ATTENTION = (
    Mutant(
        "a query sees the key after its own",
        ("attention_block.metal", "position - number * KEYS + 1, KEYS", "position - number * KEYS + 2, KEYS"),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "hidden keys count in the sum",
        ("attention_block.metal", "key < block.end[c] ? score : -INFINITY", "true ? score : -INFINITY"),
        "attention of many",
        {"": WRONG},
    ),
    Mutant(
        "a lane's share of a key is left out of the score",
        ("attention_block.metal", "s[i][c] = sum[c] + simd_shuffle_xor(sum[c], 2);", "s[i][c] = sum[c];"),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "weights are read before they are there",
        (
            "attention_block.metal",
            "block.l[c] = l;\n  }\n  simdgroup_barrier(mem_flags::mem_threadgroup);",
            "block.l[c] = l;\n  }",
        ),
        "attention of few",
        {"thread": RACE},
    ),
    Mutant(
        "states merge without bringing the second to the same greatest score",
        ("attention_block.metal", "lr_exp2(m2 - base)}", "1.f}"),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "queries are used before all are there",
        (
            "attention.metal",
            "sink_q[head * DIM + i] : 0.f;\n  }\n  threadgroup_barrier(mem_flags::mem_threadgroup);",
            "sink_q[head * DIM + i] : 0.f;\n  }",
        ),
        "attention of few",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "values of a block are merged before it has put them down",
        (
            "attention.metal",
            "mine[64 * c + 2 * lane + 1] = block.o[i][c].y;\n    threadgroup_barrier(mem_flags::mem_threadgroup);",
            "mine[64 * c + 2 * lane + 1] = block.o[i][c].y;",
        ),
        "attention of few",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "the units before the last are forgotten",
        (
            "attention.metal",
            "for (int first = 0; first < n_seen; first += MERGED)",
            "for (int first = n_seen - 1; first < n_seen; first += MERGED)",
        ),
        "attention of few",
        {"": WRONG},
    ),
    Mutant(
        "tiles take queries of the row before",
        ("attention_tiles.metal", "(first_column + c) / heads, head =", "(first_column + c - 1) / heads, head ="),
        "attention of many",
        {"": WRONG},
    ),
    Mutant(
        "nibbles of the upper half are those of the lower",
        (
            "cache.metal",
            "ushort*)(row + dim % (DIM / 2))) >> (dim < DIM / 2 ? 0 : 4)",
            "ushort*)(row + dim % (DIM / 2))) >> 0",
        ),
        "attention of codes",
        {"": WRONG},
    ),
    Mutant(
        "a query reads codes where it should read halves",
        (
            "attention.metal",
            "const bool in_ring = HAS_RING && (number == 0 ||",
            "const bool in_ring = HAS_RING && (false ||",
        ),
        "attention of codes",
        {"": WRONG},
    ),
)
APPENDING = (
    Mutant(
        "turned numbers are paired before all are there",
        (
            "rope_append.metal",
            "sin) + long(row) * pairs;\n    threadgroup_barrier(mem_flags::mem_threadgroup);",
            "sin) + long(row) * pairs;",
        ),
        "rope_append",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "the Hadamard matrix has a wrong sign",
        ("rope_append.metal", "x[low] = a + b, x[high] = a - b;", "x[low] = a + b, x[high] = b - a;"),
        "codes",
        {"": WRONG},
    ),
    Mutant(
        "steps of the transform overtake each other",
        (
            "rope_append.metal",
            "stride *= 2) {\n    threadgroup_barrier(mem_flags::mem_threadgroup);",
            "stride *= 2) {",
        ),
        "codes",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "values go where keys go",
        ("rope_append.metal", "if (is_v) lr_store(values,", "if (is_v) lr_store(keys,"),
        "rope_append",
        {"": WRONG},
    ),
)
LOGITS = (
    Mutant(
        "numbers change places before others have read them",
        (
            "logits.metal",
            "step /= 2) {\n      threadgroup_barrier(mem_flags::mem_threadgroup);",
            "step /= 2) {",
        ),
        "ranking",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "of equal logits the higher id comes first",
        ("numbers.metal", "ulong(~uint(id))", "ulong(uint(id))"),
        "ranking",
        {"": WRONG},
    ),
)
MUTANTS = (*ATTENTION, *APPENDING, *LOGITS)
