// SPDX-License-Identifier: Apache-2.0
//
// The tables behind reproduce(): what was published, and how it is simulated. One file per source.
#pragma once

#include "engine/explain/published.h"

namespace stagecraft::engine {

PublishedTable zeroBubbleTable();
void fillZeroBubble(PublishedTable& table);
PublishedTable dualPipeTable();
void fillDualPipe(PublishedTable& table);
PublishedTable latencyTable();
void fillLatency(PublishedTable& table);

} // namespace stagecraft::engine
