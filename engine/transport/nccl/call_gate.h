// SPDX-License-Identifier: Apache-2.0
//
// Keeps calls with a communicator and the end of it apart: an ended communicator is freed memory. It is no mutex, for a call that hangs
// must not keep the watchdog from the one thing that ends the call, which is to end the communicator.
//
//   if (!gate.enter(pause)) return ended();    // the calling thread
//   api.send(...);
//   gate.leave();
//
//   if (gate.close([&] { return waitedLongEnough(); })) api.commAbort(...);    // the watchdog
#pragma once

#include <atomic>

namespace stagecraft::runtime {

class CallGate {
public:
    void open() { state_.store(State::Idle); }
    [[nodiscard]] bool closed() const { return state_.load() == State::Closed; }

    [[nodiscard]] bool tryEnter()
    {
        State idle = State::Idle;
        return state_.compare_exchange_strong(idle, State::Calling);
    }
    // Waits while another thread calls. False: closed.
    template <class Pause>
    [[nodiscard]] bool enter(Pause&& pause)
    {
        while (!tryEnter()) {
            if (closed()) return false;
            pause();
        }
        return true;
    }
    void leave()
    {
        State calling = State::Calling;
        state_.compare_exchange_strong(calling, State::Idle); // closed meanwhile: it stays so
    }

    // Waits for a call to end, until `enough` says that it will not. True once: for the one who closed it.
    template <class Enough>
    [[nodiscard]] bool close(Enough&& enough)
    {
        for (;;) {
            State idle = State::Idle;
            if (state_.compare_exchange_strong(idle, State::Closed)) return true;
            if (idle == State::Closed) return false;
            if (enough()) return state_.exchange(State::Closed) != State::Closed;
        }
    }

private:
    enum class State : int { Idle, Calling, Closed };
    std::atomic<State> state_{State::Closed};
};

} // namespace stagecraft::runtime
