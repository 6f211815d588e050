// SPDX-License-Identifier: Apache-2.0
//
// IDX, the format of the MNIST images and labels (LeCun, Cortes, Burges): two zero bytes, a byte for the type of the values, one for
// the number of extents, each extent in four bytes, then the values; the largest byte first throughout. Any bytes are safe to read.
//
//   const Array labels = readIdx(bytes).value();    // shape {60000}
#pragma once

#include "engine/data/array.h"
#include "traces/base/expected.h"

#include <string_view>

namespace stagecraft::engine {

// Types: 0x08 and 0x09 bytes without and with a sign, 0x0B and 0x0C whole numbers of 2 and 4 bytes, 0x0D and 0x0E numbers with a point of
// 4 and 8. An error names the byte and what to do.
traces::Expected<Array> readIdx(std::string_view bytes);

} // namespace stagecraft::engine
