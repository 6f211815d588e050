# SPDX-License-Identifier: Apache-2.0
"""PyTorch judges a run in bfloat16: the same model in plain Python, with sums of gradients and a main copy in float32 as Megatron-LM has
them, and PyTorch's own optimizers on the main copy. To the bit.

usage: torch_precision.py BF16_STEPS
"""

import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from torch.nn import functional

MICROBATCHES, STEPS, BLOCKS, HEADS, DIM, RATE = 4, 3, 2, 2, 32, 0.01

# the fused kernels, which the engine takes; the plain ones round otherwise
OPTIMIZERS = {
    "sgd": lambda main: torch.optim.SGD(main, RATE, fused=True),
    "momentum": lambda main: torch.optim.SGD(main, RATE, momentum=0.9, fused=True),
    "adam": lambda main: torch.optim.Adam(main, RATE, fused=True),
    "adamw": lambda main: torch.optim.AdamW(main, RATE, fused=True),
}


def logits(w, tokens):
    x = functional.embedding(tokens, w["layers.0.tokens"]) + functional.embedding(torch.arange(tokens.shape[1]).expand_as(tokens), w["layers.0.positions"])
    for block in range(1, 1 + BLOCKS):

        def linear(name, value, block=block):
            return functional.linear(value, w[f"layers.{block}.{name}.weight"], w[f"layers.{block}.{name}.bias"])

        def norm(name, value, block=block):
            return functional.layer_norm(value, (DIM,), w[f"layers.{block}.{name}.weight"], w[f"layers.{block}.{name}.bias"])

        parts = [part.unflatten(-1, (HEADS, DIM // HEADS)).transpose(1, 2) for part in linear("qkv", norm("norm1", x)).split(DIM, -1)]
        attended = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + linear("projection", attended.transpose(1, 2).flatten(2))
        x = x + linear("down", functional.gelu(linear("up", norm("norm2", x))))
    last = 1 + BLOCKS
    x = functional.layer_norm(x, (DIM,), w[f"layers.{last}.norm.weight"], w[f"layers.{last}.norm.bias"])
    return functional.linear(x, w[f"layers.{last}.linear.weight"], w[f"layers.{last}.linear.bias"])


def judge(folder, word):
    begin = load_file(folder / "begin.safetensors")
    weights = {name: value.requires_grad_() for name, value in begin.items() if name.startswith("layers.")}
    main = {name: value.detach().float() for name, value in weights.items()}
    optimizer = OPTIMIZERS[word](list(main.values()))
    for step in range(1, STEPS + 1):
        for copy in main.values():
            copy.grad = torch.zeros_like(copy)
        for i in range(MICROBATCHES):
            given = logits(weights, begin[f"inputs.{i}"])
            loss = functional.cross_entropy(given.float().flatten(0, -2), begin[f"targets.{i}"].flatten())
            (loss / MICROBATCHES).backward()
            for name, weight in weights.items():
                assert weight.grad.dtype == torch.bfloat16
                main[name].grad += weight.grad.float()
                weight.grad = None
        optimizer.step()
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(main[name])

        found = folder / word / f"step-{step:07}"
        theirs = load_file(found / "model.safetensors")
        kept = load_file(found / "optimizer.safetensors")
        assert theirs.keys() == weights.keys()
        for name, weight in weights.items():
            where = f"{word}, step {step}, {name}"
            assert theirs[name].dtype == torch.bfloat16, where
            assert torch.equal(kept[f"{name}.fp32_param"], main[name]), (where, (kept[f"{name}.fp32_param"] - main[name]).abs().max())
            assert torch.equal(theirs[name], weight), where
            for what, state in optimizer.state[main[name]].items():
                if state is not None:
                    assert torch.equal(kept[f"{name}.{what}"], state), (where, what)


torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([sys.argv[1], scratch], check=True)
    for optimizer_word in OPTIMIZERS:
        judge(pathlib.Path(scratch), optimizer_word)
print("PyTorch has the same bits")
