#define LR_UNIT lr_kernels_neon
#define LR_UNIT_NAME "neon"
#define LR_UNIT_ARITHMETIC OutlierInt8
#include "unit.inc"
