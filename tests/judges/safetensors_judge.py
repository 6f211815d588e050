# SPDX-License-Identifier: Apache-2.0
"""safetensors_judge.py CLI

Has the safetensors library itself read a checkpoint of a live run, and the program go on from files that the library wrote.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

cli = sys.argv[1]


def run(*options):
    command = [cli, "run", "hello", "--mode", "emulated", "--json", *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    straight = run("--steps", "4", "--checkpoint", str(folder / "a"), "--checkpoint-every", "2")
    step = folder / "a" / "step-0000002"
    description = json.loads((step / "checkpoint.json").read_text())
    assert description["stagecraft_checkpoint"] == 1 and description["step"] == 2, description

    # hello is 1024 -> 2048 -> 1024, trained with AdamW
    shapes = {"layers.0.weight": (2048, 1024), "layers.0.bias": (2048,), "layers.1.weight": (1024, 2048), "layers.1.bias": (1024,)}
    weights = load_file(step / "model.safetensors")
    assert {name: w.shape for name, w in weights.items()} == shapes, weights.keys()
    assert all(w.dtype == numpy.float32 and numpy.isfinite(w).all() and w.any() for w in weights.values())
    state = load_file(step / "optimizer.safetensors")
    for name, shape in shapes.items():
        assert state[f"{name}.exp_avg"].shape == shape and state[f"{name}.exp_avg_sq"].shape == shape
        assert (state[f"{name}.exp_avg_sq"] >= 0).all()
        assert state[f"{name}.step"].shape == () and state[f"{name}.step"] == 2
    assert len(state) == 3 * len(shapes), state.keys()
    with safe_open(step / "model.safetensors", framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}

    # written again by the library, with metadata of its own: what goes on from there is the same to the bit
    (folder / "b").mkdir()
    (folder / "b" / "checkpoint.json").write_text(json.dumps(description))
    save_file(weights, folder / "b" / "model.safetensors", metadata={"by": "Python"})
    save_file(state, folder / "b" / "optimizer.safetensors")
    again = run("--steps", "4", "--resume", str(folder / "b"), "--checkpoint", str(folder / "c"))
    assert again["loss"] == straight["loss"][2:], (again["loss"], straight["loss"])
    assert again["gradient_check"] == "bitwise", again["gradient_check"]
    for kind in ("model", "optimizer"):
        first = load_file(folder / "a" / "step-0000004" / f"{kind}.safetensors")
        second = load_file(folder / "c" / "step-0000004" / f"{kind}.safetensors")
        assert first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
print("safetensors reads our checkpoints, and we read its files")
