// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace stagecraft;
using namespace stagecraft::engine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

ModelSpec gptSmall()
{
    ModelSpec model;
    model.layers.push_back(Embedding{1000, 128, 256});
    for (int i = 0; i < 8; ++i) model.layers.push_back(TransformerBlock{256, 4, 1024});
    model.layers.push_back(Head{256, 1000});
    model.loss = Loss::CrossEntropy;
    model.microbatchRows = 2;
    return model;
}

// Linear(1024,2048)+ReLU | Linear(2048,1024), 32 rows: 2,099,200 and 2,098,176 parameters, 134.2 MFLOP forward each,
// a boundary of 32x2048 float32 = 256 KiB.
TEST(ModelCounts, MatchTheHelloPipelineByHand)
{
    const ModelSpec model{.layers = {Linear{1024, 2048, Activation::Relu}, Linear{2048, 1024}}, .microbatchRows = 32};
    ASSERT_TRUE(checkModel(model).ok());
    const std::vector<LayerCounts> counts = layerCounts(model);
    EXPECT_EQ(counts[0].parameters, 2'099'200);
    EXPECT_EQ(counts[1].parameters, 2'098'176);
    EXPECT_DOUBLE_EQ(counts[0].forwardFlops, 134'217'728.0);
    EXPECT_DOUBLE_EQ(counts[1].forwardFlops, 134'217'728.0);
    EXPECT_DOUBLE_EQ(counts[0].backwardFlops, 2 * 134'217'728.0);
    EXPECT_EQ(counts[0].outputBytes, 256 * 1024);
    EXPECT_THAT(inputShape(model, 32), ElementsAre(32, 1024));
    EXPECT_THAT(outputShape(model, 32), ElementsAre(32, 1024));
}

// A GPT block has 12h²+13h parameters with ffn = 4h (Megatron-LM), forward 24Bsh²+4Bs²h FLOPs.
TEST(ModelCounts, MatchTheFormulasOfATransformerBlock)
{
    const std::vector<LayerCounts> counts = layerCounts(gptSmall());
    const double h = 256;
    const double s = 128;
    const double b = 2;
    EXPECT_EQ(counts[1].parameters, 12 * 256 * 256 + 13 * 256);
    EXPECT_DOUBLE_EQ(counts[1].forwardFlops, 24 * b * s * h * h + 4 * b * s * s * h);
    EXPECT_EQ(counts[0].parameters, (1000 + 128) * 256);
    EXPECT_EQ(counts[9].parameters, 2 * 256 + 256 * 1000 + 1000);
    EXPECT_DOUBLE_EQ(counts[9].forwardFlops, 2 * b * s * h * 1000);
    EXPECT_EQ(counts[1].outputBytes, 2 * 128 * 256 * 4);
}

// The four products of a block take 3d + f values in and give 5d + f (arXiv 2401.10241 counts 32 of 34 sbh for f = 4h: norms and
// their like need no W); a linear layer takes `in` and gives `out`.
TEST(ModelCounts, TellWhatALateWeightGradientNeeds)
{
    const std::vector<LayerCounts> counts = layerCounts(gptSmall());
    const Bytes positions = 2 * 128;
    EXPECT_EQ(counts[0].wgradBytes, positions * (8 + 4 * 256));
    EXPECT_EQ(counts[1].wgradBytes, positions * 4 * (8 * 256 + 2 * 1024));
    EXPECT_EQ(counts[9].wgradBytes, positions * 4 * (256 + 1000));
    const ModelSpec hello{.layers = {Linear{1024, 2048, Activation::Relu}, Linear{2048, 1024}}, .microbatchRows = 32};
    EXPECT_EQ(layerCounts(hello)[0].wgradBytes, 32 * 4 * (1024 + 2048));
}

