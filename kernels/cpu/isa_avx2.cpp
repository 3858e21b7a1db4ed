#define LR_UNIT lr_kernels_avx2
#define LR_UNIT_NAME "avx2"
#include "unit.inc"
