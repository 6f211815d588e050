// SPDX-License-Identifier: Apache-2.0
//
// What is said to c10d's TCPStore: a byte that names the query, then its numbers and texts as they lie in memory, a text behind its
// length. Whoever connects begins with Validate and the magic number. meeting_point_torch.cpp, which serves a store, compares these with
// LibTorch's own when it is compiled.
//
//   Validate magic            no answer
//   Ping     nonce            the nonce
//   Set      key value        no answer
//   CompareSet key old new    the value that holds now
//   Get      key              the value
//   Add      key summand      the sum
//   Check    count key...     0 where all are there
//
//   std::string query(1, static_cast<char>(StoreQuery::Ping));
#pragma once

#include <cstdint>

namespace stagecraft::runtime {

enum class StoreQuery : std::uint8_t { Validate = 0, Set = 1, CompareSet = 2, Get = 3, Add = 4, Check = 5, Ping = 13 };

inline constexpr std::uint32_t kStoreMagic = 0x3C85F7CE;
inline constexpr std::uint8_t kStoreHasAll = 0;

} // namespace stagecraft::runtime
