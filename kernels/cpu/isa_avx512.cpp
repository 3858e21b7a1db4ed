#define LR_UNIT lr_kernels_avx512
#define LR_UNIT_NAME "avx512"
#define LR_UNIT_ARITHMETIC Int16
#include "unit.inc"
