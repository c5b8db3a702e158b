// EIDER_ALWAYS_INLINE: for functions that kernels of several instruction sets include. Such a function must
// not be emitted on its own, or the linker might keep the copy compiled for the wider CPU and call it on the
// narrower one.
#pragma once

#define EIDER_ALWAYS_INLINE inline __attribute__((always_inline))
