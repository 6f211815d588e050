// SPDX-License-Identifier: Apache-2.0
//
// Order and time of the streams of GPUs that are not there (fake_gpu.h). Any thread.
#pragma once

#include "traces/base/units.h"

#include <condition_variable>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace stagecraft::test {

using traces::TimeNs;

// How far each stream had come, by its number.
using VectorClock = std::vector<std::uint64_t>;

// A moment of a stream.
struct Mark {
    VectorClock clock;
    TimeNs time = 0;
    int device = 0;
    bool hangs = false; // until the books are released
    std::shared_ptr<const std::atomic<bool>> come = {}; // what the stream waits for from another rank; null: nothing
};

class StreamBooks {
public:
    struct Faults { // by the number of an operation, from which on they are
        int failsFrom = std::numeric_limits<int>::max();
        int hangsFrom = std::numeric_limits<int>::max();
    };
    void reset(const Faults& faults);
    static constexpr std::size_t kPool = 32; // streams of a device, which then come again, as CUDA's
    int newStream(int device); // its number

    // The operation touches these blocks, one after the other.
    struct Access {
        const void* block = nullptr;
        bool writes = false;
    };
    traces::Interval operate(int stream, const std::string& name, const std::vector<Access>& blocks, TimeNs cost); // when
    // The stream does not go on before it has come.
    void await(int stream, std::shared_ptr<const std::atomic<bool>> come);
    void hasCome(std::atomic<bool>& come);
    [[nodiscard]] Mark record(int stream);
    void block(int stream, const Mark& mark);      // the stream waits for it
    void waitOnHost(const Mark& mark);             // so does the calling thread
    [[nodiscard]] bool reached(const Mark& mark);  // as the calling thread sees it
    void take(int stream, const void* block, std::size_t bytes);
    void letGo(const void* block);

    // The block that has the address in it; null where none has.
    [[nodiscard]] const void* blockOf(const void* address);
    static constexpr TimeNs kStart = 1'000'000'000; // of all clocks: 0 is no time to CUPTI
    [[nodiscard]] TimeNs hostTime() const; // of the calling thread
    [[nodiscard]] std::vector<std::string> races() const;
    [[nodiscard]] bool failed() const;
    void release(); // what hangs
    [[nodiscard]] std::size_t held(int device) const; // bytes
    [[nodiscard]] int operations() const;
    [[nodiscard]] int hostWaits() const;
    [[nodiscard]] int blocks() const;

private:
    struct Stream {
        int device = 0;
        Mark now;
    };
    struct Use {
        std::uint64_t tick = 0;
        std::string name;
    };
    struct Block {
        int stream = 0; // which took it
        std::size_t bytes = 0;
        int writer = -1;
        Use written;
        std::map<int, Use> read; // since then, by stream
    };
    void meet(const Block& block, const VectorClock& now, const std::string& what, bool writes);

    mutable std::mutex mutex_; // guards all below
    std::condition_variable released_;
    Faults faults_;
    bool hanging_ = false; // not released yet
    [[nodiscard]] static bool isUnderWay(const Mark& mark) { return mark.come && !mark.come->load(); }
    std::vector<Stream> streams_;
    std::map<int, std::vector<int>> pools_; // by device
    std::map<int, std::size_t> turns_;
    std::map<const void*, Block> blocks_;
    VectorClock host_; // what some thread has seen to be done: all that is asked for later comes after it
    std::set<std::string> races_;
    int operations_ = 0;
    int hostWaits_ = 0;
};

} // namespace stagecraft::test
