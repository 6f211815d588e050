// SPDX-License-Identifier: Apache-2.0
//
// The words of a plan's JSON for its enumerations: readers, writers and texts for people share these lists.
#pragma once

#include "engine/plan/plan.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace stagecraft::engine {

inline constexpr int kMostGpus = 128;
inline constexpr std::string_view kCpuWord = "cpu"; // among the numbers of run.gpus
inline constexpr double kMostSlowdown = 1000; // of a stage, run.slowdown

template <class Enum>
using Word = std::pair<std::string_view, Enum>;

inline constexpr std::array<Word<Activation>, 3> kActivationWords{
    {{"none", Activation::None}, {"relu", Activation::Relu}, {"gelu", Activation::Gelu}}};
inline constexpr std::array<Word<Positions>, 2> kPositionsWords{{{"learned", Positions::Learned}, {"rotary", Positions::Rotary}}};
inline constexpr std::array<Word<FeedForward>, 2> kFeedForwardWords{{{"gelu", FeedForward::Gelu}, {"swiglu", FeedForward::SwiGlu}}};
inline constexpr std::array<Word<Loss>, 2> kLossWords{
    {{"mse", Loss::MeanSquaredError}, {"cross_entropy", Loss::CrossEntropy}}};
inline constexpr std::array<Word<DataSource>, 4> kDataSourceWords{
    {{"synthetic", DataSource::Synthetic}, {"text", DataSource::Text}, {"idx", DataSource::Idx}, {"npy", DataSource::Npy}}};
inline constexpr std::array<Word<TokenUnit>, 2> kTokenWords{{{"characters", TokenUnit::Character}, {"bytes", TokenUnit::Byte}}};
inline constexpr std::array<Word<PartitionRule>, 5> kPartitionWords{{{"flops", PartitionRule::Flops},
                                                                     {"uniform", PartitionRule::Uniform},
                                                                     {"parameters", PartitionRule::Parameters},
                                                                     {"time", PartitionRule::Time},
                                                                     {"memory", PartitionRule::Memory}}};
inline constexpr std::array<Word<Sharding>, 4> kShardingWords{
    {{shardingName(Sharding::None), Sharding::None},
     {shardingName(Sharding::Zero1), Sharding::Zero1},
     {shardingName(Sharding::Zero2), Sharding::Zero2},
     {shardingName(Sharding::Zero3), Sharding::Zero3}}};
inline constexpr std::array<Word<CostSource>, 3> kCostSourceWords{
    {{"assumed", CostSource::Assumed}, {"model", CostSource::Model}, {"measured", CostSource::Measured}}};
inline constexpr std::array<Word<Concatenation>, 3> kConcatenationWords{
    {{"direct", Concatenation::Direct}, {"doubling", Concatenation::Doubling}, {"halving", Concatenation::Halving}}};
inline constexpr std::array<Word<Slicing>, 2> kSlicingWords{{{"equal", Slicing::Equal}, {"balanced", Slicing::Balanced}}};
inline constexpr std::array<Word<RunMode>, 3> kRunModeWords{
    {{"threads", RunMode::Threads}, {"emulated", RunMode::Emulated}, {"processes", RunMode::Processes}}};
inline constexpr std::array<Word<DeviceKind>, 2> kDeviceWords{{{"cpu", DeviceKind::Cpu}, {"cuda", DeviceKind::Cuda}}};
inline constexpr std::array<Word<Precision>, 2> kPrecisionWords{{{"fp32", Precision::Fp32}, {"bf16", Precision::Bf16}}};
inline constexpr std::array<Word<traces::TraceLevel>, 4> kTraceLevelWords{
    {{traceLevelText(traces::TraceLevel::HostSpans), traces::TraceLevel::HostSpans},
     {traceLevelText(traces::TraceLevel::Events), traces::TraceLevel::Events},
     {traceLevelText(traces::TraceLevel::Kernels), traces::TraceLevel::Kernels},
     {traceLevelText(traces::TraceLevel::Api), traces::TraceLevel::Api}}};
inline constexpr std::array<Word<CheckMode>, 3> kCheckWords{
    {{"off", CheckMode::Off}, {"first", CheckMode::First}, {"all", CheckMode::All}}};
inline constexpr std::array<Word<OptimizerKind>, 4> kOptimizerWords{{{"sgd", OptimizerKind::Sgd},
                                                                     {"momentum", OptimizerKind::Momentum},
                                                                     {"adam", OptimizerKind::Adam},
                                                                     {"adamw", OptimizerKind::AdamW}}};
inline constexpr std::array<Word<RateCourse>, 3> kRateCourseWords{
    {{"constant", RateCourse::Constant}, {"linear", RateCourse::Linear}, {"cosine", RateCourse::Cosine}}};

inline constexpr std::array<Word<HandoffKind>, 4> kHandoffWords{
    {{"boxes", HandoffKind::Boxes}, {"mutex", HandoffKind::Mutex}, {"ring", HandoffKind::Ring}, {"semaphore", HandoffKind::Semaphore}}};
inline constexpr std::array<Word<Transport>, 3> kTransportWords{{{"auto", Transport::Auto}, {"nccl", Transport::Nccl}, {"host", Transport::Host}}};
inline constexpr std::array<Word<ActivationAccount>, 2> kActivationAccountWords{
    {{"allocator", ActivationAccount::Allocator}, {"saved-tensors", ActivationAccount::SavedTensors}}};

inline constexpr std::array<Word<TransferPlace>, 3> kTransferPlaceWords{
    {{"free", TransferPlace::Nothing}, {"copy-lane", TransferPlace::CopyLane}, {"ranks", TransferPlace::Ranks}}};
inline constexpr std::array<Word<SendMode>, 3> kSendModeWords{{{sendModeName(SendMode::Buffered), SendMode::Buffered},
                                                               {sendModeName(SendMode::Rendezvous), SendMode::Rendezvous},
                                                               {sendModeName(SendMode::Channel), SendMode::Channel}}};
inline constexpr std::array<Word<Recompute>, 2> kRecomputeWords{{{"none", Recompute::None}, {"full", Recompute::Full}}};

template <class Enum, std::size_t N>
std::string_view wordOf(const std::array<Word<Enum>, N>& words, Enum value)
{
    for (const auto& [word, meaning] : words)
        if (meaning == value) return word;
    return "";
}

// The other way: nothing where no word is that.
template <class Enum, std::size_t N>
std::optional<Enum> meaningOf(const std::array<Word<Enum>, N>& words, std::string_view text)
{
    for (const auto& [word, meaning] : words)
        if (word == text) return meaning;
    return std::nullopt;
}

} // namespace stagecraft::engine
