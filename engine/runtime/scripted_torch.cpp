// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/scripted_torch.h"

#include "engine/probe/tagging_allocator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace stagecraft::runtime {

namespace {

using at::Tensor;

// A place of the module that holds a parameter. A parameter that the module uses in two places has both.
struct Slot {
    torch::jit::Module owner;
    std::string name;
    std::size_t parameter; // its index
};

[[noreturn]] void refuse(const engine::TorchScript& layer, const std::string& what) { throw std::runtime_error(layer.file + ": " + what); }

// LibTorch's messages go on with what it was doing; the last line of a Python-like trace says what went wrong: "RuntimeError: index
// out of range in self".
std::string firstLine(const std::exception& error)
{
    std::string text = error.what();
    if (const auto said = text.rfind("Error: "); said != std::string::npos) text.erase(0, text.find_last_of("\n ", said) + 1);
    return text.substr(0, text.find('\n'));
}

torch::jit::Module load(const engine::TorchScript& layer)
{
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(layer.file, ignored))
        refuse(layer, "there is no such file; give the name of one that torch.jit.save has written, as it is seen from the plan's folder");
    try {
        return torch::jit::load(layer.file, at::kCPU);
    } catch (const std::exception&) { // c10::Error, and what the unpickler throws
        refuse(layer, "this is no module that torch.jit.save has written; make one in Python: torch.jit.script(module).save(file)");
    }
}

// LibTorch's one generator, from which modules of files draw: whoever holds this lock has it for himself.
std::unique_lock<std::mutex> holdGenerator()
{
    static std::mutex holders; // the generator's own is locked for each draw alone
    return std::unique_lock(holders);
}

Tensor generatorState()
{
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard drawing(generator.mutex());
    return generator.get_state();
}

// Without {fmt}, of which LibTorch's headers bring another one.
std::string shapeText(at::IntArrayRef shape)
{
    std::string text;
    for (const std::int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return "[" + text + "]";
}

} // namespace

struct ScriptedModule::Loaded {
    torch::jit::Module module;
    std::vector<Slot> slots;
    std::vector<Tensor> parameters;
    std::vector<std::string> names; // of the parameters
    std::string file;
    bool takesTokens = false;
    bool draws = false; // at random, as its trial showed
    at::ScalarType type = at::kFloat; // of its floats, once it is taken

    [[nodiscard]] Tensor forward(const Tensor& x)
    {
        // The interpreter alone, each operation with autograd's own backward: an optimized graph would compute the first passes otherwise
        // than later ones, and the reference otherwise than the pipeline.
        torch::jit::setGraphExecutorOptimize(false);
        return module.forward({x}).toTensor();
    }

    // In a run. The interpreter's own messages have many lines and no name of a file.
    [[nodiscard]] Tensor pass(const Tensor& x)
    {
        try {
            return forward(x);
        } catch (const std::exception& error) {
            const std::string said = firstLine(error);
            const bool table = takesTokens && said.find("out of range") != std::string::npos;
            throw std::runtime_error(file + ": " + said + (table ? ". Its table may have fewer entries than the plan's vocabulary" : ""));
        }
    }

    // Leaves of their own for all parameters that ask for gradients.
    void takeParameters(const engine::TorchScript& layer)
    {
        const at::NoGradGuard noGrad;
        std::map<const at::TensorImpl*, std::size_t> known;
        for (const auto& [path, each] : std::as_const(module).named_modules()) {
            torch::jit::Module owner = each;
            for (const auto& [name, value] : owner.named_parameters(/*recurse=*/false)) {
                if (!value.requires_grad()) continue;
                if (value.scalar_type() != at::kFloat)
                    refuse(layer, "its parameter " + name + " has values of type " + c10::toString(value.scalar_type()) +
                                      "; a model here is of float32: save it with module.float()");
                const auto [at, isNew] = known.emplace(value.unsafeGetTensorImpl(), parameters.size());
                if (isNew) {
                    parameters.push_back(trainable(value.detach().to(type, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous)));
                    names.push_back(path.empty() ? name : path + "." + name);
                }
                slots.push_back({owner, name, at->second});
            }
        }
        if (type != at::kFloat) castFloats();
        put(parameters);
    }

    // What is not trained: buffers and frozen parameters. LibTorch's own cast of a module takes whole numbers as well, which may be places
    // in a table.
    void castFloats() const
    {
        const auto cast = [this](const Tensor& value) {
            if (value.is_floating_point()) value.set_data(value.to(type));
        };
        for (const auto& [path, each] : module.named_modules()) {
            for (const auto& [name, value] : each.named_parameters(/*recurse=*/false)) cast(value);
            for (const auto& [name, value] : each.named_buffers(/*recurse=*/false)) cast(value);
        }
    }

    void put(const std::vector<Tensor>& values)
    {
        for (Slot& slot : slots) slot.owner.setattr(slot.name, values[slot.parameter]);
    }

