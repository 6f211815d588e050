// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/process_handoff_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/pipeline_torch.h"
#include "engine/runtime/tensor_mail_torch.h"

#include <cstring>
#include <type_traits>

namespace stagecraft::runtime {

namespace {

static_assert(std::is_trivially_copyable_v<BoxAddress>);

std::vector<at::Tensor> listOf(Boundary&& boundary) { return {std::move(boundary.tensor)}; }
std::vector<at::Tensor> listOf(at::Tensor&& tensor) { return {std::move(tensor)}; }
std::vector<at::Tensor> listOf(std::vector<at::Tensor>&& tensors) { return std::move(tensors); }

void unlist(std::vector<at::Tensor>&& tensors, Boundary& into) { into = {std::move(tensors.front())}; }
void unlist(std::vector<at::Tensor>&& tensors, at::Tensor& into) { into = std::move(tensors.front()); }
void unlist(std::vector<at::Tensor>&& tensors, std::vector<at::Tensor>& into) { into = std::move(tensors); }

// A transfer's buffer becomes what the stage keeps: an input until its backward, a gradient while that runs.
void give(const at::Tensor& tensor, Direction direction)
{
    if (tensor.defined()) reclass(tensor.storage().data_ptr(), direction == Direction::Forward ? MemoryClass::Activations : MemoryClass::Other);
}
void give(const Boundary& boundary, Direction direction) { give(boundary.tensor, direction); }
void give(const std::vector<at::Tensor>&, Direction) {} // they go once they are added

} // namespace

template <class Payload>
ProcessHandoff<Payload>::ProcessHandoff(ProcessRun& all, const HandoffSize& size, const HandoffPlace& place, MailKind kind, OwnerOf ownerOf)
    : all_(all), place_(place), kind_(kind), ownerOf_(std::move(ownerOf)), boxes_(size.stages, size.units, {}, size.flows)
{
    if (std::is_same_v<Payload, Boundary> && !place_.device.isCpu())
        outbox_.emplace(place_.device, [this](const std::exception_ptr& error) {
            engine::FailureMessage failure = describeFailure("sending to another rank", error);
            failure.rank = all_.rank();
            place_.control.fail(std::move(failure));
        });
    all_.group().office().subscribe(kind_, this);
}

template <class Payload>
ProcessHandoff<Payload>::~ProcessHandoff()
{
    all_.group().office().subscribe(kind_, nullptr);
}

template <class Payload>
TimeNs ProcessHandoff<Payload>::put(const BoxAddress& address, Payload payload, const Clock& clock)
{
    const int owner = ownerOf_(address).value;
    if (owner == all_.rank()) return boxes_.put(address, std::move(payload), clock);
    if constexpr (std::is_same_v<Payload, Boundary>) {
        if (outbox_) {
            outbox_->give(std::move(payload), [this, owner, address](at::Tensor onHost) { send(owner, address, {std::move(onHost)}); });
            return clock.now();
        }
    }
    send(owner, address, listOf(std::move(payload)));
    return clock.now();
}

template <class Payload>
void ProcessHandoff<Payload>::send(int to, const BoxAddress& address, const std::vector<at::Tensor>& tensors)
{
    TensorMail mail = packTensors(tensors);
    std::string text(reinterpret_cast<const char*>(&address), sizeof address);
    text += mail.text;
    all_.group().office().send(to, kind_, text, mail.bodies, std::move(mail.keep));
}

template <class Payload>
std::optional<Arrival<Payload>> ProcessHandoff<Payload>::take(const BoxAddress& address)
{
    all_.group().office().waitUntil([&] { return boxes_.full(address) || all_.ending(); });
    if (all_.ending()) return std::nullopt;
    std::optional<Arrival<Payload>> arrival = boxes_.take(address);
    const bool forward = address.direction == Direction::Forward;
    const traces::Stage maker{address.receiver.value + (forward ? -1 : 1)};
    if (arrival && kind_ == MailKind::Boundary && ownerOf_({address.direction, maker, address.microbatch, address.flow}).value != all_.rank())
        give(arrival->payload, address.direction);
    return arrival;
}

template <class Payload>
std::shared_ptr<void> ProcessHandoff<Payload>::prepare(int, std::string_view text, std::span<const std::size_t>, std::vector<std::span<std::byte>>& room)
{
    const AllocationScope scope({.ledger = place_.device.isCpu() ? &place_.ledger : nullptr, .memory = MemoryClass::Buffers});
    auto tensors = std::make_shared<std::vector<at::Tensor>>(tensorsLike(text.substr(sizeof(BoxAddress))));
    room = roomOf(*tensors);
    return tensors;
}

template <class Payload>
void ProcessHandoff<Payload>::arrived(int, MailKind, const std::string& text, const std::shared_ptr<void>& prepared)
{
    BoxAddress address;
    std::memcpy(&address, text.data(), sizeof address);
    Payload payload;
    unlist(std::move(*static_cast<std::vector<at::Tensor>*>(prepared.get())), payload);
    boxes_.put(address, std::move(payload), place_.clock);
}

template <class Payload>
void ProcessHandoff<Payload>::refused(int from, const std::exception_ptr& error)
{
    engine::FailureMessage failure = describeFailure("receiving from rank " + std::to_string(from), error);
    failure.rank = all_.rank();
    place_.control.fail(std::move(failure));
}

template class ProcessHandoff<Boundary>;
template class ProcessHandoff<at::Tensor>;
template class ProcessHandoff<std::vector<at::Tensor>>;

} // namespace stagecraft::runtime
