#include "isa.h"
#include "logits.inc"

const lr_kernels lr_kernels_avx2 = {"avx2", logits_stats};
