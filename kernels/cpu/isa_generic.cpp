#define LR_UNIT lr_kernels_generic
#define LR_UNIT_NAME "generic"
#define LR_UNIT_ARITHMETIC Int8
#include "unit.inc"
