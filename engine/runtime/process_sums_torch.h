// SPDX-License-Identifier: Apache-2.0
//
// The sums of replicas that are in processes of their own, by messages. As in one process member k makes the k-th part of a sum, adding up in
// the order of the members: so the bits are the same, and each process sends as much as in a ring, in two messages to each other member:
//
//   own thread     B(last) ...give...        | wait -> OPTIMIZER
//   thread beside          [parts to their makers]   [sums the own part]  [it to all]   [all are here: recorded]
//   mail                      -> part k to k             <- own part of all          <- theirs
//
// Nobody waits for a message of one sum to begin another, so members may give in any order. Of a rank on a GPU the thread beside copies what
// is given to the host, and what comes of it back. What has come of the others' parts is a transfer's buffer until it is summed. Private to
// the runtime.
//
//   ProcessSums sums(run, all, place, Rank{1});
//   sums.start();                                       // throws std::system_error where there is no thread
//   runRank(run, {..., &sums}, rank);
//   sums.stop();
#pragma once

#include "engine/runtime/process_handoff_torch.h"
#include "engine/runtime/sum_maker_torch.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace stagecraft::runtime {

class ProcessSums final : public SumMaker, private PostOffice::Receiver {
public:
    // `rank`: of all replicas. To the control its thread is a rank behind those of all.
    ProcessSums(const Execution& run, ProcessRun& all, const HandoffPlace& place, Rank rank);
    ~ProcessSums() override;
    void start();
    void stop(); // the rank is through; its thread has left the control then

    void give(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark made) override;
    [[nodiscard]] bool done(const std::vector<Turn>& turns) override;
    std::optional<TimeNs> wait(const std::vector<Turn>& turns) override;
    [[nodiscard]] DeviceMark doneAt(const Turn& turn) const override { return byCollective_.at(turn.collective)->back; }
    void settle(Rank) override {}
    [[nodiscard]] std::vector<MemorySample> takeNoted(Rank) override { return {}; }

private:
    enum class Phase : std::int32_t { Part, Sum }; // of a message: what its receiver sums, or what its sender has summed
    struct Head {
        std::int32_t stage = 0;
        std::int32_t bucket = 0; // of the stage
        std::int32_t member = 0; // who sends
        Phase phase = Phase::Part;
    };
    struct Sum {
        const Collective* collective = nullptr;
        Head head; // of what this member sends
        traces::Step step{};
        std::vector<at::Tensor> values;  // that were given
        std::vector<at::Tensor> onHost;  // the same ones, or copies of those on a GPU
        DeviceMark made;                 // of those
        TimeNs givenAt = 0;
        bool readable = false;           // they are on the host
        std::vector<std::vector<at::Tensor>> parts; // by member: what it gives to this one's part
        std::size_t partsCome = 0;
        std::size_t sumsCome = 0;
        bool summed = false; // the own part
        bool whole = false;  // all of it is on the host
        TimeNs begin = 0;
        TimeNs end = 0;
        DeviceMark back; // of a GPU, when what came of it is there
        int given = 0;           // how often
        std::atomic<int> ended{0}; // how often it was whole
        [[nodiscard]] std::size_t others() const { return collective->members().size() - 1; }
        [[nodiscard]] std::size_t member() const { return static_cast<std::size_t>(head.member); }
    };
    enum class Next : std::uint8_t { Send, Add, End };
    struct Job {
        Next next = Next::Send;
        Sum* sum = nullptr;
    };

    std::shared_ptr<void> prepare(int from, std::string_view text, std::span<const std::size_t> sizes, std::vector<std::span<std::byte>>& room) override;
    void arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>& prepared) override;
    void refused(int from, const std::exception_ptr& error) override;

    void serve(const std::stop_token& stop);
    void work(const Job& job);
    void sendParts(Sum& sum);
    void addUp(Sum& sum);
    void end(Sum& sum);
    void record(Sum& sum);
    void ask(Next next, Sum& sum); // with the lock
    [[nodiscard]] Sum& sumOf(const Head& head) { return *sums_.at({head.stage, head.bucket}); }
    // Of each tensor that has some.
    [[nodiscard]] static std::vector<std::span<std::byte>> partsIn(const Sum& sum, std::size_t ofMember);
    void sendTo(const Sum& sum, std::size_t member, Phase phase, const std::vector<std::span<const std::byte>>& bodies, std::shared_ptr<const void> keep);
    void failed(const Sum& sum, const std::exception_ptr& error);

    const Execution& run_;
    ProcessRun& all_;
    HandoffPlace place_;
    const Rank rank_;
    const Rank second_; // to the control
    const RankDevice& device_; // its stream for sums
    std::map<std::pair<std::int32_t, std::int32_t>, std::unique_ptr<Sum>> sums_; // by stage and bucket
    std::map<const Collective*, Sum*> byCollective_;
    std::mutex mutex_; // guards jobs_ and the sums, but for what the thread beside alone has to do with
    std::condition_variable_any changed_;
    std::deque<Job> jobs_;
    std::deque<Sum*> given_; // the thread's: not recorded, in the order of giving, which is that of the lane for all members of a stage
    TimeNs lastEnd_ = 0;     // the same: of what is on the lane
    std::jthread thread_; // last: it uses the others
};

} // namespace stagecraft::runtime
