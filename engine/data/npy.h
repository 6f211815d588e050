// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy (format versions 1, 2 and 3): a magic text, a version, the length of a header, the header as a Python dictionary with
// descr, fortran_order and shape, then the values. Any bytes are safe to read.
//
//   const Array inputs = readNpy(bytes).value();
#pragma once

#include "engine/data/array.h"
#include "traces/base/expected.h"

#include <string_view>

namespace stagecraft::engine {

// Of float32, float64, uint8 and int64, the smallest byte first, rows one after the other (C order). An error names the byte, and for what
// is another array the line of Python that makes it one of these.
traces::Expected<Array> readNpy(std::string_view bytes);

} // namespace stagecraft::engine
