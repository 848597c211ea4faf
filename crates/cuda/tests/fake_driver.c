/* A driver for tests: it has the functions that are called, keeps count of what it
 * gave out and of each thread's current contexts, and does what the calls say with
 * memory of the host. Compiled by src/driver/tests.rs.
 *
 * VERSION is the version it says; -DcuXxx=gone takes cuXxx away. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct Context *CUcontext;

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600 };

#ifndef VERSION
#define VERSION 12040
#endif

/* What tests look at. */
static _Thread_local CUcontext stack[64];
static _Thread_local int depth;
static _Thread_local char calls[1 << 16];
static _Thread_local const char *failing;
static _Thread_local int failing_with, failing_after;
static _Thread_local int pushed, popped;
static struct Context { int retained; } primary[2];
static int alive;

void *fake_current(void) { return depth ? stack[depth - 1] : NULL; }
int fake_depth(void) { return depth; }
void *fake_primary(int device) { return &primary[device]; }
int fake_retained(int device) { return __atomic_load_n(&primary[device].retained, __ATOMIC_SEQ_CST); }
/* Contexts that were made current, less those that were taken away. */
int fake_balance(void) { return pushed - popped; }
int fake_alive(void) { return __atomic_load_n(&alive, __ATOMIC_SEQ_CST); }
const char *fake_calls(void) { return calls; }
void fake_forget_calls(void) { calls[0] = 0; }
/* From now on, the call of this name fails on this thread, after so many that do not. */
void fake_fail(const char *name, int with, int after) { failing = name, failing_with = with, failing_after = after; }
/* What a caller does who has a context of their own. */
void fake_set_current(void *context) {
    if (context == NULL) depth = 0;
    else stack[depth ? depth - 1 : depth++] = context;
}

static CUresult begin(const char *name) {
    size_t used = strlen(calls);
    if (used + strlen(name) + 2 < sizeof calls) snprintf(calls + used, sizeof calls - used, "%s ", name);
    if (failing && strcmp(failing, name) == 0 && failing_after-- <= 0) return failing_with;
    return SUCCESS;
}

static void born(void) { __atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST); }
static void died(void) { __atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST); }

#define EXPORT __attribute__((visibility("default")))
/* A function that may be called at any time, and one that needs a current context. */
#define ANY(name) { CUresult failed = begin(#name); if (failed) return failed; }
#define CURRENT(name) ANY(name) if (fake_current() == NULL) return INVALID_CONTEXT

EXPORT CUresult cuInit(unsigned flags) { ANY(cuInit) return flags ? INVALID_VALUE : SUCCESS; }
EXPORT CUresult cuDriverGetVersion(int *version) { ANY(cuDriverGetVersion) return *version = VERSION, SUCCESS; }

