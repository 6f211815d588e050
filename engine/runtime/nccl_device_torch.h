// SPDX-License-Identifier: Apache-2.0
//
// What NCCL takes of LibTorch's devices. Private to the runtime.
//
//   const auto use = setsDevice(device.type());                // for a clique's useDevice
//   communicator.exchange("0SEND_F0", parts, handleOf(stream));
//   communicator.track("0SEND_F0", isOver(device.markOn(stream)));
#pragma once

#include "engine/runtime/rank_device_torch.h"
#include "traces/base/expected.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <functional>
#include <utility>

namespace stagecraft::runtime {

inline void* handleOf(const c10::Stream& stream) { return c10::impl::VirtualGuardImpl(stream.device_type()).getStreamNativeHandle(stream); }

// That which is current on the calling thread.
inline c10::Stream currentStreamOf(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

inline std::function<traces::Expected<void>(int)> setsDevice(c10::DeviceType type)
{
    return [type](int gpu) -> traces::Expected<void> {
        try {
            c10::impl::VirtualGuardImpl(type).setDevice(c10::Device(type, static_cast<c10::DeviceIndex>(gpu)));
            return {};
        } catch (const std::exception& error) {
            return traces::Error{error.what()};
        }
    };
}

// For the watchdog: whether what was issued is over.
inline std::function<bool()> isOver(DeviceMark end)
{
    return [end = std::move(end)] {
        try {
            return end->reached();
        } catch (...) { // the device has failed: who waits for it finds that as well
            return true;
        }
    };
}

} // namespace stagecraft::runtime
