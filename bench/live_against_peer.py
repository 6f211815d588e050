#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step time of the live engine beside torch.distributed.pipelining, on the same model, in the same session.

    python3 bench/live_against_peer.py --live build/release/bin/live_step

The peer runs in the environment of the tests (./test makes it), as the PyTorch that judges schedules does; `--peer` names another
command that takes the script and its arguments. The two programs run in turn, `--rounds` times each, and the medians of the
rounds are compared. `--prefix` is put before both commands: "chrt -f 10" keeps other work of the machine out of the way.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess

HERE = pathlib.Path(__file__).parent
# preset, model of the peer script, our schedule, the peer's, micro-batches, chunks, steps
CASES = [("hello", "mlp", schedule, schedule, m, 1, 480 // m) for schedule in ("gpipe", "1f1b") for m in (8, 32)]
CASES += [("gpt-small", "gpt", ours, peers, m, chunks, 80 // m)
          for ours, peers, chunks in (("gpipe", "gpipe", 1), ("1f1b", "1f1b", 1), ("interleaved", "interleaved", 2),
                                      ("interleaved-zb", "zb", 2)) for m in (8, 32)]


def last_json(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", default="build/release/bin/live_step")
    parser.add_argument("--peer", help="the command in place of tests/judges/torch_judge.sh with the tests' environment")
    parser.add_argument("--only", default="", help="cases whose preset and schedule contain this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    prefix = shlex.split(args.prefix)

    root = HERE.parent
    site_packages = next((root / ".venv" / "lib").glob("python3*/site-packages"), "")
    script = str(HERE / "peer_torch_pipelining.py")
    if args.peer:
        peer_command = shlex.split(args.peer) + [script]
    else:
        peer_command = [str(root / "tests/judges/torch_judge.sh"), script, str(root / ".venv-test"), str(site_packages)]

    for preset, model, schedule, peer_schedule, microbatches, chunks, steps in CASES:
        if args.only not in f"{preset} {schedule} m={microbatches}":
            continue
        ours, peers, efficiencies, delays = [], [], [], []
        for _ in range(args.rounds):
            run = last_json(prefix + [args.live, preset, str(steps), schedule, str(microbatches), str(chunks)])
            ours.append(run["run"]["result"]["step_ns"] / 1e6)
            efficiencies.append(run["run"]["result"]["efficiency"])
            delays.append(run["delay_max_ns"] / 1e6)
            peer = last_json(prefix + peer_command + ["--model", model, "--schedule", peer_schedule,
                                                      "--microbatches", str(microbatches), "--steps", str(steps)])
            peers.append(peer["step_s"] * 1e3)
        print(json.dumps({
            "preset": preset,
            "schedule": schedule,
            "microbatches": microbatches,
            "step_ms": round(statistics.median(ours), 2),
            "peer_step_ms": round(statistics.median(peers), 2),
            "faster_by": round(statistics.median(peers) / statistics.median(ours), 3),
            "efficiency": round(statistics.median(efficiencies), 3),
            "largest_event_delay_ms": round(max(delays), 1),
            "rounds": {"step_ms": [round(v, 2) for v in ours], "peer_step_ms": [round(v, 2) for v in peers],
                       "efficiency": [round(v, 3) for v in efficiencies]},
        }), flush=True)


if __name__ == "__main__":
    main()
