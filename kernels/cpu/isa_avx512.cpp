#include "isa.h"
#include "logits.inc"

const lr_kernels lr_kernels_avx512 = {"avx512", logits_stats};
