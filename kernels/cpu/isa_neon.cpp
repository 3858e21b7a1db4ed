#define LR_UNIT lr_kernels_neon
#define LR_UNIT_NAME "neon"
#include "unit.inc"
