// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/local_session.h"

#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/nccl_choice.h"
#include "engine/runtime/process_start.h"
#include "engine/runtime/run.h"
#include "engine/runtime/run_messages.h"
#include "engine/transport/process_group.h"

#include <exception>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace stagecraft::runtime {

using namespace engine;

namespace {

// What `make` returns, or the error of what it throws.
template <class Make>
std::invoke_result_t<Make> orError(Make&& make)
{
    try {
        return make();
    } catch (const std::system_error& error) {
        return Error{threadFailure("the run's controller", error.code().message()).text};
    } catch (const std::exception& error) {
        return Error{std::string("the run cannot start: ") + error.what()};
    }
}

class LocalSession final : public Session {
public:
    explicit LocalSession(LocalSessionOptions options) : options_(options) {}
    ~LocalSession() override
    {
        if (run_ && !run_->settle()) lost().push_back(std::move(here_));
    }
    LocalSession(const LocalSession&) = delete;
    LocalSession& operator=(const LocalSession&) = delete;

    Expected<void> start(const Plan& plan) override
    {
        if (run_ && !finished(state_.load()))
            return Error{"a run is going on: stop it first, or wait until it has ended"};
        if (const std::string why = spent(); !why.empty()) return Error{spentNote(why)};
        return orError([&] { return begin(plan); });
    }

    void pause() override
    {
        if (live()) run_->pause();
    }
    void resume() override
    {
        if (live()) run_->resume();
    }
    void stop() override
    {
        if (run_) run_->stop();
    }

    void trouble(const StageTrouble& trouble) override
    {
        if (live()) run_->trouble(trouble);
    }

    [[nodiscard]] SessionState state() const override { return state_.load(); }
    [[nodiscard]] std::string spent() const override { return run_ && finished(state_.load()) ? run_->spent() : std::string(); }
    std::vector<traces::Record> takeRecords() override { return inbox_.take(); }
    bool waitForRecords(std::chrono::milliseconds timeout) override { return inbox_.waitFor(timeout); }

private:
    // What keeps one process from it keeps all: none of them goes on before all can.
    Expected<void> begin(const Plan& plan)
    {
        // Before the first backward of the process, whatever this plan takes: there LibTorch looks for its CUDA side, and never again.
        if (options_.devices == nullptr) cudaDevices();
        ProcessGroup* const group = plan.run.mode == RunMode::Processes ? options_.group : nullptr;
        const auto agree = [group](std::string_view about, const Expected<void>& own) { return group != nullptr ? group->agree(about, own) : own; };

        Expected<RunnablePlan> runnable = orError([&] { return makeRunnable(plan, options_.memory ? *options_.memory : hostMemory(), options_.group, options_.devices); });
        if (group == nullptr && !runnable.ok()) return runnable.error();
        if (group == nullptr)
            if (const auto sums = chooseSums(runnable.value(), options_); !sums.ok()) return sums.error();
        if (group != nullptr)
            if (const auto all = settleTogether(*group, runnable, options_); !all.ok()) return all.error();
        run_.reset();
        state_.store(SessionState::Idle);
        const std::string start = "the start of the run at step " + std::to_string(runnable.value().firstStep()); // of the checkpoint that each has read
        const Expected<void> built = orError([&] {
            run_ = std::make_unique<Run>(std::move(runnable).value(), options_, inbox_, state_);
            return Expected<void>{};
        });
        if (auto all = agree(start, built); !all.ok()) {
            run_.reset();
            state_.store(SessionState::Idle);
            return all.error();
        }
        run_->begin();
        return {};
    }

    [[nodiscard]] bool live() const { return run_ && !finished(state_.load()); }

    // What a run writes to until it is gone, and itself.
    struct Here {
        RecordInbox inbox;
        std::atomic<SessionState> state{SessionState::Idle};
        std::unique_ptr<Run> run;
    };
    // Of runs with a thread that hangs in a GPU: for as long as the process lives.
    static std::vector<std::unique_ptr<Here>>& lost()
    {
        static auto* all = new std::vector<std::unique_ptr<Here>>;
        return *all;
    }

    LocalSessionOptions options_;
    std::unique_ptr<Here> here_ = std::make_unique<Here>();
    RecordInbox& inbox_ = here_->inbox;
    std::atomic<SessionState>& state_ = here_->state;
    std::unique_ptr<Run>& run_ = here_->run;
};

} // namespace

std::unique_ptr<Session> makeLocalSession(LocalSessionOptions options)
{
    return std::make_unique<LocalSession>(options);
}

} // namespace stagecraft::runtime
