// SPDX-License-Identifier: Apache-2.0
//
// For the thread sanitizer alone: that memory is freed after all who had a reference have let go of it. The counts that say so are LibTorch's,
// which is not instrumented, so what one thread has read and another has freed and used anew looks like a race where the last reference
// was dropped within LibTorch. A block that is freed too early is found all the same: nobody has let go of it by then.
//
//   letGoOf(tensor.data_ptr());   // who has used its memory, before the reference is dropped
//   freed(data);                  // the allocator
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace stagecraft::runtime {

inline void letGoOf([[maybe_unused]] const void* data) noexcept
{
#if defined(__SANITIZE_THREAD__)
    __tsan_release(const_cast<void*>(data));
#endif
}

inline void freed([[maybe_unused]] void* data) noexcept
{
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(data);
#endif
}

} // namespace stagecraft::runtime
