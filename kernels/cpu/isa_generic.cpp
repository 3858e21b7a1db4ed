#define LR_UNIT lr_kernels_generic
#define LR_UNIT_NAME "generic"
#include "unit.inc"
