// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_handoff_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/nccl_device_torch.h"
#include "engine/runtime/rank_work.h"
#include "engine/runtime/tensor_mail_torch.h"
#include "engine/transport/wait_edges.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <set>
#include <stdexcept>

namespace stagecraft::runtime {

using engine::Transfer;
using engine::TransferGroup;
using engine::TransferPart;
using traces::Action;
using traces::ActionKind;
using traces::MemoryClass;

namespace {

BoxAddress boxOf(const Transfer& transfer)
{
    const traces::Work& send = transfer.work;
    const bool forward = send.kind == ActionKind::SendForward;
    return {forward ? Direction::Forward : Direction::Backward, traces::Stage{send.stage.value + (forward ? 1 : -1)}, send.microbatch, send.flow};
}

// As this rank does it.
Action actionOf(const engine::TransferOrder& order, const TransferGroup& group)
{
    const auto workOf = [&](const TransferPart& part) {
        traces::Work work = order.transfers[part.transfer].work;
        if (part.sends) return work;
        const bool forward = work.kind == ActionKind::SendForward;
        work.kind = forward ? ActionKind::RecvForward : ActionKind::RecvBackward;
        work.stage = traces::Stage{work.stage.value + (forward ? 1 : -1)};
        return work;
    };
    return {workOf(group.slots[0]), group.count > 1 ? workOf(group.slots[1]) : traces::Work{}};
}

void expect(const Expected<void>& done)
{
    if (!done.ok()) throw std::runtime_error(done.error().message);
}

} // namespace

void ExchangeBook::settle()
{
    for (; !asked_.empty() && asked_.front().end->reached(); asked_.pop_front()) put(asked_.front());
}

void ExchangeBook::settleAll()
{
    for (; !asked_.empty(); asked_.pop_front()) {
        asked_.front().end->wait();
        put(asked_.front());
    }
}

NcclHandoff::NcclHandoff(ProcessRun& all, const engine::Schedule& schedule, const NcclWay& way, const HandoffPlace& place, ExchangeBook book)
    : all_(all), schedule_(schedule), communicator_(way.communicator), order_(way.order), groups_(way.order.groups[static_cast<std::size_t>(all.rank() % schedule.ranks)]),
      watch_(way.watch), place_(place), stream_(place.device.anotherStream()), book_(std::move(book)),
      boxes_(schedule.stages(), mostUnits(schedule), {}, static_cast<int>(schedule.flows().size()))
{
    all_.group().office().subscribe(MailKind::Form, this);
}

NcclHandoff::~NcclHandoff()
{
    all_.group().office().subscribe(MailKind::Form, nullptr);
    const DeviceWatch::Wait wait = awaitingOthers();
    try {
        stream_.synchronize(); // what lies in the maps may be in use
    } catch (...) { // a device that has failed uses nothing any more
    }
}

void NcclHandoff::meetPeers()
{
    std::set<int> peers;
    for (const TransferGroup& group : groups_) peers.insert(group.peer.value);
    const std::vector<int> list(peers.begin(), peers.end());
    const RankDevice::Scope here(stream_);
    const AllocationScope nobody({});
    const at::Tensor twoBytes = at::empty({2}, at::TensorOptions(place_.device.device()).dtype(at::kByte));
    expect(communicator_.warmUp(list, twoBytes.mutable_data_ptr(), handleOf(stream_)));
    communicator_.track("the first exchange with each", isOver(place_.device.markOn(stream_)));
    const DeviceWatch::Wait wait = awaitingOthers();
    stream_.synchronize();
}

bool NcclHandoff::stays(const BoxAddress& address) const { return staysOnItsRank(schedule_, address); }

TimeNs NcclHandoff::put(const BoxAddress& address, Boundary payload, const Clock& clock)
{
    if (stays(address)) return boxes_.put(address, std::move(payload), clock);
    if (payload.tensor.defined() && !payload.tensor.is_non_overlapping_and_dense()) {
        const RankDevice::Scope here = place_.device.enter();
        const bool leaf = payload.tensor.requires_grad();
        payload.tensor = payload.tensor.detach().contiguous().requires_grad_(leaf);
        payload.ready = place_.device.mark();
    }
    tellForm(address, payload.tensor);
    given_[address] = std::move(payload);
    return clock.now();
}

void NcclHandoff::tellForm(const BoxAddress& address, const at::Tensor& tensor)
{
    const std::string form = formOf({tensor});
    const auto [known, first] = told_.emplace(address, form);
    if (!first && known->second != form) throw std::runtime_error("a tensor for the next rank has another form than in the step before, and its receiver counts on that one");
    if (!first) return;
    const int to = all_.rank() / schedule_.ranks * schedule_.ranks + schedule_.rankOf(address.flow, address.receiver).value;
    all_.group().office().send(to, MailKind::Form, std::string(reinterpret_cast<const char*>(&address), sizeof address) + form);
}

void NcclHandoff::arrived(int, MailKind, const std::string& text, const std::shared_ptr<void>&)
{
    BoxAddress address;
    std::memcpy(&address, text.data(), sizeof address);
    const std::lock_guard lock(mutex_);
    forms_[address] = text.substr(sizeof address);
}

std::string NcclHandoff::awaitForm(const BoxAddress& address)
{
    std::string form;
    const auto look = [&] {
        const std::lock_guard lock(mutex_);
        const auto known = forms_.find(address);
        if (known != forms_.end()) form = known->second;
        return known != forms_.end();
    };
    if (look()) return form;
    place_.control.rest(traces::Rank{all_.rank()});
    all_.group().office().waitUntil([&] { return look() || all_.ending(); });
    return form;
}

void NcclHandoff::passed(std::size_t actions)
{
    if (actions == 0) { // a step begins
        next_ = 0;
        book_.beginStep();
    }
    letGoOfSent();
    while (next_ < groups_.size() && groups_[next_].behind <= actions && !all_.ending()) issue(groups_[next_++]);
}

// Memory for what comes is taken on the stream that brings it: there nobody has used it who is not over.
void NcclHandoff::issue(const TransferGroup& group)
{
    const RankDevice::Scope here(stream_);
    std::vector<NcclPart> parts;
    std::vector<at::Tensor> sent;
    std::vector<std::pair<BoxAddress, at::Tensor>> coming;
    for (const TransferPart& part : group.parts()) {
        const BoxAddress box = boxOf(order_.transfers[part.transfer]);
        if (part.sends) {
            const Boundary given = std::move(given_.extract(box).mapped());
            if (!given.tensor.defined()) continue;
            if (given.ready) {
                given.ready->before(stream_);
                made_ = given.ready;
            }
            parts.push_back({NcclPart::Side::Send, group.peer.value, given.tensor.data_ptr(), given.tensor.nbytes()});
            sent.push_back(given.tensor);
        } else {
            const std::string form = awaitForm(box);
            if (form.empty()) return;
            const AllocationScope scope({.ledger = &place_.ledger, .memory = MemoryClass::Buffers});
            at::Tensor tensor = tensorsLike(form, place_.device.device()).front();
            if (tensor.defined()) parts.push_back({NcclPart::Side::Receive, group.peer.value, tensor.data_ptr(), tensor.nbytes()});
            coming.emplace_back(box, std::move(tensor));
        }
    }
    DeviceMark over;
    if (!parts.empty()) {
        const std::string what = toText(traces::Action{order_.transfers[group.slots[0].transfer].work, {}});
        inQuestion_ = sent;
        for (const auto& [box, tensor] : coming) inQuestion_.push_back(tensor);
        const DeviceMark begin = book_.kept() ? place_.device.markOn(stream_) : nullptr;
        const Expected<void> exchanged = communicator_.exchange(what, parts, handleOf(stream_));
        if (!exchanged.ok() && all_.ending()) return; // which is why
        expect(exchanged);
        inQuestion_.clear();
        over = last_ = place_.device.markOn(stream_);
        if (book_.kept()) book_.add(actionOf(order_, group), begin, over);
        communicator_.track(what, isOver(over));
    }
    for (at::Tensor& tensor : sent) sent_.push_back({over, std::move(tensor)});
    for (auto& [box, tensor] : coming) received_[box] = {{std::move(tensor), over}, made_};
}

void NcclHandoff::letGoOfSent()
{
    const RankDevice::Scope here(stream_);
    while (!sent_.empty() && sent_.front().gone->reached()) sent_.pop_front();
    book_.settle();
}

void NcclHandoff::settle()
{
    const RankDevice::Scope here(stream_);
    if (!sent_.empty()) place_.control.rest(traces::Rank{all_.rank()});
    const DeviceWatch::Wait wait = awaitingOthers();
    for (; !sent_.empty(); sent_.pop_front()) sent_.front().gone->wait();
    book_.settleAll();
}

// What is this GPU's to do; what comes of the others NCCL's watchdog looks at. That ends its kernels where nobody comes; from then on it is
// the GPU that is waited for.
void NcclHandoff::awaitOwn(const DeviceMark& made) const
{
    if (!made) return;
    const DeviceWatch::Wait wait(watch_, traces::Rank{all_.rank()}, "making what it hands over", DeviceWatch::Thread::Own);
    made->wait();
}

DeviceWatch::Wait NcclHandoff::awaitingOthers() const { return {watch_, traces::Rank{all_.rank()}, DeviceWatch::OfOthers{"ending its exchanges by NCCL"}}; }

bool NcclHandoff::through() const
{
    const RankDevice::Scope here(stream_);
    return next_ == groups_.size() && (!last_ || last_->reached());
}

void NcclHandoff::waitThrough() const
{
    if (next_ < groups_.size() || !last_) return;
    const RankDevice::Scope here(stream_);
    awaitOwn(made_);
    const DeviceWatch::Wait wait = awaitingOthers();
    last_->wait();
}

// Whether the device has it: what is not there yet may be long in coming, from a rank that is paused or held.
bool NcclHandoff::full(const BoxAddress& address)
{
    if (stays(address)) return boxes_.full(address);
    const RankDevice::Scope here(stream_);
    const auto known = received_.find(address);
    return known != received_.end() && (!known->second.boundary.ready || known->second.boundary.ready->reached());
}

std::optional<Arrival<Boundary>> NcclHandoff::take(const BoxAddress& address)
{
    if (stays(address)) return boxes_.full(address) ? boxes_.take(address) : std::nullopt;
    auto node = received_.extract(address);
    if (!node) {
        if (all_.ending()) return std::nullopt; // before it was issued
        throw std::logic_error("the order of the exchanges does not have what an action needs");
    }
    Boundary boundary = std::move(node.mapped().boundary);
    if (boundary.ready) {
        const RankDevice::Scope here(stream_);
        awaitOwn(node.mapped().behind);
        const DeviceWatch::Wait wait = awaitingOthers();
        boundary.ready->wait();
    }
    if (all_.ending()) return std::nullopt; // nobody knows what has come
    if (boundary.tensor.defined())
        reclass(boundary.tensor.storage().data_ptr(), address.direction == Direction::Forward ? MemoryClass::Activations : MemoryClass::Other);
    return Arrival<Boundary>{std::move(boundary), place_.clock.now()};
}

} // namespace stagecraft::runtime
