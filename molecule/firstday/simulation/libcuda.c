/* The calls with which the collection asks whether CUDA works: one device, if the module is loaded. */
#include <unistd.h>
int cuInit(unsigned int flags) { return access("/sys/module/nvidia/version", R_OK) ? 100 : 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuGetErrorName(int code, const char **name) { *name = code ? "CUDA_ERROR_NO_DEVICE" : "CUDA_SUCCESS"; return 0; }
