# SPDX-License-Identifier: Apache-2.0
"""Opens an export with HolisticTraceAnalysis and holds its temporal breakdown against our figures.

usage: hta_reader.py FOLDER    (with merged.json, ranks/*.json.gz and figures.json, as judge_input writes them)
"""

import json
import os
import pathlib
import sys

# Without this it rounds every time to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis  # noqa: E402


def expect(what, seen, wanted):
    assert seen == wanted, f"{what}: HolisticTraceAnalysis says {seen} ns, we say {wanted} ns"


def breakdown_ns(**source):
    """Its temporal breakdown in whole nanoseconds; the names of its columns go on saying us.

    It sums microseconds in floating point, and asserts that a part is no longer than the whole: on a device without a gap the
    sums may differ in their last bit. What it has read is therefore turned into whole numbers, whose sums are exact.
    """
    analysis = TraceAnalysis(**source)
    for frame in analysis.t.traces.values():
        end = (frame["ts"] + frame["dur"]).mul(1000).round()
        frame["ts"] = frame["ts"].mul(1000).round()
        frame["dur"] = end - frame["ts"]
    return analysis.get_temporal_breakdown(visualize=False)


def check_ranks(folder, figures):
    """One file a rank: what it calls compute time is our busy time, and kernel time the span of the rank."""
    breakdown = breakdown_ns(trace_dir=str(folder))
    rows = {int(row["rank"]): row for _, row in breakdown.iterrows()}
    for rank in {r["rank"] for step in figures["steps"] for r in step["per_rank"]}:
        ours = [r for step in figures["steps"] for r in step["per_rank"] if r["rank"] == rank]
        busy = sum(r["busy_ns"] for r in ours)
        span = max(r["last_end_ns"] for r in ours) - min(r["first_start_ns"] for r in ours)
        row = rows[rank]
        expect(f"compute time of rank {rank}", row["compute_time(us)"], busy)
        expect(f"span of rank {rank}", row["kernel_time(us)"], span)
        expect(f"idle time of rank {rank}", row["idle_time(us)"], span - busy)
        expect(f"other time of rank {rank}", row["non_compute_time(us)"], 0)
    return len(rows)


def check_merged(path, figures):
    """All ranks in one file are one device to it: its kernel time is the makespan."""
    breakdown = breakdown_ns(trace_files={0: str(path)})
    ours = [r for step in figures["steps"] for r in step["per_rank"]]
    span = max(r["last_end_ns"] for r in ours) - min(r["first_start_ns"] for r in ours)
    expect("makespan", breakdown.iloc[0]["kernel_time(us)"], span)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    figures = json.loads((folder / "figures.json").read_text())
    ranks = check_ranks(folder / "ranks", figures)
    check_merged(folder / "merged.json", figures)
    print(f"HolisticTraceAnalysis agrees on {ranks} ranks")


if __name__ == "__main__":
    main()
