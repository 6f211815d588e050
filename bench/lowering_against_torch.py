# SPDX-License-Identifier: Apache-2.0
"""Adding transfers and executing the result: PyTorch's _add_send_recv and _simulate_comms_compute beside ours, in the same run.

usage: tests/judges/torch_judge.sh bench/lowering_against_torch.py .venv-test .venv/lib/python3*/site-packages build/release/bin/lowering_bench

Both begin with the same schedule, a list of actions in memory, and end with it executed. PyTorch's dry run gives every action a step;
ours (column simulate) gives it a time, keeps account of memory and writes the trace. Seconds are the shortest of several runs.
"""

import contextlib
import csv
import io
import subprocess
import sys
import tempfile
import time

from torch.distributed.pipelining import schedules

CASES = [
    ("gpipe", 8, 1, 64), ("1f1b", 8, 1, 64), ("1f1b", 16, 1, 256), ("interleaved", 8, 4, 64), ("looped-bfs", 8, 4, 64),
    ("interleaved-zb", 8, 2, 64), ("zb-v", 8, 2, 64),
]  # fmt: skip


def seconds_of(work):
    best, result = float("inf"), None
    for _ in range(3):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def torch_seconds(path):
    with open(path, newline="") as file:
        order = {rank: [schedules._Action.from_str(cell) for cell in row if cell] for rank, row in enumerate(csv.reader(file))}
    rank_of = {action.stage_index: rank for rank, row in order.items() for action in row}
    lower, lowered = seconds_of(lambda: schedules._add_send_recv({r: list(row) for r, row in order.items()}, rank_of.__getitem__, len(rank_of)))
    with contextlib.redirect_stdout(io.StringIO()):
        run, _ = seconds_of(lambda: schedules._simulate_comms_compute(lowered, rank_of.__getitem__, len(rank_of)))
    return sum(map(len, lowered.values())), lower, run


def main(program):
    print(f"{'schedule':30} {'actions':>8} | {'PyTorch: lower':>15} {'dry run':>9} {'actions/s':>10} | "
          f"{'ours: lower':>12} {'dry run':>9} {'simulate':>9} {'actions/s':>11} | ratio")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join("{} {} {} {}\n".format(*case) for case in CASES)
        ours = subprocess.run([program, folder], input=lines, text=True, check=True, capture_output=True).stdout.splitlines()
        for k, (case, line) in enumerate(zip(CASES, ours)):
            actions, lower, dry_run, simulate = (float(field) for field in line.split())
            their_actions, their_lower, their_run = torch_seconds(f"{folder}/{k}.csv")
            assert actions == their_actions, (case, actions, their_actions)
            theirs, own = actions / (their_lower + their_run), actions / (lower + simulate)
            name = "{} p={} v={} m={}".format(*case)
            print(f"{name:30} {actions:8.0f} | {their_lower * 1e3:8.1f} ms {their_run * 1e3:6.1f} ms {theirs:10,.0f} | "
                  f"{lower * 1e3:8.2f} ms {dry_run * 1e3:6.2f} ms {simulate * 1e3:6.2f} ms {own:11,.0f} | {own / theirs:.0f}x")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
