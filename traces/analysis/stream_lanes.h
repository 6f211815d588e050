// SPDX-License-Identifier: Apache-2.0
//
// Lanes of what blocks consist of, which a trace tells apart by their names:
//
//   GPU 0 stream 7                   kernels, copies and memsets of actions
//   GPU 0 stream 7 (2)               the same: what came too late for the lane before
//   GPU 0 stream 7, beside           those of the forward of an overlapped pair, whose block lies on the rank's second lane
//   GPU 0 stream 7, of no action     what nobody marked
//   GPU 0 stream 9, NCCL             kernels of NCCL, which it launches by itself (exchanges.h)
//   rank 0 exchanges                 what the engine gave NCCL to exchange, in its order
//   rank 0 operators                 what its thread called of LibTorch, on the CPU; "(2)": its second thread
//   GPU 0 stream 7, gaps             why the stream stood still between them, a slice for each part of a gap, named by its cause
//
//   if (holdsGaps(lane.info())) use(streamGapCauseOf(trace.text(lane.text(i))));
#pragma once

#include "traces/store/lane.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft::traces {

// Of a moment in which a stream does nothing: what its next work waited for.
enum class StreamGapCause : std::uint8_t {
    Host,   // the host had not asked for it
    Launch, // it had, and the launch was on its way
    Event,  // the stream was told to wait for an event
    Device, // all was there, and the device did not begin
};
inline constexpr std::array kStreamGapCauses{StreamGapCause::Host, StreamGapCause::Launch, StreamGapCause::Event, StreamGapCause::Device};

constexpr std::string_view streamGapText(StreamGapCause cause)
{
    switch (cause) {
    case StreamGapCause::Host: return "host had not launched";
    case StreamGapCause::Launch: return "launch on its way";
    case StreamGapCause::Event: return "waits for an event";
    case StreamGapCause::Device: return "device, though work was there";
    }
    return {};
}
[[nodiscard]] std::optional<StreamGapCause> streamGapCauseOf(std::string_view text);

// A lane of kernels and copies: one of a stream, by its name, as the engine and PyTorch's profiler give it ("stream 7").
[[nodiscard]] bool holdsKernels(const LaneInfo& lane);
// Of those, or of operators: what is of blocks on the rank's second lane.
[[nodiscard]] bool isBeside(const LaneInfo& lane);
[[nodiscard]] std::string besideLaneName(std::string_view stream); // "GPU 0 stream 7" -> "GPU 0 stream 7, beside"
// A lane of kernels, or of what no action is known of, or of NCCL.
[[nodiscard]] bool holdsStreamWork(const LaneInfo& lane);
[[nodiscard]] bool holdsNccl(const LaneInfo& lane);
[[nodiscard]] std::string ncclLaneName(std::string_view stream); // "GPU 0 stream 9" -> "GPU 0 stream 9, NCCL"
[[nodiscard]] bool holdsGaps(const LaneInfo& lane);
[[nodiscard]] std::string gapsLaneName(std::string_view stream); // "GPU 0 stream 7" -> "GPU 0 stream 7, gaps"

[[nodiscard]] bool holdsOperators(const LaneInfo& lane);
[[nodiscard]] std::string operatorsLaneName(std::string_view rank, int beside); // "rank 0" -> "rank 0 operators"

[[nodiscard]] bool holdsExchanges(const LaneInfo& lane);
[[nodiscard]] std::string exchangesLaneName(std::string_view rank); // "rank 0" -> "rank 0 exchanges"

// Of a lane of gaps, of NCCL or beside, the name of its stream's; of another lane its own.
[[nodiscard]] std::string_view streamName(const LaneInfo& lane);
[[nodiscard]] std::optional<int> gpuOf(const LaneInfo& lane); // "GPU 0 stream 7" -> 0

// By the names that the engine ("host to device", "copy GPU 0 to GPU 1") and PyTorch's profiler ("Memcpy HtoD ...") give. A memset is none.
[[nodiscard]] bool isCopyName(std::string_view name);
[[nodiscard]] bool isNcclName(std::string_view name);     // of a kernel of NCCL: "ncclDevKernel_SendRecv(...)"
[[nodiscard]] bool isExchangeName(std::string_view name); // of one that sends and receives
[[nodiscard]] bool isSumName(std::string_view name);      // of one that sums what all ranks of a clique have: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"

} // namespace stagecraft::traces
