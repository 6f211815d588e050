// SPDX-License-Identifier: Apache-2.0
//
// The buffers that CUPTI writes its records into, and the way of each: free -> with CUPTI -> ready -> read -> free. The two
// callbacks only move a buffer from one list to another under a lock that is held for nothing else; they may come from any
// thread, and after whoever records has gone. So the buffers that CUPTI has been given live as long as the process.
//
//   ActivityBuffers buffers({.bufferBytes = 128 << 10, .most = 256});
//   std::uint8_t* given = buffers.handOut();          // request callback; null where all are in use, which is counted
//   ActivityBuffers::giveBack(given, validBytes);     // complete callback
//   while (auto ready = buffers.takeReady()) decode(ready->records());
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace stagecraft::runtime {

struct BufferOptions {
    // Small, because a kernel that has not ended keeps back all records of its buffer; measured where there is a GPU.
    std::size_t bufferBytes = std::size_t{128} << 10;
    std::size_t most = 256;
};

class ActivityBuffers {
    struct Block;
    using BlockPointer = std::unique_ptr<Block, void (*)(Block*)>;

public:
    explicit ActivityBuffers(const BufferOptions& options);
    ~ActivityBuffers(); // precondition: CUPTI has none of them
    ActivityBuffers(const ActivityBuffers&) = delete;
    ActivityBuffers& operator=(const ActivityBuffers&) = delete;

    // A buffer of zeroes, at a multiple of 64 bytes. Null: all are in use, or closed.
    std::uint8_t* handOut() noexcept;
    // A buffer of any ActivityBuffers. One that is not with CUPTI is left alone.
    static void giveBack(std::uint8_t* buffer, std::size_t validBytes) noexcept;

    // A buffer to be read; it is zeroed and free again when this goes. Not to outlive the buffers.
    class Ready {
    public:
        Ready(Ready&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
        Ready& operator=(Ready&&) = delete;
        ~Ready();
        [[nodiscard]] std::span<std::uint8_t> records() const;

    private:
        friend class ActivityBuffers;
        explicit Ready(Block* block) : block_(block) {}
        Block* block_;
    };
    std::optional<Ready> takeReady(); // in the order in which they came back

    // Waits until CUPTI has none any more, or the time is over; tells which.
    bool waitUntilAllAreBack(std::chrono::nanoseconds most);

    // None is handed out any more, and the memory of those that come back goes back too.
    void close();

    [[nodiscard]] std::size_t bufferBytes() const { return bufferBytes_; }
    [[nodiscard]] std::size_t outside() const;     // with CUPTI
    [[nodiscard]] std::size_t allocated() const;   // in all
    [[nodiscard]] std::int64_t refused() const;    // times that there was none to hand out

private:
    enum class State : std::uint8_t { Free, WithCupti, Ready, Read };

    Block* newBlock() noexcept;
    void take(Block& block, std::size_t validBytes) noexcept;
    void free(Block& block) noexcept;
    void drop(Block& block, std::unique_lock<std::mutex>& lock) noexcept;

    const std::size_t bufferBytes_;
    const std::size_t most_;
    mutable std::mutex mutex_;           // guards all below; held for a few instructions, never while anything else is called
    std::condition_variable back_;       // outside_ became 0
    std::vector<BlockPointer> blocks_;   // all lists have room for `most`, so that the callbacks allocate no list
    std::vector<Block*> free_;
    std::vector<Block*> ready_;
    std::size_t reserved_ = 0; // blocks, with those that are being allocated
    std::size_t outside_ = 0;
    std::int64_t refused_ = 0;
    bool closed_ = false;
};

} // namespace stagecraft::runtime
