// What every kernel of the archive looks like: `NAME_ELEMENT(data, n, scratch, out)` reduces n elements at data, launched with
// whole warps, and leaves the payload of core's state in out.

#pragma once

#include "load.cuh"

#define JOINED(name, element) name##_##element
#define NAMED(name, element) JOINED(name, element)
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAMED(name, ELEMENT)
