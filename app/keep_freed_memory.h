// SPDX-License-Identifier: Apache-2.0
//
// Programs that simulate again and again keep what one simulation freed for the next. glibc gives the end of the heap back
// to the system and takes it anew, a page fault for every 4 KiB: half of the time of a large simulation (docs/measurements.md).
// Called first thing in main(); does nothing with another C library.
//
//   int main() { stagecraft::keepFreedMemory(); ... }
#pragma once

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace stagecraft {

inline void keepFreedMemory()
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); // the most that glibc takes; blocks beyond it are mapped and unmapped
#endif
}

} // namespace stagecraft
