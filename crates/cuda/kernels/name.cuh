// The name of a kernel: NAME_ELEMENT, as its module is called.

#pragma once

#define JOINED(name, element) name##_##element
#define NAMED(name, element) JOINED(name, element)
