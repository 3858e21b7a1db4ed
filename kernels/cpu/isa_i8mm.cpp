#define LR_UNIT lr_kernels_i8mm
#define LR_UNIT_NAME "i8mm"
#define LR_UNIT_ARITHMETIC OutlierInt8
#include "unit.inc"
