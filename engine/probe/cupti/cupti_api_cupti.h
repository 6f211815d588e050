// SPDX-License-Identifier: Apache-2.0
//
// The functions of CUPTI that are called, as a table, so that the program links none of it and starts where it is missing;
// tests fill it with their own. Only for units that may include CUPTI's headers.
//
//   CuptiApi api;
//   api.activityGetNextRecord = &cuptiActivityGetNextRecord;
#pragma once

#include <cupti.h>

namespace stagecraft::runtime {

// member, exported name
#define STAGECRAFT_CUPTI_FUNCTIONS(X)                                           \
    X(getVersion, cuptiGetVersion)                                              \
    X(getTimestamp, cuptiGetTimestamp)                                          \
    X(getCallbackName, cuptiGetCallbackName)                                    \
    X(subscribe, cuptiSubscribe_v2)                                             \
    X(activitySetAttribute, cuptiActivitySetAttribute)                          \
    X(activityRegisterCallbacks, cuptiActivityRegisterCallbacks)                \
    X(activityRegisterTimestampCallback, cuptiActivityRegisterTimestampCallback) \
    X(activityEnable, cuptiActivityEnable)                                      \
    X(activityEnableRuntimeApi, cuptiActivityEnableRuntimeApi)                  \
    X(activityEnableDriverApi, cuptiActivityEnableDriverApi)                    \
    X(activityFlushAll, cuptiActivityFlushAll)                                  \
    X(activityGetNextRecord, cuptiActivityGetNextRecord)                        \
    X(activityGetNumDroppedRecords, cuptiActivityGetNumDroppedRecords)          \
    X(pushExternalCorrelation, cuptiActivityPushExternalCorrelationId)          \
    X(popExternalCorrelation, cuptiActivityPopExternalCorrelationId)

struct CuptiApi {
#define STAGECRAFT_CUPTI_MEMBER(member, name) decltype(&::name) member = nullptr;
    STAGECRAFT_CUPTI_FUNCTIONS(STAGECRAFT_CUPTI_MEMBER)
#undef STAGECRAFT_CUPTI_MEMBER
};

} // namespace stagecraft::runtime
