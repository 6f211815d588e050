# SPDX-License-Identifier: Apache-2.0
"""Writes the stages beside it: python make.py (PyTorch 2.11). What the tests expect of them is computed here as well."""
import pathlib

import torch
from torch import nn


class First(nn.Module):
    """A matrix that is used twice, a parameter that takes no part, and a loop over a list of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(6, 8)
        self.shared = nn.Linear(8, 8, bias=False)
        self.scales = nn.ParameterList([nn.Parameter(torch.full((8,), 0.5)), nn.Parameter(torch.full((8,), 1.5))])
        self.unused = nn.Parameter(torch.zeros(3))
        self.register_buffer("shift", torch.linspace(-1, 1, 8))

    def forward(self, x):
        y = torch.tanh(self.up(x)) + self.shift
        for scale in self.scales:
            y = torch.relu(self.shared(y)) * scale + y
        return y


class Second(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.down = nn.Linear(8, 4)

    def forward(self, x):
        return self.down(self.norm(x))


class Dropping(nn.Module):
    """Draws at random in training."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(6, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.tanh(self.up(x)))


torch.manual_seed(11)
here = pathlib.Path(__file__).parent
first, second = First(), Second()
torch.jit.script(first).save(str(here / "stage_0.pt"))
torch.jit.script(second).save(str(here / "stage_1.pt"))
torch.jit.script(Dropping()).save(str(here / "stage_2.pt"))

x = torch.linspace(-2, 2, 12).reshape(2, 6)
y = second(first(x))
(y * y).sum().backward()
print("parameters:", sum(p.numel() for p in first.parameters() if p.grad is not None), sum(p.numel() for p in second.parameters()))
print("output:", [round(v, 6) for v in y.flatten().tolist()])
print("gradient of shared, sum of absolute values:", round(first.shared.weight.grad.abs().sum().item(), 5))
