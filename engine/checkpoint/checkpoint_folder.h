// SPDX-License-Identifier: Apache-2.0
//
// The folder that a run writes its checkpoints to: whether it can, before hours of training, and that nobody else's are lost or mixed up
// with its own.
//
//   if (auto sound = checkCheckpointFolder("runs/a", 0); !sound.ok()) ...        // before anything is made
//   Expected<CheckpointLock> lock = CheckpointLock::take("runs/a");              // while the run goes on
#pragma once

#include "traces/base/expected.h"

#include <filesystem>

namespace stagecraft::engine {

// Changes nothing. `goesOnFrom`: how many steps are done at the begin of the run. An error where the folder, or the one that it would be made
// in, cannot be written to; and where it holds a checkpoint of a later step: another run's, which a resume would take for the newest.
traces::Expected<void> checkCheckpointFolder(const std::filesystem::path& folder, int goesOnFrom);

// Makes the folder where it is not there, and keeps other runs of this machine from writing to it at the same time.
class CheckpointLock {
public:
    static traces::Expected<CheckpointLock> take(const std::filesystem::path& folder);
    CheckpointLock(CheckpointLock&& other) noexcept;
    CheckpointLock& operator=(CheckpointLock&&) = delete;
    CheckpointLock(const CheckpointLock&) = delete;
    CheckpointLock& operator=(const CheckpointLock&) = delete;
    ~CheckpointLock();

private:
    explicit CheckpointLock(int descriptor) : descriptor_(descriptor) {}
    int descriptor_;
};

} // namespace stagecraft::engine