EXPORT CUresult cuGetErrorName(CUresult error, const char **text) {
    switch (error) {
    case INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case INVALID_CONTEXT: *text = "CUDA_ERROR_INVALID_CONTEXT"; return SUCCESS;
    case NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
    default: *text = NULL; return INVALID_VALUE;
    }
}
EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
    if (error == OUT_OF_MEMORY) return *text = "out of memory", SUCCESS;
    *text = NULL;
    return INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetCount(int *count) { ANY(cuDeviceGetCount) return *count = 2, SUCCESS; }
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) { ANY(cuDeviceGet) return *device = ordinal, SUCCESS; }
EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice device) {
    ANY(cuDeviceGetName)
    /* As long as there is room, without a zero byte at the end: a driver should not. */
    if (device == 1) memset(name, 'x', (size_t)len);
    else snprintf(name, (size_t)len, "Fake %d", device);
    return SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    ANY(cuDeviceGetAttribute)
    (void)device;
    return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 100 + attribute, SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { ANY(cuDeviceTotalMem_v2) (void)device; return *bytes = (size_t)80 << 30, SUCCESS; }
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ANY(cuDevicePrimaryCtxRetain)
    __atomic_add_fetch(&primary[device].retained, 1, __ATOMIC_SEQ_CST);
    return *context = &primary[device], SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    ANY(cuDevicePrimaryCtxRelease_v2)
    __atomic_sub_fetch(&primary[device].retained, 1, __ATOMIC_SEQ_CST);
    return SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) { ANY(cuCtxGetCurrent) return *context = fake_current(), SUCCESS; }
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    ANY(cuCtxPushCurrent_v2)
    if (depth == 64) return INVALID_VALUE;
    return stack[depth++] = context, pushed++, SUCCESS;
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    ANY(cuCtxPopCurrent_v2)
    if (depth == 0) return INVALID_CONTEXT;
    return *context = stack[--depth], popped++, SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    CURRENT(cuMemAlloc_v2);
    if (bytes == 0) return INVALID_VALUE;
    void *memory = bytes > (size_t)1 << 30 ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (memory == NULL) return OUT_OF_MEMORY;
    return born(), *address = (CUdeviceptr)(uintptr_t)memory, SUCCESS;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) { CURRENT(cuMemFree_v2); return died(), free((void *)(uintptr_t)address), SUCCESS; }
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, void *stream) {
    CURRENT(cuMemcpyHtoDAsync_v2);
    (void)stream;
    return memcpy((void *)(uintptr_t)to, from, bytes), SUCCESS;
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, void *stream) {
    CURRENT(cuMemcpyDtoHAsync_v2);
    (void)stream;
    return memcpy(to, (void *)(uintptr_t)from, bytes), SUCCESS;
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, void *stream) {
    CURRENT(cuMemsetD8Async);
    (void)stream;
    return memset((void *)(uintptr_t)to, value, bytes), SUCCESS;
}
EXPORT CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
    CURRENT(cuMemHostAlloc);
    /* Portable and mapped. */
    if (flags != 3) return INVALID_VALUE;
    *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *at ? born(), memset(*at, 0x5a, bytes), SUCCESS : OUT_OF_MEMORY;
}
EXPORT CUresult cuMemFreeHost(void *at) { CURRENT(cuMemFreeHost); return died(), free(at), SUCCESS; }
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *at, unsigned flags) {
    CURRENT(cuMemHostGetDevicePointer_v2);
    if (flags) return INVALID_VALUE;
    return *address = (CUdeviceptr)(uintptr_t)at, SUCCESS;
}
EXPORT CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
    CURRENT(cuPointerGetAttribute);
    (void)address;
    /* All memory is pinned memory of device 1. */
    *(int *)value = attribute == 9 ? 1 : attribute == 2 ? 1 : 0;
    return SUCCESS;
}
EXPORT CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr address) {
    CURRENT(cuPointerGetAttributes);
    (void)address;
    for (unsigned i = 0; i < count; i++)
        *(int *)values[i] = attributes[i] == 2 ? 2 : attributes[i] == 9 ? 1 : 0;
    return SUCCESS;
}

/* A module is its text; kernels are those that it names after ".entry ". */
EXPORT CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    CURRENT(cuModuleLoadDataEx);
    if (count != 2 || options[0] != 5 || options[1] != 6) return INVALID_VALUE;
    if (strstr(image, "broken")) {
        snprintf(values[0], (size_t)values[1], "ptxas: line 1: broken");
        return INVALID_VALUE;
    }
    *module = strdup(image);
    return born(), SUCCESS;
}
EXPORT CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
    CURRENT(cuModuleGetFunction);
    char *entry = strstr(module, ".entry ");
    char *found = entry ? strstr(entry, name) : NULL;
    return found ? *function = found, SUCCESS : NOT_FOUND;
}
EXPORT CUresult cuModuleUnload(void *module) { CURRENT(cuModuleUnload); return died(), free(module), SUCCESS; }

