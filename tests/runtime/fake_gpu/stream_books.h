// SPDX-License-Identifier: Apache-2.0
//
// Order and time of the streams of GPUs that are not there (fake_gpu.h). Any thread.
#pragma once

#include "traces/base/units.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stagecraft::test {

using traces::TimeNs;

// How far each stream had come, by its number.
using VectorClock = std::vector<std::uint64_t>;

// What a stream does together with streams of other ranks: it begins when all before it on its stream is over, and ends when all have come,
// and a cost later.
struct Exchange {
    std::atomic<bool> come{false};
    TimeNs asked = 0; // all before it is over by then, but exchanges
    traces::Interval span{};
    std::shared_ptr<const Exchange> before = {};
};

// A moment of a stream.
struct Mark {
    VectorClock clock;
    TimeNs time = 0;
    int device = 0;
    bool hangs = false; // until the books are released
    std::shared_ptr<const Exchange> exchange = {}; // the last one before it
};

class StreamBooks {
public:
    struct Faults { // by the number of an operation, from which on they are
        int failsFrom = std::numeric_limits<int>::max();
        int hangsFrom = std::numeric_limits<int>::max();
        int hangsFromExchange = std::numeric_limits<int>::max(); // by its number on its device
        std::optional<int> hanging = {};                         // the one device that does
    };
    void reset(const Faults& faults);
    static constexpr std::size_t kPool = 32; // streams of a device, which then come again, as CUDA's
    int newStream(int device); // its number
    [[nodiscard]] int deviceOf(int stream) const;

    // The operation touches these blocks, one after the other.
    struct Access {
        const void* block = nullptr;
        bool writes = false;
    };
    traces::Interval operate(int stream, const std::string& name, const std::vector<Access>& blocks, TimeNs cost); // when
    // The stream does not go on before it has come.
    std::shared_ptr<Exchange> exchange(int stream, const std::vector<Access>& blocks);
    // These streams have come to the first that they wait for; when that was, of each.
    std::vector<traces::Interval> meet(const std::vector<int>& streams, TimeNs cost);
    void hasCome(Exchange& exchange);
    [[nodiscard]] TimeNs timeOf(const Mark& mark) const; // of one that was reached
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
    [[nodiscard]] bool hangs() const; // and somebody waits for it
    void release(); // what hangs
    [[nodiscard]] int exchanges(int device) const;
    [[nodiscard]] std::size_t held(int device) const; // bytes
    [[nodiscard]] int operations() const;
    [[nodiscard]] int hostWaits() const;
    [[nodiscard]] int blocks() const;

private:
    struct Stream {
        int device = 0;
        Mark now;
        std::deque<std::shared_ptr<Exchange>> waiting = {}; // for other ranks
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
    [[nodiscard]] bool mayHang(int device) const { return !faults_.hanging || *faults_.hanging == device; }
    traces::Interval note(int stream, const std::string& name, const std::vector<Access>& blocks, TimeNs cost);
    void meet(const Block& block, const VectorClock& now, const std::string& what, bool writes);

    mutable std::mutex mutex_; // guards all below
    std::condition_variable released_;
    Faults faults_;
    bool hanging_ = false; // not released yet
    [[nodiscard]] static bool isUnderWay(const Mark& mark) { return mark.exchange && !mark.exchange->come.load(); }
    [[nodiscard]] static TimeNs ended(const Mark& mark) { return mark.exchange ? std::max(mark.time, mark.exchange->span.end) : mark.time; }
    std::vector<Stream> streams_;
    std::map<int, std::vector<int>> pools_; // by device
    std::map<int, std::size_t> turns_;
    std::map<const void*, Block> blocks_;
    VectorClock host_; // what some thread has seen to be done: all that is asked for later comes after it
    std::set<std::string> races_;
    int operations_ = 0;
    bool hangs_ = false;            // somebody waits for it
    std::map<int, int> exchanges_; // by device
    int hostWaits_ = 0;
};

} // namespace stagecraft::test