TEST(ModelCheck, NamesLayersThatDoNotFit)
{
    ModelSpec model{.layers = {Linear{8, 16}, Linear{8, 4}}};
    EXPECT_THAT(checkModel(model).error().message,
                HasSubstr("layer 1 (Linear 8→4): it takes 8 values, but layer 0 (Linear 8→16) gives 16"));
    model.layers = {Linear{8, 0}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("out is 0"));
    model.layers = {TransformerBlock{8, 2, 16}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("first layer must be an embedding"));
    model.layers = {Embedding{10, 4, 8}, TransformerBlock{8, 3, 16}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("dim 8 is no multiple of heads 3"));
    model.layers = {Linear{8, 8}, Embedding{10, 4, 8}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("must be the first layer"));
    model = {};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("no layers"));
}

TEST(ModelCheck, RefusesWhatCannotBeCounted)
{
    const int most = 1 << 20;
    ModelSpec model{.layers = {Embedding{1000, most, most}, TransformerBlock{most, 4, most}}, .microbatchRows = most};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("more than can be counted"));
    model.layers.assign(kMostLayers + 1, Linear{4, 4});
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("the model has 4097 layers; at most 4096"));
}

TEST(ModelCheck, WantsAVocabularyForTheLoss)
{
    ModelSpec model = gptSmall();
    EXPECT_TRUE(checkModel(model).ok());
    model.layers.back() = Head{256, 10};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("vocabulary of 1000, but the last layer gives 10"));
    model.layers = {Linear{8, 8}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("take mse"));
}

// Every partition by brute force.
double smallestLargest(const std::vector<double>& weight, std::size_t begin, int stages)
{
    if (stages == 1) {
        double sum = 0;
        for (std::size_t i = begin; i < weight.size(); ++i) sum += weight[i];
        return sum;
    }
    double best = 1e300;
    double sum = 0;
    for (std::size_t end = begin + 1; end + static_cast<std::size_t>(stages) - 1 <= weight.size(); ++end) {
        sum += weight[end - 1];
        best = std::min(best, std::max(sum, smallestLargest(weight, end, stages - 1)));
    }
    return best;
}

TEST(Partition, MakesTheLargestStageAsSmallAsPossible)
{
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::vector<double> weight;
        for (unsigned i = 0; i < 9; ++i) weight.push_back(1 + (seed * 7919 + i * 104729) % 23);
        for (int stages = 1; stages <= 9; ++stages) {
            const Partition partition = balancedPartition(weight, stages).value();
            ASSERT_EQ(partition.size(), static_cast<std::size_t>(stages));
            std::size_t next = 0;
            double largest = 0;
            for (const int count : partition) {
                ASSERT_GE(count, 1);
                double sum = 0;
                for (int i = 0; i < count; ++i) sum += weight[next++];
                largest = std::max(largest, sum);
            }
            EXPECT_EQ(next, weight.size());
            EXPECT_DOUBLE_EQ(largest, smallestLargest(weight, 0, stages));
        }
    }
}

TEST(Partition, TakesAsManyLayersAsAModelMayHave)
{
    std::vector<double> weight;
    for (unsigned i = 0; i < kMostLayers; ++i) weight.push_back(1 + i * 104729 % 23);
    const Partition partition = balancedPartition(weight, 2048).value();
    EXPECT_EQ(std::accumulate(partition.begin(), partition.end(), 0), static_cast<int>(kMostLayers));
    EXPECT_GE(*std::min_element(partition.begin(), partition.end()), 1);
}

TEST(Partition, TakesLayersWithoutWeight)
{
    EXPECT_THAT(balancedPartition({0, 0, 1, 0, 1, 0}, 2).value(), ElementsAre(3, 3));
    EXPECT_THAT(balancedPartition({0, 0, 0}, 2).value(), ElementsAre(1, 2));
}

TEST(Partition, SplitsTwelveEqualLayersEvenly)
{
    EXPECT_THAT(balancedPartition(std::vector<double>(12, 1.0), 4).value(), ElementsAre(3, 3, 3, 3));
}

TEST(Partition, RefusesMoreStagesThanLayers)
{
    EXPECT_THAT(balancedPartition({1, 1}, 3).error().message, HasSubstr("3 stages cannot be made of 2 layers"));
}

} // namespace
