// SPDX-License-Identifier: Apache-2.0
//
// The bounded queue as textbooks have it (Dijkstra's bounded buffer as a monitor, Hoare 1974): one mutex guards all, and two condition
// variables wake whoever waits for room or for an item. Every operation takes the mutex, and a waiter always sleeps in the kernel.
//
//   MutexQueue<int> queue(2);
#pragma once

#include "engine/transport/bounded_queue.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace stagecraft::runtime {

template <class T>
class MutexQueue final : public BoundedQueue<T> {
public:
    explicit MutexQueue(std::size_t depth) : depth_(depth) {}

    bool tryPush(T& item) override
    {
        {
            const std::lock_guard lock(mutex_);
            if (items_.size() == depth_) return false;
            items_.push_back(std::move(item));
        }
        notEmpty_.notify_one();
        return true;
    }

    std::optional<T> tryPop() override
    {
        std::optional<T> item;
        {
            const std::lock_guard lock(mutex_);
            if (items_.empty()) return std::nullopt;
            item.emplace(std::move(items_.front()));
            items_.pop_front();
        }
        notFull_.notify_one();
        return item;
    }

    void waitForRoom() override
    {
        std::unique_lock lock(mutex_);
        notFull_.wait(lock, [&] { return items_.size() < depth_ || cancelled_; });
    }
    void waitForItem() override
    {
        std::unique_lock lock(mutex_);
        notEmpty_.wait(lock, [&] { return !items_.empty() || cancelled_; });
    }

    [[nodiscard]] std::size_t size() const override
    {
        const std::lock_guard lock(mutex_);
        return items_.size();
    }
    [[nodiscard]] std::size_t depth() const override { return depth_; }

    void cancel() override
    {
        {
            const std::lock_guard lock(mutex_);
            cancelled_ = true;
        }
        notFull_.notify_all();
        notEmpty_.notify_all();
    }
    [[nodiscard]] bool cancelled() const override
    {
        const std::lock_guard lock(mutex_);
        return cancelled_;
    }

private:
    const std::size_t depth_;
    mutable std::mutex mutex_; // guards what follows
    std::deque<T> items_;
    bool cancelled_ = false;
    std::condition_variable notFull_;
    std::condition_variable notEmpty_;
};

} // namespace stagecraft::runtime
