// SPDX-License-Identifier: Apache-2.0
//
// Expected<T>: a value or an Error, returned wherever something can fail across a module border.
// There is no conversion to bool, so that Expected<bool> cannot be misread and a result cannot be dropped unseen.
//
//   Expected<Plan> plan = readPlan(text);
//   if (!plan.ok()) return plan.error().in("demo.plan.json");
//   use(plan.value());
//
// The value of a temporary is moved out of it, so that `for (const Layer& each : readPlan(text).value().model.layers)` and
// `const Plan& plan = readPlan(text).value();` hold on to what they look at.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace stagecraft::traces {

// What failed, on which thing, and what to do: one text for a person to read.
struct Error {
    std::string message;

    // The same error with the name of what it happened in put before it ("demo.plan.json: ...").
    [[nodiscard]] Error in(std::string_view what) const
    {
        return Error{std::string(what) + ": " + message};
    }

    bool operator==(const Error&) const = default;
};

template <class T>
class [[nodiscard]] Expected {
public:
    Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const = delete;

    [[nodiscard]] T& value() &
    {
        assert(ok());
        return std::get<0>(state_);
    }
    [[nodiscard]] const T& value() const&
    {
        assert(ok());
        return std::get<0>(state_);
    }
    [[nodiscard]] T value() &&
    {
        assert(ok());
        return std::get<0>(std::move(state_));
    }
    [[nodiscard]] const Error& error() const
    {
        assert(!ok());
        return std::get<1>(state_);
    }

private:
    std::variant<T, Error> state_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Expected<void> {
public:
    Expected() = default;
    Expected(Error error) : error_(std::move(error)), failed_(true) {}

    [[nodiscard]] bool ok() const { return !failed_; }
    explicit operator bool() const = delete;
    [[nodiscard]] const Error& error() const
    {
        assert(failed_);
        return error_;
    }

private:
    Error error_;
    bool failed_ = false;
};

} // namespace stagecraft::traces