    // One pass over two rows of zeros (a batch norm refuses one): whether it fits the plan, and which parameters have a part in it.
    void tryOut(const engine::TorchScript& layer)
    {
        const AllocationScope nobody({});
        std::vector<std::int64_t> shape{2};
        shape.insert(shape.end(), layer.in.begin(), layer.in.end());
        const std::string row = shapeText(at::IntArrayRef(shape).slice(1));
        Tensor x = at::zeros(shape, layer.vocabulary != 0 ? at::kLong : type);
        if (layer.vocabulary == 0) x.requires_grad_();
        std::vector<std::int64_t> expected{2};
        expected.insert(expected.end(), layer.out.begin(), layer.out.end());
        const at::AutoGradMode grad(true);
        Tensor y;
        try {
            const auto held = holdGenerator();
            const Tensor before = generatorState();
            y = forward(x);
            draws = !at::equal(before, generatorState());
        } catch (const std::exception& error) { // the interpreter throws types of its own
            const std::string ofType = type == at::kFloat ? "" : " in bfloat16, which run.precision bf16 makes of its floats; try precision fp32";
            refuse(layer, "it does not take rows of " + row + ", which the plan gives it as in" + ofType + ": " + firstLine(error));
        }
        if (y.sizes() != at::IntArrayRef(expected))
            refuse(layer, "from 2 rows of " + row + " it makes " + shapeText(y.sizes()) + ", but the plan says out " +
                              shapeText(at::IntArrayRef(expected).slice(1)) + "; let \"out\" be what it makes of one row");
        if (y.scalar_type() != type)
            refuse(layer, std::string("its output is of ") + c10::toString(y.scalar_type()) + ", and the run computes in " + c10::toString(type) +
                              "; let it give what it takes" + (type == at::kFloat ? "" : ", or take run.precision fp32"));
        if (y.requires_grad()) torch::autograd::Engine::get_default_engine().execute({torch::autograd::impl::gradient_edge(y)}, {at::zeros_like(y)},
                                                                                     /*keep_graph=*/false, /*create_graph=*/false,
                                                                                     /*accumulate_grad=*/true);
        dropUnused();
        if (parameters.empty()) refuse(layer, "nothing of it can be trained: no parameter that asks for gradients has a part in its output");
        std::int64_t count = 0;
        for (const Tensor& parameter : parameters) count += parameter.numel();
        if (count != layer.parameters)
            refuse(layer, "it trains " + std::to_string(count) + " parameters, but the plan says " + std::to_string(layer.parameters) +
                              "; write \"parameters\": " + std::to_string(count));
    }

    void moveTo(c10::Device device, const engine::TorchScript& layer)
    {
        if (draws)
            refuse(layer, "it draws at random, which on a GPU would be otherwise in each run; take the device cpu, or save it in its eval() mode "
                          "without dropout");
        module.to(device);
        for (Tensor& parameter : parameters) parameter = trainable(parameter.detach().to(device));
        put(parameters);
    }

    void dropUnused()
    {
        std::vector<Tensor> used;
        std::vector<std::string> usedNames;
        std::vector<std::size_t> place(parameters.size());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            place[i] = used.size();
            if (!parameters[i].grad().defined()) {
                parameters[i].requires_grad_(false);
                continue;
            }
            used.push_back(parameters[i]);
            usedNames.push_back(names[i]);
        }
        std::erase_if(slots, [&](const Slot& slot) { return !parameters[slot.parameter].requires_grad(); });
        for (Slot& slot : slots) slot.parameter = place[slot.parameter];
        parameters = std::move(used);
        names = std::move(usedNames);
        for (Tensor& parameter : parameters) parameter.mutable_grad() = Tensor();
    }
};

// Tried on the CPU, wherever it is to be.
ScriptedModule::ScriptedModule(const engine::TorchScript& layer, TensorKind kind)
    : loaded_(std::make_unique<Loaded>(Loaded{load(layer), {}, {}, {}, layer.file, layer.vocabulary != 0, false, scalarType(kind.precision)}))
{
    loaded_->takeParameters(layer);
    loaded_->tryOut(layer);
    if (!kind.device.is_cpu()) loaded_->moveTo(kind.device, layer);
}

ScriptedModule::~ScriptedModule() = default;

const std::vector<Tensor>& ScriptedModule::parameters() const { return loaded_->parameters; }
const std::vector<std::string>& ScriptedModule::names() const { return loaded_->names; }
void ScriptedModule::setParameters(const std::vector<Tensor>& parameters) { loaded_->put(parameters); }

Tensor ScriptedModule::forward(const Tensor& x, const std::optional<ScriptDraw>& draw)
{
    if (!loaded_->draws || !draw) return loaded_->pass(x);
    if (!draw->whole)
        throw std::runtime_error("a TorchScript module draws at random, and for a half of a micro-batch it would draw otherwise than for the whole; "
                                 "take concatenation direct or doubling, or save the module in its eval() mode without dropout");
    const auto held = holdGenerator();
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    {
        const std::lock_guard drawing(generator.mutex());
        generator.set_current_seed(draw->seed);
    }
    return loaded_->pass(x);
}

} // namespace stagecraft::runtime
