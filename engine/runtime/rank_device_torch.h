// SPDX-License-Identifier: Apache-2.0
//
// Where a rank computes: on the CPU, or on a GPU through a stream of its own. A GPU does later what a thread asks for now; marks are
// moments in a stream that others wait for and that tell, once they are reached, when that was on the run's clock. On the CPU all of this
// is nothing: what a thread asks for is done when the call is over. Private to the runtime.
//
//   RankDevice device(c10::Device(at::kCUDA, 1), clock);
//   device.beginStep();                       // nothing of the rank is under way
//   const RankDevice::Scope here = device.enter();   // what this thread asks for goes to the rank's stream
//   x = device.fetch(given).tensor;           // waits, in the stream, until it is made; from another GPU it is copied
//   DeviceMark begin = device.mark(); y = forward(x); DeviceMark end = device.mark();
//   ...
//   end->wait(); end->time();                 // any thread
//
// A rank that executes two actions side by side has two streams for computing; what follows means the one that it was turned to last.
//
// Memory: LibTorch's allocators give what is let go of to the stream that it was taken on, at once. So what comes from another stream must
// be held until what uses it is over, not only asked for (rank_worker_torch.cpp).
#pragma once

#include "engine/probe/clock.h"
#include "traces/base/action.h"
#include "traces/store/trace.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>
#include <unordered_map>

namespace stagecraft::runtime {

// A moment in a stream. Any thread.
class StreamMoment {
public:
    // What moments of a stream are counted from, and when that was: taken anew for each step, as a device tells lengths with 24 bits.
    struct Base {
        c10::Event event;
        TimeNs time = 0;
    };
    StreamMoment(const c10::Stream& stream, std::shared_ptr<const Base> base);

    void wait() const { event_.synchronize(); }
    [[nodiscard]] bool reached() const { return event_.query(); }
    void before(const c10::Stream& stream) const { event_.block(stream); } // what is asked for on it from now on comes after this
    [[nodiscard]] TimeNs time() const;                                     // of one that was reached

private:
    c10::Event event_;
    std::shared_ptr<const Base> base_;
};
using DeviceMark = std::shared_ptr<const StreamMoment>; // none on the CPU

// What goes from one stage to another.
struct Boundary {
    at::Tensor tensor;
    DeviceMark ready = {}; // when it is made
};

// As what a tensor from another stage counts where it was copied.
constexpr traces::MemoryClass arrivesAs(traces::ActionKind kind)
{
    return kind == traces::ActionKind::Forward ? traces::MemoryClass::Activations : traces::MemoryClass::Other;
}

class RankDevice {
public:
    RankDevice() = default; // the CPU
    RankDevice(c10::Device device, const Clock& clock);

    // Another stream of the same GPU, for what goes on beside the computing; copies have no further one there. Its marks count from where
    // this one's do, from countFrom() on.
    [[nodiscard]] RankDevice beside() const;
    void countFrom(const RankDevice& other) { base_ = other.base_; }

    // A second stream for computing, of a GPU.
    void addStream();
    [[nodiscard]] bool hasTwo() const { return beside_.has_value(); }
    void turnTo(std::size_t which); // 0, as at the beginning, or 1
    // What is asked for on the other one from now on comes after what this one has been asked for. Before memory is given back here that
    // the other has taken: that gives it away at once. Nothing where there is one.
    void letOtherWait() const;

    // Any thread.
    [[nodiscard]] bool isCpu() const { return device_.is_cpu(); }
    [[nodiscard]] c10::Device device() const { return device_; }

    // The first thing on a thread that works with the GPU: LibTorch goes back to the thread's own one after each event, and CUDA then makes
    // a context there, half a gigabyte, also where nobody computes on it.
    void useHere() const;

    class Scope {
    public:
        explicit Scope(const std::optional<c10::Stream>& stream)
        {
            if (stream) guard_.reset_stream(*stream);
        }

    private:
        c10::OptionalStreamGuard guard_;
    };
    [[nodiscard]] Scope enter() const { return Scope(stream_); }
    [[nodiscard]] c10::Stream anotherStream() const; // of a GPU, for a thread beside the rank's: Scope(stream)

    // NVIDIA's libraries take memory at the first product of a thread and stream: that is nobody's, and not the first action's time.
    void warmUp() const;                   // on the rank's thread, of both streams
    void beginStep();                      // the same
    [[nodiscard]] DeviceMark mark() const; // of what this thread has asked for so far, in enter()
    [[nodiscard]] DeviceMark markOn(const c10::Stream& stream) const; // of another one of the device, after beginStep()
    void drain() const;                    // waits until it is through, with both

    struct Fetched {
        at::Tensor tensor;
        DeviceMark ready = {};  // when it is here: where it was copied to a GPU, the end of the copy
        at::Tensor source = {}; // of such a copy: to be held until `ready`
    };
    // Here, and after what makes it; a leaf of its own where it was copied. In enter(). The CPU waits for it; a GPU does not, but for what
    // the driver needs to take a tensor off the host.
    [[nodiscard]] Fetched fetch(Boundary from);
    // What is asked for from now on comes after it. The CPU waits for it. In enter().
    void await(const DeviceMark& mark) const;
    void awaitWithBoth(const DeviceMark& mark) const; // wherever it is used
    // Into tensors that lie here, from tensors of one device that are made at `ready` and held until a later mark. In enter().
    void copy(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from, const DeviceMark& ready);
    // A copy of a block that lies here, or there: `to` is this GPU, another one, or the host, in memory then that a GPU copies to and from
    // by itself. Both are to be held until a later mark. In enter().
    [[nodiscard]] at::DataPtr copied(const at::DataPtr& from, std::size_t bytes, c10::Device to);

private:
    [[nodiscard]] c10::Stream streamOn(c10::Device other);

    c10::Device device_{c10::DeviceType::CPU}; // of its own: the streams are turned while other threads ask for it
    const Clock* clock_ = nullptr;
    std::optional<c10::Stream> stream_;
    std::optional<c10::Stream> beside_; // the other one, where there are two
    std::size_t turned_ = 0;
    std::optional<c10::Stream> copies_;           // for what comes from elsewhere
    std::unordered_map<c10::Device, c10::Stream> elsewhere_; // there
    std::shared_ptr<const StreamMoment::Base> base_;
};

} // namespace stagecraft::runtime