EXPORT CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, void **state) {
    CURRENT(cuLinkCreate_v2);
    (void)values;
    if (count != 2 || options[0] != 5 || options[1] != 6) return INVALID_VALUE;
    *state = calloc(1, 1);
    return born(), SUCCESS;
}
EXPORT CUresult cuLinkAddData_v2(void *state, int what, void *data, size_t bytes, const char *name, unsigned count, int *options, void **values) {
    CURRENT(cuLinkAddData_v2);
    (void)state, (void)name, (void)options, (void)values;
    return what == 1 && count == 0 && bytes == strlen(data) + 1 ? SUCCESS : INVALID_VALUE;
}
EXPORT CUresult cuLinkAddFile_v2(void *state, int what, const char *path, unsigned count, int *options, void **values) {
    CURRENT(cuLinkAddFile_v2);
    (void)state, (void)path, (void)options, (void)values;
    return what == 4 && count == 0 ? SUCCESS : INVALID_VALUE;
}
EXPORT CUresult cuLinkComplete(void *state, void **image, size_t *bytes) {
    CURRENT(cuLinkComplete);
    (void)state;
    return *image = ".entry linked", *bytes = 14, SUCCESS;
}
EXPORT CUresult cuLinkDestroy(void *state) { CURRENT(cuLinkDestroy); return died(), free(state), SUCCESS; }

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, void *function) { CURRENT(cuFuncGetAttribute); (void)function; return *value = 10 + attribute, SUCCESS; }
EXPORT CUresult cuFuncSetAttribute(void *function, int attribute, int value) { CURRENT(cuFuncSetAttribute); (void)function; return attribute == 8 && value <= 232448 ? SUCCESS : INVALID_VALUE; }
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
    CURRENT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    (void)function, (void)shared;
    return *blocks = 2048 / threads, SUCCESS;
}

struct Attribute { int id; char pad[4]; union { char pad[64]; int number; unsigned cluster[3]; void *pointer; } value; };
struct Config { unsigned grid[3], block[3], shared; void *stream; struct Attribute *attributes; unsigned count; };
/* "fill" writes its second argument to the byte at its first, for each block; with
 * what else the launch was told. */
static char launched[256];
const char *fake_launched(void) { return launched; }
EXPORT CUresult cuLaunchKernelEx(const struct Config *config, void *function, void **parameters, void **extra) {
    CURRENT(cuLaunchKernelEx);
    if (extra) return INVALID_VALUE;
    int used = snprintf(launched, sizeof launched, "%u.%u.%u of %u.%u.%u shared %u", config->grid[0], config->grid[1], config->grid[2], config->block[0], config->block[1], config->block[2], config->shared);
    for (unsigned i = 0; i < config->count; i++) {
        struct Attribute *a = &config->attributes[i];
        if (a->id == 4) used += snprintf(launched + used, sizeof launched - (size_t)used, " cluster %u.%u.%u", a->value.cluster[0], a->value.cluster[1], a->value.cluster[2]);
        else used += snprintf(launched + used, sizeof launched - (size_t)used, " attribute %d = %d", a->id, a->value.number);
    }
    if (strncmp(function, "fill", 4) == 0) memset((void *)(uintptr_t)*(CUdeviceptr *)parameters[0], *(unsigned char *)parameters[1], config->grid[0]);
    return SUCCESS;
}

EXPORT CUresult cuStreamCreate(void **stream, unsigned flags) { CURRENT(cuStreamCreate); return flags == 1 ? *stream = malloc(1), born(), SUCCESS : INVALID_VALUE; }
EXPORT CUresult cuStreamDestroy_v2(void *stream) { CURRENT(cuStreamDestroy_v2); return died(), free(stream), SUCCESS; }
EXPORT CUresult cuStreamSynchronize(void *stream) { CURRENT(cuStreamSynchronize); (void)stream; return SUCCESS; }
EXPORT CUresult cuStreamQuery(void *stream) { CURRENT(cuStreamQuery); return stream ? NOT_READY : SUCCESS; }
EXPORT CUresult cuEventCreate(void **event, unsigned flags) { CURRENT(cuEventCreate); return flags == 0 ? *event = malloc(1), born(), SUCCESS : INVALID_VALUE; }
EXPORT CUresult cuEventRecord(void *event, void *stream) { CURRENT(cuEventRecord); (void)event, (void)stream; return SUCCESS; }
EXPORT CUresult cuEventElapsedTime(float *milliseconds, void *begin_event, void *end_event) { CURRENT(cuEventElapsedTime); return begin_event != end_event ? *milliseconds = 1.5f, SUCCESS : INVALID_VALUE; }
EXPORT CUresult cuEventDestroy_v2(void *event) { CURRENT(cuEventDestroy_v2); return died(), free(event), SUCCESS; }
