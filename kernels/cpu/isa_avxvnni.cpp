#define LR_UNIT lr_kernels_avxvnni
#define LR_UNIT_NAME "avxvnni"
#define LR_UNIT_ARITHMETIC OutlierInt8
#include "unit.inc"
