"""Ways to break the Metal kernels of linears and norms, and who notices each of them."""

from localrun_testing.broken_kernels import SCHEDULES, WRONG, Mutant

FAULT = "EmulatedFault"
OVERFLOW = "AddressSanitizer: (heap|global)-buffer-overflow"
RACE = "ThreadSanitizer: data race"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"

LINEAR = (
    Mutant(
        "the sums of segments are added before all are there",
        ("linear.metal", f"  {BARRIER}\n  const int row", "  const int row"),
        "linear of few",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "half of the simdgroups do not wait for the others",
        ("linear.metal", f"  {BARRIER}\n  const int row", f"  if (simdgroup < 4) {BARRIER}\n  const int row"),
        "linear of few",
        {"": FAULT},
    ),
    Mutant(
        "no room for the last segment",
        ("linear.metal", "partial[N_SEGMENTS * N_X * 32]", "partial[(N_SEGMENTS - 1) * N_X * 32]"),
        "linear of few",
        {"address": f"{OVERFLOW}|out of bounds"},
    ),
    Mutant(
        "a segment without columns writes no sum",
        ("linear.metal", "if (t == r) partial", "if (t == r && first < end) partial"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "chains are added to the wrong ones",
        ("linear.metal", "chains += simd_shuffle_xor(chains, 2)", "chains += simd_shuffle_xor(chains, 1)"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "rows beyond the matrix are written",
        ("linear.metal", "if (m >= n_x || n >= of.n_out) return;", "if (m >= n_x) return;"),
        "linear of few",
        {"address": OVERFLOW},
    ),
    Mutant(
        "rows of x that are not there are read",
        ("linear.metal", "        if (m >= n_x) break;\n", ""),
        "linear of few",
        {"address": OVERFLOW},
    ),
    Mutant(
        "a bias that is not there is added",
        ("matrices.metal", "LR_GIVEN(5 * i + 1)", "LR_GIVEN(5 * i)"),
        "linear of few",
        {"address": OVERFLOW},
    ),
    Mutant(
        "squares are added before all are there",
        ("linear.metal", f"  {BARRIER}\n  float scale", "  float scale"),
        "gate and up",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "a norm within multiplies in another order",
        ("linear.metal", "v[j] * scale[m] * gains[j]", "v[j] * (scale[m] * gains[j])"),
        "gate and up",
        {"": WRONG},
    ),
    Mutant(
        "signs of codes are lost",
        ("layouts.metal", "(is_signed ? 1u << (at + bits - 1) : 0u)", "0u"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "high bits count as much as low ones",
        ("layouts.metal", "HIGH_BITS, LOW_BITS, SIGNED_CODES)", "HIGH_BITS, 0, SIGNED_CODES)"),
        "linear of few",
        {"": WRONG},
    ),
    Mutant(
        "rows of floats are taken for their neighbours",
        ("floats.metal", "* 16 + 8 * h) * 16", "* 16 + h) * 16"),
        "linear of floats",
        {"": WRONG},
    ),
    Mutant(
        "tiles beyond the last are read",
        ("embed.metal", "  if (place >= n_tiles * 4) return;\n", ""),
        "embed",
        {"address": OVERFLOW},
    ),
)
LINEAR_MANY = (
    Mutant(
        "half a tile is staged while others still read the last",
        ("many_sums.metal", f"        {BARRIER}  // nobody", "        // nobody"),
        "linear of many",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "what is staged is read before all is there",
        ("many_sums.metal", f"        {BARRIER}\n        lr_multiply", "        lr_multiply"),
        "linear of many",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "sums take the place of weights that others still read",
        ("many_sums.metal", f"  {BARRIER}\n  lr_keep", "  lr_keep"),
        "linear of many",
        {"thread": RACE},
    ),
    Mutant(
        "too little room for rows of x",
        ("linear_many.metal", "staged_x[N_X * STRIDE]", "staged_x[N_X * STRIDE - 4]"),
        "linear of many",
        {"address": f"{OVERFLOW}|out of bounds"},
    ),
    Mutant(
        "lanes keep the totals of their neighbours",
        ("many_sums.metal", "pair[p] = (odd ? odd_m : even_m)", "pair[p] = (odd ? even_m : odd_m)"),
        "linear of many",
        {"": WRONG},
    ),
    Mutant(
        "rows beyond x are written",
        ("linear_many.metal", "if (m < n_x && n < of.n_out)", "if (n < of.n_out)"),
        "linear of many",
        {"address": OVERFLOW},
    ),
    Mutant(
        "matrices of weights are not transposed",
        ("many_sums.metal", "STRIDE, 0, true)", "STRIDE, 0, false)"),
        "matrices",
        {"": WRONG},
    ),
    Mutant(
        "the four chains of matrices are added one after the other",
        (
            "many_sums.metal",
            "(sums.chains[2][a][b].thread_elements()[e] + sums.chains[3][a][b].thread_elements()[e])",
            "sums.chains[2][a][b].thread_elements()[e] + sums.chains[3][a][b].thread_elements()[e]",
        ),
        "matrices",
        {"": WRONG},
    ),
)
NORM = (
    Mutant(
        "the sums of simdgroups are added before all are there",
        ("numbers.metal", f"  {BARRIER}\n  float total", "  float total"),
        "norm",
        {"": WRONG, "thread": RACE},
        SCHEDULES,
    ),
    Mutant(
        "columns beyond a thread's first four are left out",
        ("norm.metal", "column < size; column += 1024", "column < 1024; column += 1024"),
        "norm",
        {"": WRONG},
    ),
    Mutant(
        "numbers beyond the last are written",
        ("elementwise.metal", "if (i < n) out[at] = x[at] * factor", "out[at] = x[at] * factor"),
        "gates",
        {"address": OVERFLOW},
    ),
)
MUTANTS = (*LINEAR, *LINEAR_MANY, *NORM)
