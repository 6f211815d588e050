// SPDX-License-Identifier: Apache-2.0
//
// The transfers of whole schedules through the communicators, in the order that was made for them.
#include "engine/schedule/transfer_order.h"
#include "engine/transport/nccl/clique.h"
#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl/fake_nccl.h"

#include <gmock/gmock.h>

#include <array>
#include <ostream>
#include <set>
#include <thread>

namespace stagecraft::runtime {
namespace {

using engine::TransferGroup;
using engine::TransferOrder;
using engine::TransferPart;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every rank issues its groups from a thread of its own; a transfer carries its number.
class Transfers {
public:
    explicit Transfers(TransferOrder order)
        : order_(std::move(order)), sent_(order_.transfers.size()), received_(order_.transfers.size(), 0),
          clique_({.api = FakeNccl::api(), .clock = clock_, .patience = {}, .pause = [](int) { std::this_thread::yield(); }}, spec())
    {
        for (std::size_t t = 0; t < sent_.size(); ++t) sent_[t] = t + 1;
    }

    // Connects all, has each rank meet its peers, then issue its part.
    Expected<void> run()
    {
        if (auto met = clique_.connect(newNcclId(FakeNccl::api()).value()); !met.ok()) return met;
        std::vector<Expected<void>> results(order_.groups.size());
        {
            std::vector<std::jthread> ranks;
            for (std::size_t r = 0; r < results.size(); ++r)
                ranks.emplace_back([&, r] { results[r] = issue(clique_.of(static_cast<int>(r)), order_.groups[r]); });
        }
        for (const Expected<void>& result : results)
            if (!result.ok()) return result;
        return {};
    }
    // A look long after.
    bool moves()
    {
        static_cast<void>(clique_.look());
        clock_.advance(400'000'000'000);
        return clique_.look();
    }
    [[nodiscard]] bool arrived() const { return received_ == sent_; }
    FakeNccl& nccl() { return nccl_; }
    NcclClique& clique() { return clique_; }

private:
    NcclCliqueSpec spec()
    {
        NcclCliqueSpec spec{.size = static_cast<int>(order_.groups.size()), .members = {}, .useDevice = FakeNccl::useDevice};
        for (int r = 0; r < spec.size; ++r) spec.members.push_back({r, r});
        return spec;
    }
    Expected<void> issue(NcclCommunicator& own, const std::vector<TransferGroup>& groups)
    {
        std::set<int> peers;
        for (const TransferGroup& group : groups) peers.insert(group.peer.value);
        const std::vector<int> list(peers.begin(), peers.end());
        std::array<std::byte, 2> scratch{};
        if (auto met = own.warmUp(list, scratch.data(), nullptr); !met.ok()) return met;
        std::size_t number = list.size();
        for (const TransferGroup& group : groups) {
            std::vector<NcclPart> parts;
            for (const TransferPart& part : group.parts()) {
                void* buffer = part.sends ? &sent_[part.transfer] : &received_[part.transfer];
                parts.push_back({part.sends ? NcclPart::Side::Send : NcclPart::Side::Receive, group.peer.value, buffer, sizeof(std::size_t)});
            }
            const std::string what = toText(engine::Action{order_.transfers[group.slots[0].transfer].work, {}});
            if (auto issued = own.exchange(what, parts, nullptr); !issued.ok()) return issued;
            own.track(what, [this, rank = own.rank(), before = number++] { return nccl_.carriedOut(rank) > before; });
        }
        return {};
    }

    TransferOrder order_;
    std::vector<std::size_t> sent_;
    std::vector<std::size_t> received_;
    FakeNccl nccl_;
    ManualClock clock_;
    NcclClique clique_;
};

struct Shape {
    const char* family;
    int ranks;
    int chunks;
    int microbatches;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.family; }

TransferOrder orderOf(const Shape& shape)
{
    const engine::Schedule schedule =
        engine::generate({.name = shape.family, .ranks = shape.ranks, .chunks = shape.chunks, .microbatches = shape.microbatches}).value();
    return engine::transferOrder(schedule).value();
}

class NcclTransfers : public testing::TestWithParam<Shape> {};

TEST_P(NcclTransfers, AllArriveInTheCommonOrder)
{
    Transfers transfers(orderOf(GetParam()));
    const Expected<void> issued = transfers.run();
    ASSERT_TRUE(issued.ok()) << issued.error().message;
    EXPECT_TRUE(transfers.arrived());
    EXPECT_TRUE(transfers.moves());
    EXPECT_TRUE(transfers.clique().finish().ok());
    EXPECT_THAT(transfers.nccl().misuse(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclTransfers,
                         testing::Values(Shape{"1f1b", 2, 1, 4}, Shape{"gpipe", 3, 1, 4}, Shape{"interleaved", 3, 2, 3}, Shape{"zb-v", 3, 2, 6},
                                         Shape{"dualpipe", 4, 1, 8}, Shape{"bpipe", 4, 1, 4}),
                         [](const auto& instance) {
                             std::string name = instance.param.family;
                             std::erase(name, '-');
                             return name;
                         });

// The other rank's order is not this one's: what every rank would do by itself. The streams stand still, and that is found.
TEST(NcclTransfers, ThatDoNotShareAnOrderAreFoundStandingStill)
{
    TransferOrder order = orderOf({"1f1b", 2, 1, 3});
    std::swap(order.groups[1][0], order.groups[1][1]);
    Transfers transfers(std::move(order));
    ASSERT_TRUE(transfers.run().ok()); // all is on its stream
    EXPECT_FALSE(transfers.arrived());
    EXPECT_FALSE(transfers.moves());
    EXPECT_THAT(transfers.clique().fault()->text, HasSubstr("rank 0: nothing has moved on its communication stream for 300 s, it stands at 0SEND_F0"));
    EXPECT_THAT(transfers.nccl().misuse(), IsEmpty());
}

} // namespace
} // namespace stagecraft::runtime
