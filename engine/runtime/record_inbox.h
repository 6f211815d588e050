// SPDX-License-Identifier: Apache-2.0
//
// Records on their way from a run to the session's caller, in order.
#pragma once

#include "traces/store/record.h"

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <vector>

namespace stagecraft::runtime {

class RecordInbox {
public:
    void push(std::vector<traces::Record>&& records)
    {
        if (records.empty()) return;
        {
            const std::lock_guard lock(mutex_);
            if (records_.empty()) {
                records_ = std::move(records);
            } else {
                records_.insert(records_.end(), std::make_move_iterator(records.begin()),
                                std::make_move_iterator(records.end()));
            }
        }
        arrived_.notify_all();
    }

    std::vector<traces::Record> take()
    {
        std::vector<traces::Record> result;
        const std::lock_guard lock(mutex_);
        result.swap(records_);
        return result;
    }

    bool waitFor(std::chrono::milliseconds timeout)
    {
        std::unique_lock lock(mutex_);
        return arrived_.wait_for(lock, timeout, [&] { return !records_.empty(); });
    }

    [[nodiscard]] std::size_t size() const
    {
        const std::lock_guard lock(mutex_);
        return records_.size();
    }

private:
    mutable std::mutex mutex_; // guards records_
    std::condition_variable arrived_;
    std::vector<traces::Record> records_;
};

} // namespace stagecraft::runtime
