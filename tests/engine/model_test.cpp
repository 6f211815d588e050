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

// Of 34 bytes times sequence, batch and width that a block keeps in 16 bits (Korthikanti et al., arXiv 2205.05198 sec. 4.1, without the
// matrix of the attention, which is not kept) two are masks of dropout, which is a layer of its own here. What the loss keeps is float32
// in every precision.
TEST(ModelCounts, HaveTheBytesOfTheirPrecision)
{
    const std::vector<LayerCounts> fine = layerCounts(gptSmall());
    const std::vector<LayerCounts> coarse = layerCounts(gptSmall(), Precision::Bf16);
    const Bytes sbh = 128 * 2 * 256;
    EXPECT_EQ(coarse[1].activationBytes, (34 - 2) * sbh);
    for (std::size_t i = 0; i < fine.size(); ++i) {
        EXPECT_EQ(2 * coarse[i].outputBytes, fine[i].outputBytes);
        EXPECT_EQ(coarse[i].parameters, fine[i].parameters);
        EXPECT_EQ(coarse[i].forwardFlops, fine[i].forwardFlops);
    }
    EXPECT_EQ(coarse[0].activationBytes, fine[0].activationBytes); // tokens and positions, int64
    EXPECT_EQ(coarse[9].activationBytes, 2 * 2 * sbh + 4 * 2 * 128 * 1000);
    const ModelSpec masks{.layers = {Linear{8, 8}, Dropout{0.5}}, .microbatchRows = 3};
    EXPECT_EQ(layerCounts(masks, Precision::Bf16)[1].activationBytes, 3 * 8); // a byte a value
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

// Llama's block (meta-llama/llama, 2 of 8 heads for keys): wq d x d, wk and wv d x d/4, wo d x d, w1 and w3 d x f, w2 f x d; here with
// biases, and norms with both factor and bias.
TEST(ModelCounts, MatchABlockWithGroupedQueriesAndSwiGlu)
{
    ModelSpec model;
    model.layers = {Embedding{500, 64, 128, Positions::Rotary},
                    TransformerBlock{.dim = 128, .heads = 8, .ffn = 352, .keyValueHeads = 2, .positions = Positions::Rotary, .feedForward = FeedForward::SwiGlu},
                    Head{128, 500}};
    model.loss = Loss::CrossEntropy;
    model.microbatchRows = 2;
    ASSERT_TRUE(checkModel(model).ok());
    const std::vector<LayerCounts> counts = layerCounts(model);
    EXPECT_EQ(counts[0].parameters, 500 * 128); // no table of positions
    EXPECT_EQ(counts[0].forwardFlops, 0);
    const std::int64_t matrices = 128 * 128 + 2 * 128 * 32 + 128 * 128 + 2 * 128 * 352 + 352 * 128;
    EXPECT_EQ(counts[1].parameters, matrices + (128 + 2 * 32 + 128 + 2 * 352 + 128) + 4 * 128);
    EXPECT_DOUBLE_EQ(counts[1].forwardFlops, 2.0 * 2 * 64 * static_cast<double>(matrices) + 4.0 * 2 * 64 * 64 * 128);
    // x, norm, sum, norm: 4 d; q, and k and v for all heads: 3 d; attention's result: d; gate, up, silu, product: 4 f
    EXPECT_EQ(counts[1].activationBytes, 4 * 2 * 64 * (8 * 128 + 4 * 352));
    // in: d to qkv, d to the projection, d to gate and up, f to down; out: d + 2 d/4, d, 2 f, d
    EXPECT_EQ(counts[1].wgradBytes, 4 * 2 * 64 * (3 * 128 + 352 + 128 + 64 + 128 + 2 * 352 + 128));
    EXPECT_EQ(counts[1].name, "Block d=128, 8 heads, 2 of keys, SwiGLU");
}

// By hand, for 2 rows of 3 x 8 x 8 images: a convolution has out x in x k x k weights and two values a channel for its norm, and takes
// 2 k² in FLOPs for each value that it gives.
TEST(ModelCounts, MatchASmallResNetByHand)
{
    ModelSpec model;
    model.image = ImageSize{3, 8, 8};
    model.layers = {Convolution{.in = 3, .out = 16}, ResidualBlock{.in = 16, .out = 16}, ResidualBlock{.in = 16, .out = 32, .stride = 2},
                    PooledHead{32, 10}};
    model.loss = Loss::CrossEntropy;
    model.microbatchRows = 2;
    ASSERT_TRUE(checkModel(model).ok()) << checkModel(model).error().message;
    const std::vector<LayerCounts> counts = layerCounts(model);
    EXPECT_EQ(counts[0].parameters, 16 * 3 * 9 + 2 * 16);
    EXPECT_DOUBLE_EQ(counts[0].forwardFlops, 2.0 * (2 * 16 * 64) * (3 * 9));
    EXPECT_EQ(counts[0].outputBytes, 4 * 2 * 16 * 64);
    EXPECT_EQ(counts[1].parameters, 2 * (16 * 16 * 9 + 2 * 16));
    EXPECT_EQ(counts[2].parameters, 32 * 16 * 9 + 32 * 32 * 9 + 32 * 16 + 3 * 2 * 32);
    EXPECT_DOUBLE_EQ(counts[2].forwardFlops, 2.0 * (2 * 32 * 16) * (16 * 9 + 32 * 9 + 16)); // 4 x 4 pixels
    EXPECT_EQ(counts[2].outputBytes, 4 * 2 * 32 * 16);
    EXPECT_EQ(counts[3].parameters, 32 * 10 + 10);
    EXPECT_THAT(inputShape(model, 2), ElementsAre(2, 3, 8, 8));
    EXPECT_THAT(outputShape(model, 2), ElementsAre(2, 10));
    EXPECT_THAT(targetShape(model, 2), ElementsAre(2));
    EXPECT_FALSE(tokenInput(model));
    // an odd edge is rounded up, as a convolution with zeros around it does
    model.image = ImageSize{3, 7, 9};
    EXPECT_THAT(rowShapes(model)[3], ElementsAre(32, 4, 5));
}

TEST(ModelCounts, TakeWhatThePlanSaysOfLayersThatOnlyItKnows)
{
    ModelSpec model;
    model.layers = {Synthetic{.in = 8, .out = 4, .flops = 1e6, .activationBytes = 1000, .parameters = 77},
                    TorchScript{.file = "later/stage_1.pt", .in = {4}, .out = {2}, .parameters = 50}};
    model.microbatchRows = 3;
    ASSERT_TRUE(checkModel(model).ok());
    const std::vector<LayerCounts> counts = layerCounts(model);
    EXPECT_EQ(counts[0].parameters, 77);
    EXPECT_DOUBLE_EQ(counts[0].forwardFlops, 3e6);
    EXPECT_EQ(counts[0].activationBytes, 3000);
    EXPECT_EQ(counts[0].outputBytes, 3 * 4 * 4);
    EXPECT_EQ(counts[1].parameters, 50);
    EXPECT_DOUBLE_EQ(counts[1].forwardFlops, 3 * 2 * 50); // a product with each
    EXPECT_EQ(counts[1].activationBytes, 3 * 4 * (4 + 2));
    EXPECT_EQ(counts[1].name, "TorchScript stage_1.pt");
    model.layers[0] = TorchScript{.file = "a.pt", .in = {16}, .out = {4}, .vocabulary = 30, .parameters = 1};
    EXPECT_EQ(tokenInput(model)->vocabulary, 30);
    EXPECT_EQ(tokenInput(model)->sequence, 16);
}

TEST(LayerTypes, StandInTheOrderOfTheVariant)
{
    ASSERT_EQ(layerTypes().size(), std::variant_size_v<Layer>);
    for (std::size_t i = 0; i < layerTypes().size(); ++i) EXPECT_EQ(layerTypes()[i].blank.index(), i) << layerTypes()[i].name;
}

TEST(ModelCheck, NamesWhatDoesNotFitOfNewerLayers)
{
    const auto errorOf = [](const ModelSpec& model) { return checkModel(model).ok() ? "no error" : checkModel(model).error().message; };
    const auto blocks = [](TransformerBlock block, Positions positions) { return ModelSpec{.layers = {Embedding{10, 4, 12, positions}, block}}; };
    EXPECT_THAT(errorOf(blocks({.dim = 12, .heads = 4, .ffn = 8, .keyValueHeads = 3}, Positions::Learned)),
                HasSubstr("heads 4 are no multiple of key_value_heads 3"));
    EXPECT_THAT(errorOf(blocks({.dim = 12, .heads = 4, .ffn = 8, .positions = Positions::Rotary}, Positions::Rotary)),
                HasSubstr("a head has 3 values, and rotary positions turn them in pairs"));
    EXPECT_THAT(errorOf(blocks({.dim = 12, .heads = 2, .ffn = 8}, Positions::Rotary)), HasSubstr("its positions are learned, those of the embedding rotary"));
    EXPECT_THAT(errorOf({.layers = {Convolution{3, 8}}}), HasSubstr("say of what size"));
    EXPECT_THAT(errorOf({.layers = {Linear{3, 8}}, .image = ImageSize{3, 4, 4}}), HasSubstr("image: the first layer (Linear 3→8) takes none"));
    EXPECT_THAT(errorOf({.layers = {Convolution{3, 8}}, .image = ImageSize{1, 4, 4}}),
                HasSubstr("layer 0 (Convolution 3→8, 3×3): it takes images of 3 channels, but the model's images have 1 channel of 4x4"));
    EXPECT_THAT(errorOf({.layers = {Convolution{3, 8}, Linear{8, 8}}, .image = ImageSize{3, 4, 4}}),
                HasSubstr("layer 1 (Linear 8→8): it takes 8 values, but layer 0 (Convolution 3→8, 3×3) gives 8 channels of 4x4"));
    EXPECT_THAT(errorOf({.layers = {Convolution{.in = 3, .out = 12}}, .image = ImageSize{3, 4, 4}}), HasSubstr("12 channels cannot be divided into groups 8"));
    EXPECT_THAT(errorOf({.layers = {Convolution{.in = 3, .out = 8, .kernel = 2}}, .image = ImageSize{3, 4, 4}}), HasSubstr("kernel 2 has no middle"));
    EXPECT_THAT(errorOf({.layers = {Linear{4, 8}, Synthetic{.in = 9, .out = 2}}}), HasSubstr("it takes 9 values, but layer 0 (Linear 4→8) gives 8 values"));
    EXPECT_THAT(errorOf({.layers = {TorchScript{.file = "", .in = {4}, .out = {4}, .parameters = 1}}}), HasSubstr("file is empty"));
    EXPECT_THAT(errorOf({.layers = {Linear{4, 4}, TorchScript{.file = "a.pt", .in = {2, 2}, .out = {4}, .parameters = 1}}}),
                HasSubstr("(TorchScript a.pt): it takes 2 positions of 2 values, but layer 0 (Linear 4→4) gives 4 values"));
    EXPECT_THAT(errorOf({.layers = {Linear{4, 4}, TorchScript{.file = "a.pt", .in = {4}, .out = {4}, .vocabulary = 9, .parameters = 1}}}),
                HasSubstr("it takes tokens, so it must be the first layer"));
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
    model.layers = {Linear{8, 1}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("take 2 or more, or mse"));
    model.layers = {Linear{8, 8}}; // a class of each row
    EXPECT_TRUE(checkModel(model).ok());
    EXPECT_THAT(targetShape(model, 3), ElementsAre(3));
    model.image = ImageSize{3, 8, 8};
    model.layers = {Convolution{3, 8}};
    EXPECT_THAT(checkModel(model).error().message, HasSubstr("gives 8 channels of 8x8: end with a pooled_head"));
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
