// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/nccl_source.h"

namespace stagecraft::runtime {

Expected<const NcclSource*> ncclOfProcess()
{
    static const Expected<NcclSource> source = []() -> Expected<NcclSource> {
        const Expected<NcclLibrary> library = loadNccl();
        if (!library.ok()) return library.error();
        return NcclSource{.api = library.value().api, .version = library.value().version};
    }();
    if (!source.ok()) return source.error();
    return &source.value();
}

} // namespace stagecraft::runtime
