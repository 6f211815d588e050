// SPDX-License-Identifier: Apache-2.0
//
// Weight gradients that wait. While a Scope of a queue lives on a thread, the functions of deferred_torch.h give autograd the
// gradient of their input alone, and leave here what makes those of their parameters. run() then makes them, in the same order, and
// adds each to its parameter's .grad as autograd would. Splitting the backward in two this way is what zero-bubble schedules need
// (Qi et al. 2023, arXiv 2401.10241 sec. 2). One thread at a time. Private to the runtime.
//
//   GradientQueue later;
//   { const GradientQueue::Scope scope(later); engine.execute(...); }   // I
//   later.run();                                                        // W
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace stagecraft::runtime {

class GradientQueue {
public:
    class Scope {
    public:
        explicit Scope(GradientQueue& queue);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        GradientQueue* outer_;
    };
    // The queue of the calling thread's innermost scope; null where gradients are made at once.
    static GradientQueue* current();

    // `kept` is what `makeAndAdd` holds on to until then.
    void add(std::vector<at::Tensor> kept, std::function<void(const std::vector<at::Tensor>&)> makeAndAdd);
    // Makes all that wait; lets go of what each kept right after it.
    void run();
    [[nodiscard]] bool empty() const { return waiting_.empty(); }

    template <class Visit>
    void forEachKept(Visit&& visit) const
    {
        for (const Waiting& each : waiting_)
            for (const at::Tensor& tensor : each.kept) visit(tensor);
    }

private:
    struct Waiting {
        std::vector<at::Tensor> kept;
        std::function<void(const std::vector<at::Tensor>&)> makeAndAdd;
    };
    std::vector<Waiting> waiting_;
};

// Into .grad, as autograd accumulates: the first is taken as it is, but for the type of the sum, the others are added to it.
void addGradient(at::Tensor& parameter, const at::Tensor& gradient);

} // namespace stagecraft::runtime
