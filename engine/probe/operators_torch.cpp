// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/operators_torch.h"

#include <ATen/record_function.h>

#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace stagecraft::runtime {

namespace {

thread_local OperatorRecording* recordingHere = nullptr;

// What autograd's engine calls a node while it evaluates it.
constexpr std::string_view kEvaluates = "autograd::engine::evaluate_function: ";

// "aten::mm" as it is; of a node "AddmmBackward0", whichever namespace and template it is in.
std::string_view shortened(std::string_view name)
{
    constexpr std::string_view kAutograd = "torch::autograd::";
    constexpr std::string_view kOwnNode = "CppNode<"; // of a function that is not LibTorch's
    if (name.starts_with(kEvaluates)) name.remove_prefix(kEvaluates.size());
    if (!name.starts_with(kAutograd)) return name;
    name.remove_prefix(kAutograd.size());
    if (!name.starts_with(kOwnNode)) return name;
    name = name.substr(kOwnNode.size(), name.size() - kOwnNode.size() - 1);
    const std::size_t space = name.rfind("::");
    return space == std::string_view::npos ? name : name.substr(space + 2);
}

// The same address for the same name, until the process ends: there are as many as kinds of operators.
const char* kept(std::string_view name)
{
    thread_local std::unordered_map<std::string_view, const char*> seen;
    if (const auto known = seen.find(name); known != seen.end()) return known->second;
    static std::mutex mutex;
    static std::set<std::string, std::less<>> all; // guarded by mutex
    const std::lock_guard lock(mutex);
    const std::string& mine = *all.emplace(shortened(name)).first;
    static std::set<std::string, std::less<>> asked; // as LibTorch calls them; guarded by mutex
    return seen.emplace(*asked.emplace(name).first, mine.c_str()).first->second;
}

} // namespace

struct OperatorCallbacks {
    static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function)
    {
        OperatorRecording& here = *recordingHere;
        if (here.depth_++ == 0) here.spans_.push_back({.name = kept(function.name()), .begin = here.clock_->now()});
        return nullptr;
    }
    static void end(const at::RecordFunction&, at::ObserverContext*)
    {
        OperatorRecording& here = *recordingHere;
        if (--here.depth_ == 0) here.spans_.back().end = here.clock_->now();
    }
};

OperatorRecording::Scope::Scope(OperatorRecording* recording)
{
    if (recording == nullptr) return;
    recordingHere = recording;
    recording->depth_ = 0;
    callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&OperatorCallbacks::begin, &OperatorCallbacks::end)
                                               .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperatorRecording::Scope::~Scope()
{
    if (callback_ == 0) return;
    at::removeCallback(callback_);
    recordingHere = nullptr;
}

std::vector<OperatorSpan> OperatorRecording::take() { return std::exchange(spans_, {}); }

} // namespace stagecraft::runtime
