// SPDX-License-Identifier: Apache-2.0
//
// The CUPTI of the wheel, whatever else the machine has: its way of stepping over records needs no driver.
//
//   ActivityDecoder decoder(realLibrary());
#pragma once

#include "engine/probe/cupti/cupti_library.h"

namespace stagecraft::runtime {

inline std::shared_ptr<const CuptiLibrary> realLibrary()
{
    return CuptiLibrary::open({.name = STAGECRAFT_CUPTI_LIBRARY}).value();
}

} // namespace stagecraft::runtime
