// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/model_edits.h"

#include "engine/plan/plan_json.h"

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using testing::HasSubstr;

TEST(ModelEdits, TellTheBatchAndTheOutputOfHello)
{
    const std::string summary = modelSummary(engine::presetPlan("hello").value());
    EXPECT_THAT(summary, HasSubstr("Batch 32 rows"));
    EXPECT_THAT(summary, HasSubstr("output 32×1024"));
}

TEST(ModelEdits, TellABatchOfMoreRowsThanAnIntHolds)
{
    engine::Plan plan = engine::presetPlan("hello").value();
    plan.model.microbatchRows = 1 << 20;
    plan.pipeline.microbatches = 1 << 13;
    EXPECT_THAT(modelSummary(plan), HasSubstr("Batch 8589934592 rows, output 8589934592×1024"));
    plan.model.microbatchRows = plan.pipeline.microbatches = 1;
    EXPECT_THAT(modelSummary(plan), HasSubstr("Batch 1 row, output 1×1024"));
}

TEST(ModelEdits, ANewModelDropsWhatWasMeasuredOnTheOldOne)
{
    engine::Plan plan = engine::presetPlan("hello").value();
    plan.costs.source = engine::CostSource::Measured;
    plan.costs.measured.resize(2);
    plan.costs.measuredFrom = "a run";
    plan.partition = {1, 1};
    const engine::Plan changed = withModel(plan, engine::presetPlan("mlp").value().model);
    EXPECT_TRUE(changed.costs.measured.empty());
    EXPECT_TRUE(changed.costs.measuredFrom.empty());
    EXPECT_TRUE(changed.partition.empty());
    EXPECT_EQ(changed.costs.source, engine::CostSource::Model);
}

TEST(ModelEdits, WithoutAModelCostsAreAssumed)
{
    engine::Plan plan = engine::presetPlan("gpt-small").value();
    plan.costs.source = engine::CostSource::Model;
    EXPECT_EQ(withModel(plan, {}).costs.source, engine::CostSource::Assumed);
    EXPECT_TRUE(costsOf(withModel(plan, {})).ok());
}

TEST(ModelEdits, OfferTheModelsOfThePresets)
{
    std::vector<std::string> names;
    for (const ModelChoice& choice : modelChoices()) names.push_back(choice.name);
    EXPECT_THAT(names, testing::IsSupersetOf({"hello", "mlp", "gpt-small"}));
}

} // namespace
} // namespace stagecraft::ui
