// SPDX-License-Identifier: Apache-2.0
//
// Who waits for a GPU, for what and since when. A thread that waits for a GPU cannot be woken but by the GPU, so one that hangs (a kernel
// without an end, a card that fell off the bus) would keep the run for ever; somebody else has to look.
//
//   DeviceWatch watch(ranks, clock, patience);
//   {
//       const DeviceWatch::Wait here(&watch, rank, step, work);   // the rank's thread
//       event.wait();
//   }
//   const DeviceWatch::Wait here(&watch, rank, "building its stages");   // before the steps: who prepares for it
//   watch.goesOn();                                                      // with each piece of that
//   const DeviceWatch::Wait here(&watch, rank, DeviceWatch::OfOthers{"ending its exchanges"});   // which other ranks may be long in coming to
//   watch.runEnds();                                                     // ... and are no more
//   if (const auto silent = watch.silent()) giveUp(*silent);      // another thread, now and then
//
// A wait is all that may block on the device: an action that is asked for counts as well, for reading a value waits, and so does a launch
// where too much is asked for already.
#pragma once

#include "engine/probe/clock.h"
#include "traces/base/action.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>

namespace stagecraft::runtime {

class DeviceWatch {
public:
    struct Awaited {
        traces::Rank rank{};
        traces::Step step{};
        traces::Work work{}; // of no kind: what is between the actions
        TimeNs since = 0;
        std::string_view doing = {}; // what is not of a step: "building its stages"
        bool ofOthers = false;
    };

    // Of a rank: its own, the one that sums gradients or copies beside it, the one that looks at its memory, or who prepares for it.
    enum class Thread : std::uint8_t { Own, Sums, Copies, Memory, Preparing };
    static constexpr std::size_t kThreads = 5;

    DeviceWatch(int ranks, const Clock& clock, TimeNs patience) : clock_(clock), patience_(patience), slots_(kThreads * static_cast<std::size_t>(ranks)) {}

    // What also needs others: it says nothing of the GPU while the run goes on. Once that ends nobody comes, and the GPU alone is waited for.
    struct OfOthers {
        std::string_view doing; // lives as long as the program
    };

    [[nodiscard]] TimeNs patience() const { return patience_; }
    void goesOn(); // what prepares has not hung until now
    void runEnds(); // any number of times; the first counts
    [[nodiscard]] std::optional<Awaited> silent() const; // the longest of the waits that are longer than the patience

    // Of a thread that has no other for the same rank but one around it.
    class Wait {
    public:
        Wait(DeviceWatch* watch, traces::Rank rank, traces::Step step, const traces::Work& work = {}, Thread thread = Thread::Own); // null: nobody looks
        // What is before the steps or beside them; the text lives as long as the program.
        Wait(DeviceWatch* watch, traces::Rank rank, std::string_view doing, Thread thread = Thread::Preparing);
        Wait(DeviceWatch* watch, traces::Rank rank, OfOthers what); // of the rank's own thread, or who ends the run for it
        ~Wait();
        Wait(const Wait&) = delete;
        Wait& operator=(const Wait&) = delete;

    private:
        void begin(const Awaited& awaited);

        DeviceWatch* watch_;
        std::size_t slot_;
        std::optional<Awaited> outer_; // which goes on when this one is over, from then on
    };

private:
    static constexpr TimeNs kGoesOn = std::numeric_limits<TimeNs>::max();
    struct Slot {
        mutable std::mutex mutex;
        std::optional<Awaited> awaited;
    };

    const Clock& clock_;
    TimeNs patience_;
    std::atomic<TimeNs> endsSince_{kGoesOn};
    std::deque<Slot> slots_; // by rank and thread
};

} // namespace stagecraft::runtime
