#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step time of the live engine beside torch.distributed.pipelining, on the same model, in the same session.

    python3 bench/live_against_peer.py --live build/release/bin/live_step --peer-python .venv-peer/bin/python

The peer needs a Python with torch and its dependencies; the two programs run in turn, `--rounds` times each, and the
medians of the rounds are compared. `--prefix` is put before both commands: "chrt -f 10" keeps other work of the machine
out of the way.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess

HERE = pathlib.Path(__file__).parent
# preset, model of the peer script, micro-batches, steps
CASES = [("hello", "mlp", 4, 60), ("gpt-small", "gpt", 8, 12)]


def last_json(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", default="build/release/bin/live_step")
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    prefix = shlex.split(args.prefix)

    for preset, model, microbatches, steps in CASES:
        ours, peers, efficiencies, delays = [], [], [], []
        for _ in range(args.rounds):
            run = last_json(prefix + [args.live, preset, str(steps)])
            ours.append(run["run"]["result"]["step_ns"] / 1e6)
            efficiencies.append(run["run"]["result"]["efficiency"])
            delays.append(run["delay_max_ns"] / 1e6)
            peer = last_json(prefix + [args.peer_python, str(HERE / "peer_torch_pipelining.py"), "--model", model,
                                       "--microbatches", str(microbatches), "--steps", str(steps)])
            peers.append(peer["step_s"] * 1e3)
        print(json.dumps({
            "preset": preset,
            "step_ms": round(statistics.median(ours), 2),
            "peer_step_ms": round(statistics.median(peers), 2),
            "faster_by": round(statistics.median(peers) / statistics.median(ours), 3),
            "efficiency": round(statistics.median(efficiencies), 3),
            "largest_event_delay_ms": round(max(delays), 1),
            "rounds": {"step_ms": [round(v, 2) for v in ours], "peer_step_ms": [round(v, 2) for v in peers],
                       "efficiency": [round(v, 3) for v in efficiencies]},
        }))


if __name__ == "__main__":
    main()
