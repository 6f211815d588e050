// SPDX-License-Identifier: Apache-2.0
//
// What autograd saves for the backward of one micro-batch, tensor by tensor, and the way of those tensors off their rank and back.
// While a Scope lives on a thread, every tensor that an operation or a function of our own saves there is noted. Counted are the
// blocks that a forward made, each once: weights and the data of the run stay where they are.
//
//   SavedTensors saved;
//   { const SavedTensors::Scope scope(saved); y = layers.forward(x); }
//   saved.settle();
//   saved.bytes()                                        // what lies between this forward and its backward
//   saved.copyTo({.ledger = host}); saved.letGo();       // OFFLOAD: all tensors on those blocks lie in the other memory from now on
//   saved.copyTo({.ledger = rank}); saved.letGo();       // RELOAD
//
// A block is exchanged below its tensors, so that nothing that holds one of them has to know. Therefore no one may read them
// meanwhile. One thread at a time. Private to the runtime.
#pragma once

#include "engine/probe/tagging_allocator.h"

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <vector>

namespace stagecraft::runtime {

// Gives autograd an engine that asks the calling thread's innermost scope (there are no other default hooks without Python). Does
// nothing from the second call on; where no scope lives, autograd saves as it always does.
void installSavedTensorHooks();

class SavedTensors {
public:
    class Scope {
    public:
        explicit Scope(SavedTensors& saved);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        SavedTensors* outer_;
    };

    // Beside what autograd saves: something that is kept as well, as the stage's input is for its gradient.
    void note(const at::Tensor& tensor);
    // Others read it while this micro-batch is in flight, so it stays where it is.
    void leaveHere(const at::Tensor& tensor);
    // Once all is noted: leaves out what nobody kept, and what was noted twice.
    void settle();

    [[nodiscard]] bool holds(const at::Tensor& tensor) const;
    [[nodiscard]] Bytes bytes() const;
    [[nodiscard]] Bytes movableBytes() const; // without what stays

    // In two parts: the copy, after which both are held, and then what was copied is let go. An allocation may throw.
    using Copy = std::function<at::DataPtr(const at::DataPtr& from, std::size_t bytes)>; // makes the memory as well
    void copyTo(const AllocationTag& to, const Copy& copy = &onTheHost);
    void letGo();
    // The blocks that somebody still holds, and holds on to them.
    [[nodiscard]] std::vector<c10::Storage> storages() const;

private:
    static at::DataPtr onTheHost(const at::DataPtr& from, std::size_t bytes);

    struct Block {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage; // the graph holds it, and lets go of it as its backward goes on
        Bytes bytes = 0;
        bool movable = true;
        at::DataPtr left{}; // what was copied, until it is let go
    };

    std::vector<Block> blocks_;
};

} // namespace stagecraft::runtime
