// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/saved_tensors_torch.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

namespace {

thread_local SavedTensors* innermost = nullptr;

struct Note final : torch::autograd::SavedVariableHooks {
    void call_pack_hook(const Tensor& tensor) override
    {
        kept = tensor.detach(); // the tensor itself would be a circle where a node saves its own result
        innermost->note(kept);
    }
    Tensor call_unpack_hook() override { return kept; }

    Tensor kept;
};

class AskingEngine final : public torch::autograd::Engine {
public:
    std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override
    {
        return innermost != nullptr ? std::make_unique<Note>() : nullptr;
    }
};

// Never destroyed: graphs may outlive every static object.
torch::autograd::Engine& askingEngine()
{
    static auto* engine = new AskingEngine;
    return *engine;
}

} // namespace

void installSavedTensorHooks()
{
    static std::once_flag once;
    std::call_once(once, [] { torch::autograd::set_default_engine_stub(&askingEngine); });
}

SavedTensors::Scope::Scope(SavedTensors& saved) : outer_(std::exchange(innermost, &saved)) {}
SavedTensors::Scope::~Scope() { innermost = outer_; }

void SavedTensors::note(const Tensor& tensor)
{
    if (!tensor.defined() || !tensor.has_storage()) return;
    const std::optional<AllocationTag> tag = tagOf(tensor.storage().data_ptr());
    if (!tag || (tag->memory != MemoryClass::Activations && tag->memory != MemoryClass::Recompute)) return;
    blocks_.push_back({tensor.storage().getWeakStorageImpl(), static_cast<Bytes>(tensor.storage().nbytes())});
}

void SavedTensors::leaveHere(const Tensor& tensor)
{
    for (Block& block : blocks_)
        if (block.storage._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl()) block.movable = false;
}

void SavedTensors::settle()
{
    std::erase_if(blocks_, [](const Block& block) { return block.storage.expired(); });
    const auto target = [](const Block& block) { return block.storage._unsafe_get_target(); };
    std::sort(blocks_.begin(), blocks_.end(), [&](const Block& a, const Block& b) { return target(a) < target(b); });
    const auto same = [&](const Block& a, const Block& b) { return target(a) == target(b); };
    blocks_.erase(std::unique(blocks_.begin(), blocks_.end(), same), blocks_.end());
}

bool SavedTensors::holds(const Tensor& tensor) const
{
    const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.storage._unsafe_get_target() == storage; });
}

Bytes SavedTensors::bytes() const
{
    Bytes sum = 0;
    for (const Block& block : blocks_) sum += block.bytes;
    return sum;
}

Bytes SavedTensors::movableBytes() const
{
    Bytes sum = 0;
    for (const Block& block : blocks_) sum += block.movable ? block.bytes : 0;
    return sum;
}

at::DataPtr SavedTensors::onTheHost(const at::DataPtr& from, std::size_t bytes)
{
    at::DataPtr there = c10::GetAllocator(c10::DeviceType::CPU)->allocate(bytes);
    std::memcpy(there.get(), from.get(), bytes);
    return there;
}

std::vector<c10::Storage> SavedTensors::storages() const
{
    std::vector<c10::Storage> held;
    for (const Block& block : blocks_)
        if (c10::intrusive_ptr<c10::StorageImpl> storage = block.storage.lock()) held.emplace_back(std::move(storage));
    return held;
}

void SavedTensors::copyTo(const AllocationTag& to, const Copy& copy)
{
    const AllocationScope scope(to);
    for (Block& block : blocks_) {
        const c10::intrusive_ptr<c10::StorageImpl> storage = block.storage.lock();
        if (!storage || !block.movable) continue;
        block.left = storage->set_data_ptr(copy(storage->data_ptr(), static_cast<std::size_t>(block.bytes)));
    }
}

void SavedTensors::letGo()
{
    for (Block& block : blocks_) block.left = {};
}

} // namespace stagecraft::runtime
