// SPDX-License-Identifier: Apache-2.0
//
// That the GPUs which are not there find what they are for: accesses that no event orders, and memory that is let go of too early.
#include "tests/runtime/fake_gpu/fake_gpu.h"

#include "engine/runtime/rank_device_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::test {
namespace {

using runtime::Boundary;
using runtime::RankDevice;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

c10::Device gpu(int index) { return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)}; }

class FakeGpu : public testing::Test {
protected:
    FakeGpu() { gpus.reset({.count = 2, .ofOperation = 1000, .ofCopy = 500}); }

    RankDevice rank(int device)
    {
        RankDevice made(gpu(device), gpus.clock());
        made.beginStep();
        return made;
    }

    // Two of everything.
    static Boundary madeBy(RankDevice& device)
    {
        const auto here = device.enter();
        const at::Tensor tensor = at::ones({4}, at::TensorOptions(device.device())) * 2;
        return {tensor, device.mark()};
    }

    FakeGpus& gpus = FakeGpus::get();
};

TEST_F(FakeGpu, ComputesWhatTheCpuComputes)
{
    const at::Tensor a = at::ones({3, 4}) * 2;
    const at::Tensor b = at::ones({4, 5}) * 3;
    const at::Tensor there = at::mm(a.to(gpu(0)), b.to(gpu(0)));
    EXPECT_EQ(there.device(), gpu(0));
    EXPECT_TRUE(there.cpu().equal(at::mm(a, b)));
    EXPECT_THAT(gpus.races(), IsEmpty());
}

TEST_F(FakeGpu, FindsAReadThatNoEventOrders)
{
    RankDevice one = rank(0);
    RankDevice other = rank(0);
    at::Tensor x;
    {
        const auto here = one.enter();
        x = at::ones({4}, at::TensorOptions(gpu(0))) * 2;
    }
    const auto here = other.enter();
    const at::Tensor y = x + 1;
    EXPECT_THAT(gpus.races(), Contains(HasSubstr("reads memory while aten::mul")));
    one.drain();
    other.drain();
}

TEST_F(FakeGpu, IsContentWithAnEventBetweenThem)
{
    RankDevice one = rank(0);
    RankDevice other = rank(0);
    Boundary given = madeBy(one);
    {
        const auto here = other.enter();
        const at::Tensor x = other.fetch(given).tensor;
        const at::Tensor y = x + 1;
    }
    other.drain();
    given = {};
    EXPECT_THAT(gpus.races(), IsEmpty());
}

TEST_F(FakeGpu, FindsMemoryThatIsLetGoOfWhileAnotherStreamUsesIt)
{
    RankDevice one = rank(0);
    RankDevice other = rank(0);
    Boundary given = madeBy(one);
    {
        const auto here = other.enter();
        const at::Tensor y = other.fetch(given).tensor + 1;
        given = {};
        EXPECT_THAT(gpus.races(), Contains(HasSubstr("is let go of while aten::add")));
    }
}

TEST_F(FakeGpu, CopiesFromOneToAnotherInOrder)
{
    RankDevice one = rank(0);
    RankDevice other = rank(1);
    Boundary given = madeBy(one);
    RankDevice::Fetched copy;
    at::Tensor y;
    {
        const auto here = other.enter();
        copy = other.fetch(given);
        y = copy.tensor + 1;
    }
    other.drain();
    EXPECT_EQ(y.device(), gpu(1));
    EXPECT_TRUE(y.cpu().equal(at::ones({4}) * 3));
    // two operations and the copy; what another GPU waits for takes none of its own time
    EXPECT_EQ(copy.ready->time() - given.ready->time(), 500);
    EXPECT_THAT(gpus.races(), IsEmpty());
}

TEST_F(FakeGpu, TellsTheTimeOfTheStreamAndNotOfTheHost)
{
    RankDevice one = rank(0);
    const auto here = one.enter();
    const runtime::DeviceMark begin = one.mark();
    at::Tensor x = at::ones({4}, at::TensorOptions(gpu(0)));
    for (int i = 0; i < 7; ++i) x = x + 1;
    const runtime::DeviceMark end = one.mark();
    EXPECT_FALSE(end->reached()); // nobody has waited
    const runtime::TimeNs asked = gpus.clock().now();
    end->wait();
    EXPECT_TRUE(end->reached());
    EXPECT_EQ(end->time() - begin->time(), 8000); // ones() fills
    EXPECT_EQ(gpus.clock().now() - asked, 8000);
}

} // namespace
} // namespace stagecraft::test
