#define LR_UNIT lr_kernels_avx2
#define LR_UNIT_NAME "avx2"
#define LR_UNIT_ARITHMETIC FactoredInt8
#include "unit.inc"
