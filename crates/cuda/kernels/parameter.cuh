// A kernel's parameters where functions that are not inlined want them by their address.
//
// Once a function is given the address of a `__grid_constant__` parameter, the compiler loads each field from there in all of the kernel,
// where it would name the field in the instruction that uses it. So the kernel's own code has the parameter, and such functions have what
// `apart` gives, of which the compiler knows nothing.

#pragma once

#include "name.cuh"

// The address of the kernel's first parameter.
static __device__ __forceinline__ const void *address_of_parameter();

// What of the same type the caller has, which is that parameter.
template <class Parameters>
__device__ __forceinline__ const Parameters &apart(const Parameters &)
{
    return *static_cast<const Parameters *>(address_of_parameter());
}

#define TEXT_OF(name) #name
#define PARAMETER_OF(name) TEXT_OF(name) "_param_0"

// Stands before a kernel of this name.
#define HAS_PARAMETER(name) \
    static __device__ __forceinline__ const void *address_of_parameter() \
    { \
        const void *address; \
        asm("{ .reg .b64 at; mov.b64 at, " PARAMETER_OF(name) "; cvta.param.u64 %0, at; }" : "=l"(address)); \
        return address; \
    }
