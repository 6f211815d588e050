// SPDX-License-Identifier: Apache-2.0
//
// The model of a plan as JSON. Private to the engine's .cpp files.
#pragma once

#include "engine/model/model.h"
#include "engine/plan/json_object.h"

namespace stagecraft::engine {

traces::Expected<void> readModel(const Json& json, ModelSpec& model);
// Layers that follow each other and are the same stand there once; of a layer what differs from the default.
nlohmann::ordered_json modelJson(const ModelSpec& model);

} // namespace stagecraft::engine
