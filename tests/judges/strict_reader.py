# SPDX-License-Identifier: Apache-2.0
"""Reads an exported Chrome trace as strictly as its strictest readers taken together, and adds up its times again.

usage: strict_reader.py FOLDER    (with merged.json, ranks/*.json.gz and figures.json, as judge_input writes them)

What must hold stands in docs/file-formats.md. Times are taken as decimals, never as floating-point numbers.
"""

import gzip
import json
import pathlib
import re
import sys
from collections import defaultdict
from decimal import Decimal

PHASES = {"X", "M", "C", "s", "f", "i"}
COMPUTE = {"F", "B", "I", "W", "OVERLAP_F_B", "RECOMPUTE", "OPTIMIZER"}
LARGEST_ID = 2**32 - 1


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key occurs twice: {keys}"
    return dict(pairs)


def read(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    text = data.decode("utf-8", errors="strict")
    return json.loads(text, parse_float=Decimal, parse_constant=refuse_constant, object_pairs_hook=unique_keys)


def nanoseconds(value):
    assert isinstance(value, Decimal), f"{value!r} has no three decimals"
    assert value.as_tuple().exponent == -3, f"{value} has no three decimals"
    return int(value.scaleb(3))


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


class Reader:
    def __init__(self, document):
        assert document["displayTimeUnit"] == "ns"
        assert whole(document["baseTimeNanoseconds"])
        self.base = document["baseTimeNanoseconds"]
        self.other = document["otherData"]
        self.events = document["traceEvents"]
        self.process_names, self.process_order = {}, {}
        self.thread_names, self.thread_order = {}, {}
        self.slices = defaultdict(list)  # by (pid, tid): (begin, end, event)
        self.flows = defaultdict(list)  # by (cat, id)
        self.counters = defaultdict(list)  # by pid

    def check(self):
        for event in self.events:
            assert event["ph"] in PHASES, event
            assert whole(event["pid"]) and 0 < event["pid"] <= LARGEST_ID, event
            if "tid" in event:
                assert whole(event["tid"]) and 0 < event["tid"] <= LARGEST_ID, event
            getattr(self, "take_" + event["ph"])(event)
        self.check_rows()
        self.check_order()
        self.check_nesting()
        self.check_flows()
        self.check_counters()

    def take_M(self, event):
        assert "ts" not in event, "names with a time can get lost"
        what, kind = event["name"].split("_", 1)
        names, order = (
            (self.process_names, self.process_order) if what == "process" else (self.thread_names, self.thread_order)
        )
        row = event["pid"] if what == "process" else (event["pid"], event["tid"])
        target, value = (names, event["args"]["name"]) if kind == "name" else (order, event["args"]["sort_index"])
        assert isinstance(value, str) and value if kind == "name" else whole(value), event
        assert row not in target, f"named twice: {event}"
        target[row] = value

    def take_X(self, event):
        begin, duration = nanoseconds(event["ts"]), nanoseconds(event["dur"])
        assert begin >= 0 and duration >= 0, event
        assert isinstance(event["name"], str) and event["name"], event
        assert isinstance(event["cat"], str) and event["cat"] and "," not in event["cat"], event
        self.slices[event["pid"], event["tid"]].append((begin, begin + duration, event))
        args = event["args"]
        if "kind" in args and args["kind"] != "OVERLAP_F_B":
            assert event["name"] == f"{args['stage']}{args['kind']}{args.get('microbatch', '')}", event

    def take_s(self, event):
        self.flows[event["cat"], event["id"]].append(event)

    def take_f(self, event):
        assert event["bp"] == "e", "the end would bind to the next slice"
        self.flows[event["cat"], event["id"]].append(event)

    def take_C(self, event):
        assert event["args"] and all(whole(value) and value >= 0 for value in event["args"].values()), event
        self.counters[event["pid"]].append((nanoseconds(event["ts"]), event["args"]))

    def take_i(self, event):
        assert nanoseconds(event["ts"]) >= 0 and event["s"] in {"g", "p", "t"}, event

    def check_rows(self):
        threads = defaultdict(set)
        for pid, tid in self.slices:
            assert pid in self.process_names and pid in self.process_order, f"process {pid} has no name or place"
            assert (pid, tid) in self.thread_names and (pid, tid) in self.thread_order, f"thread {tid} has no name or place"
            threads[tid].add(pid)
        for tid, pids in threads.items():
            assert len(pids) == 1, f"thread number {tid} is used in processes {pids}"
            assert tid not in self.process_names, f"{tid} is a process and a thread"

    def check_order(self):
        ranks = []
        for pid in sorted(self.process_order, key=self.process_order.get):
            match = re.fullmatch(r"rank (\d+)( · stages? \d+(,\d+)*)?", self.process_names[pid])
            if match:
                ranks.append(int(match[1]))
                assert pid == ranks[-1] + 1
        assert ranks == sorted(ranks), f"viewers would show the ranks as {ranks}"

    def check_nesting(self):
        for row, slices in self.slices.items():
            open_ends = []
            for begin, end, event in sorted(slices, key=lambda s: (s[0], -s[1])):
                while open_ends and open_ends[-1] <= begin:
                    open_ends.pop()
                assert not open_ends or end <= open_ends[-1], f"row {row} has partial overlap at {event}"
                open_ends.append(end)

    def inside(self, event):
        time = nanoseconds(event["ts"])
        return any(b <= time < e or b == time == e for b, e, _ in self.slices[event["pid"], event["tid"]])

    def check_flows(self):
        for key, ends in self.flows.items():
            assert sorted(e["ph"] for e in ends) == ["f", "s"], f"flow {key} does not have one start and one end"
            start, end = sorted(ends, key=lambda e: e["ph"], reverse=True)
            assert start["name"] == end["name"]
            assert nanoseconds(start["ts"]) <= nanoseconds(end["ts"]), f"flow {key} runs backwards"
            assert self.inside(start), f"flow {key} does not start inside a slice"
            assert self.inside(end), f"flow {key} does not end inside a slice"

    def check_counters(self):
        for pid, points in self.counters.items():
            times = [time for time, _ in points]
            assert times == sorted(times)
            assert len({tuple(args) for _, args in points}) == 1, "every event must have all series of its counter"

    def check_figures(self, figures, ranks):
        """Adds up each rank of each step again."""
        for step in figures["steps"]:
            for rank in step["per_rank"]:
                if rank["rank"] not in ranks:
                    continue
                slices = [
                    (begin, end)
                    for (pid, _), row in self.slices.items()
                    for begin, end, event in row
                    if pid == rank["rank"] + 1
                    and event["args"].get("kind") in COMPUTE
                    and event["args"]["step"] == step["step"]
                ]
                assert sum(end - begin for begin, end in slices) == rank["busy_ns"], rank
                assert self.base + min(begin for begin, _ in slices) == rank["first_start_ns"], rank
                assert self.base + max(end for _, end in slices) == rank["last_end_ns"], rank
                if len(figures["steps"]) == 1 and self.counters:
                    window = [sum(args.values()) for time, args in self.counters[rank["rank"] + 1]
                              if rank["first_start_ns"] <= self.base + time < rank["last_end_ns"]]
                    assert max(window, default=0) <= rank["peak_memory_bytes"], rank


def main():
    folder = pathlib.Path(sys.argv[1])
    figures = json.loads((folder / "figures.json").read_text())
    every_rank = {rank["rank"] for step in figures["steps"] for rank in step["per_rank"]}

    merged = Reader(read(folder / "merged.json"))
    merged.check()
    merged.check_figures(figures, every_rank)
    slices = sum(1 for row in merged.slices.values() for _, _, event in row if event["cat"] != "step")
    assert slices == figures["slices"], f"{slices} slices instead of {figures['slices']}"
    assert len(merged.flows) == figures["edges"], f"{len(merged.flows)} arrows instead of {figures['edges']}"

    seen = set()
    for path in sorted((folder / "ranks").glob("*.json.gz")):
        document = read(path)
        one = Reader(document)
        one.check()
        rank = document["distributedInfo"]["rank"]
        assert path.name == f"rank{rank}.json.gz"
        one.check_figures(figures, {rank})
        seen.add(rank)
    assert every_rank <= seen, f"ranks {every_rank - seen} have no file"
    print(f"{slices} slices and {len(merged.flows)} arrows are right to the nanosecond")


if __name__ == "__main__":
    main()
