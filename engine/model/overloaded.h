// SPDX-License-Identifier: Apache-2.0
//
// A visitor of a variant from one lambda per alternative.
//
//   std::visit(Overloaded{[](const Linear& l) { return l.in; }, [](const Head& h) { return h.dim; }}, layer);
#pragma once

namespace stagecraft::engine {

template <class... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};

} // namespace stagecraft::engine
