// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the lab reads and shows quantities: short where that is exact ("1.5 ms"), else exact ("1234567ns"). An empty or "0"
// text of an optional quantity stands for none.
#pragma once

#include "traces/base/expected.h"
#include "traces/base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::ui {

std::string showDuration(traces::TimeNs ns);
std::string showSize(traces::Bytes bytes);

using MaybeDuration = std::optional<traces::TimeNs>;
traces::Expected<MaybeDuration> parseMaybeDuration(std::string_view text); // "", "auto": nullopt
std::string showMaybeDuration(const MaybeDuration& ns);

// 0 shows as "auto" where the model gives the value, and the other way round.
traces::Expected<traces::Bytes> parseAutoSize(std::string_view text);
std::string showAutoSize(traces::Bytes bytes);

// 0 shows as "unlimited".
traces::Expected<double> parseMaybeBandwidth(std::string_view text);
std::string showMaybeBandwidth(double bytesPerSecond);

// "50 GFLOP/s", "2.5 TFLOP/s"; above 0.
traces::Expected<double> parseFlopRate(std::string_view text);
std::string showFlopRate(double flopsPerSecond);
std::string showFlops(double flops); // "12.9 MFLOP"
std::string showCount(double count); // "2.1 M"
std::string showRate(double perSecond); // "81.51 k/s"

// A positive number such as a learning rate.
traces::Expected<double> parsePositive(std::string_view text);
std::string showNumber(double value);
traces::Expected<double> parseMomentum(std::string_view text); // 0 to 1
using MaybeNumber = std::optional<double>;
traces::Expected<MaybeNumber> parseWeightDecay(std::string_view text); // "", "auto": nullopt; else from 0 on
std::string showMaybeNumber(const MaybeNumber& value);
// 0 shows as "none".
traces::Expected<double> parseClipNorm(std::string_view text);
std::string showClipNorm(double norm);
// A power of two: "1", "65536", "2^24".
traces::Expected<double> parseLossScale(std::string_view text);
std::string showLossScale(double scale);
traces::Expected<double> parseJitter(std::string_view text); // "5%" up to 100 %
std::string showJitter(double fraction);
traces::Expected<double> parseShare(std::string_view text); // "50%" or "0.5", 0 % to 100 %
std::string showShare(double share);
using MaybeShare = std::optional<double>;
traces::Expected<MaybeShare> parseMaybeShare(std::string_view text); // "", "auto": nullopt
std::string showMaybeShare(const MaybeShare& share);
// A whole number from 0 on.
traces::Expected<std::uint64_t> parseSeed(std::string_view text);
std::string showSeed(std::uint64_t seed);

// 0 shows as "not known".
traces::Expected<traces::Bytes> parseMaybeSize(std::string_view text);
std::string showMaybeSize(traces::Bytes bytes);

// "1, 1, 1.5, 0.5" and "0, 0, 5ms"; empty: all alike.
traces::Expected<std::vector<double>> parseFactors(std::string_view text);
traces::Expected<std::vector<double>> parseSlowdown(std::string_view text); // of each stage, 1 to 1000
std::string showFactors(const std::vector<double>& factors);
traces::Expected<std::vector<traces::TimeNs>> parseDurations(std::string_view text);
std::string showDurations(const std::vector<traces::TimeNs>& times);

// "3, 3, 4, 2"; empty: balanced.
traces::Expected<std::vector<int>> parsePartition(std::string_view text);
std::string showPartition(const std::vector<int>& partition);

} // namespace stagecraft::ui
