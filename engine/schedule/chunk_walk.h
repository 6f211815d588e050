// SPDX-License-Identifier: Apache-2.0
//
// The order in which interleaved schedules go through a rank's chunks (Megatron-LM's schedule table): micro-batches are taken in
// groups of g, the last group takes the rest; a group goes through all chunks, one after the other, before the next group
// begins. Forwards take the chunks in their order, backwards in the reverse. v = 2, m = 5, g = 3:
//
//   chunk        0 0 0 1 1 1 0 0 1 1
//   micro-batch  0 1 2 0 1 2 3 4 3 4
//
//   ChunkWalk forwards(chunks, microbatches, group, ChunkWalk::Way::Ahead);
//   list.push_back(traces::forward(Stage{chunk * p + r}, microbatch));   // with auto [chunk, microbatch] = forwards.next()
#pragma once

#include "engine/schedule/schedule.h"

#include <algorithm>

namespace stagecraft::engine {

class ChunkWalk {
public:
    enum class Way : std::uint8_t { Ahead, Back };
    struct Step {
        int chunk = 0;
        MicroBatch microbatch{};
    };

    ChunkWalk(int chunks, int microbatches, int group, Way way)
        : chunks_(chunks), microbatches_(microbatches), group_(group), end_(std::min(group, microbatches)), way_(way)
    {
    }

    // Called at most chunks * microbatches times.
    Step next()
    {
        const Step step{way_ == Way::Ahead ? chunk_ : chunks_ - 1 - chunk_, MicroBatch{microbatch_}};
        if (++microbatch_ == end_) {
            if (++chunk_ == chunks_) {
                chunk_ = 0;
                begin_ = end_;
                end_ = begin_ + std::min(group_, microbatches_ - begin_);
            }
            microbatch_ = begin_;
        }
        return step;
    }

private:
    int chunks_;
    int microbatches_;
    int group_;
    int begin_ = 0; // of the group
    int end_;
    int chunk_ = 0;
    int microbatch_ = 0;
    Way way_;
};

// PyTorch's size of a group: max(1, m div p) rounds of equal size. roundsFit() says whether they come out even, and if not,
// which number of micro-batches does.
int roundSize(const ScheduleRequest& request);
Expected<void> roundsFit(const ScheduleRequest& request);

} // namespace stagecraft::engine
