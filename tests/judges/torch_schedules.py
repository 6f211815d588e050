# SPDX-License-Identifier: Apache-2.0
"""PyTorch judges our schedules: its own, action by action; its reading and checking of our files; its lowering.

usage: torch_schedules.py SCHEDULE_GRID [arguments of unittest]
"""

import contextlib
import csv
import io
import itertools
import logging
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.schedules import _Action

GRID_PROGRAM = None

# by PyTorch's word
OURS = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "Interleaved1F1B": "interleaved",
    "LoopedBFS": "looped-bfs",
    "InterleavedZeroBubble": "interleaved-zb",
    "ZBVZeroBubble": "zb-v",
    "DualPipeV": "dualpipe-v",
}
SINGLE = ["GPipe", "1F1B"]
LOOPED = ["Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble"]
IN_A_V = ["ZBVZeroBubble", "DualPipeV"]

# (v, m, p) of PyTorch's test_schedule.py, those of its flexible microbatch tests last
OF_ITS_TESTS = [
    (2, 2, 2), (2, 4, 4), (2, 8, 2), (2, 8, 4), (2, 8, 8), (4, 4, 4), (4, 8, 4), (4, 8, 8), (4, 16, 4), (4, 32, 4), (4, 64, 4),
    (4, 16, 16), (4, 32, 32), (4, 128, 64), (3, 2, 2), (3, 8, 2), (3, 12, 4), (4, 6, 3), (4, 10, 5), (2, 3, 4), (2, 4, 4), (2, 10, 4), (2, 15, 4),
]  # fmt: skip

# Families that PyTorch does not have, as custom schedules: (our word, p, v, m). Not those of two directions or with slices, which
# its text form cannot say, and not forward-only, which its check refuses.
CUSTOM = [
    (name, p, v, m)
    for name, v in [
        ("naive", 1), ("gpipe", 1), ("gpipe-lifo", 1), ("1f1b", 1), ("eager-1f1b", 1), ("zb-h1", 1), ("zb-h2", 1), ("zb-auto", 1),
        ("interleaved", 2), ("interleaved", 3), ("looped-bfs", 3), ("looped-bfs", 5), ("interleaved", 4), ("interleaved-zb", 2), ("zb-v", 2), ("zb-v-auto", 2),
        ("v-half", 2), ("v-min", 2), ("1f1b-v", 2), ("dualpipe-v", 2), ("hanayo", 2), ("hanayo", 4),
    ]
    for p, m in [(2, 4), (3, 6), (4, 8), (4, 16)]
]  # fmt: skip


def stages(p, v):
    """What PyTorch's schedules ask of a pipeline stage without running it."""
    stage = types.SimpleNamespace(group_rank=0, group_size=p, num_stages=p * v, submod=None, stage_index=0, is_last=False)
    return [stage] * v


def theirs(name, p, v, m):
    """PyTorch's order {rank: [action]}, or None where it refuses."""
    kind = schedules.get_schedule_class(name)
    try:
        made = kind(stages(p, v)[0] if name in SINGLE else stages(p, v), m)
    except ValueError:
        return None
    return {rank: [a for a in row if a is not None and a.computation_type != schedules.REDUCE_GRAD] for rank, row in made.pipeline_order.items()}


def mended_picture(order, p):
    """The last rank's forwards of Schedule1F1B: its picture counts them from 1 (there the counter of the warm-up, which this rank
    has not, is raised before its first use); its runtime counts from 0."""
    order[p - 1] = [a._replace(microbatch_index=a.microbatch_index - 1) if a.computation_type == schedules.F else a for a in order[p - 1]]
    return order


def our_schedules(cases, folder):
    """[(order or None, lowered or None)] of the cases (our word, p, v, m); the files, which are numbered, stay in the folder."""
    lines = "".join(f"{name} {p} {v} {m}\n" for name, p, v, m in cases)
    subprocess.run([GRID_PROGRAM, folder], input=lines, text=True, check=True)
    return [(read(f"{folder}/{k}.csv"), read(f"{folder}/{k}.comms.csv")) for k in range(len(cases))]


def with_resharding_sorted(order):
    """Weights that are given up at one moment in the order of their stages; in PyTorch's that is the order of a Python set. Transfers may
    stand between them."""
    result = {}
    for rank, row in order.items():
        row, group = list(row), []
        for at, action in enumerate([*row, None]):
            if action is not None and action.computation_type == schedules.RESHARD:
                group.append(at)
            elif action is None or action.is_compute_op or action.computation_type in (schedules.UNSHARD, schedules.REDUCE_GRAD):
                for place, given_up in zip(group, sorted((row[i] for i in group), key=lambda a: a.stage_index)):
                    row[place] = given_up
                group = []
        result[rank] = row
    return result


def read(path):
    if not pathlib.Path(path).exists():
        return None
    with open(path, newline="") as file:
        return {rank: [_Action.from_str(cell) for cell in row if cell] for rank, row in enumerate(csv.reader(file))}


def lowered_by_torch(order, rank_of, stage_count):
    return schedules._add_send_recv({rank: list(row) for rank, row in order.items()}, lambda s: rank_of[s], stage_count)


def rank_of_stages(order):
    """{stage: rank}"""
    leaves = [(rank, leaf) for rank, row in order.items() for a in row for leaf in (a.sub_actions or (a,))]
    return {leaf.stage_index: rank for rank, leaf in leaves}


def texts(order):
    return [",".join(map(str, row)) for _, row in sorted(order.items())]


class TorchJudge(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compare(self, cases):
        """cases: (PyTorch's name, p, v, m); the number of them that PyTorch makes."""
        ours = our_schedules([(OURS[name], p, v, m) for name, p, v, m in cases], self.folder)
        made = 0
        for (name, p, v, m), (order, lowered) in zip(cases, ours):
            with self.subTest(schedule=name, p=p, v=v, m=m):
                expected = theirs(name, p, v, m)
                if expected is None:
                    # 1F1B with fewer micro-batches than stages is ours alone
                    self.assertTrue(order is None or name == "1F1B", "PyTorch refuses it")
                    continue
                if name == "1F1B":
                    expected = mended_picture(expected, p)
                self.assertIsNotNone(order, "refused, and PyTorch makes it")
                self.assertEqual(texts(order), texts(expected))
                self.assertEqual(texts(lowered), texts(lowered_by_torch(expected, rank_of_stages(expected), p * v)))
                made += 1
        return made

    def test_schedules_of_one_chunk(self):
        shapes = [(p, 1, m) for p in range(1, 9) for m in range(1, 14)] + [(16, 1, 32), (5, 1, 64)]
        self.assertGreater(self.compare([(name, *shape) for name in SINGLE for shape in shapes]), 150)

    def test_schedules_of_looped_chunks(self):
        shapes = [(p, v, m) for p in range(1, 6) for v in (2, 3, 4) for m in range(1, 16)] + [(p, v, m) for v, m, p in OF_ITS_TESTS]
        self.assertGreater(self.compare([(name, *shape) for name in LOOPED for shape in shapes]), 500)

    def test_schedules_in_a_v(self):
        shapes = [(p, 2, m) for p in range(1, 7) for m in range(1, 16)] + [(8, 2, 16), (8, 2, 32), (4, 2, 64)]
        self.assertGreater(self.compare([(name, *shape) for name in IN_A_V for shape in shapes]), 100)

    def test_reads_our_files_and_runs_them_dry(self):
        ours = our_schedules(CUSTOM, self.folder)
        for k, ((name, p, v, m), (order, lowered)) in enumerate(zip(CUSTOM, ours)):
            with self.subTest(schedule=name, p=p, v=v, m=m):
                self.assertIsNotNone(order)
                file = f"{self.folder}/{k}"
                reader = schedules._PipelineScheduleRuntime(stages(p, v), m)
                reader._load_csv(file + ".csv", format="compute_only")
                self.assertEqual(texts(reader.pipeline_order), texts(order))
                # it adds UNSHARD, RESHARD and REDUCE_GRAD by itself
                expected = with_resharding_sorted(reader.pipeline_order_with_comms)
                self.assertEqual(texts(read(f"{file}.sharded.csv")), texts(expected))
                reader._load_csv(f"{file}.sharded.csv", format="compute_comms")
                self.assertEqual(texts(with_resharding_sorted(reader.pipeline_order_with_comms)), texts(expected))
                reader._load_csv(file + ".comms.csv", format="compute_comms")
                self.assertEqual(texts(reader.pipeline_order_with_comms), texts(lowered))
                if not any(a.sub_actions for a in itertools.chain(*order.values())):  # its dry run knows no overlapped pairs
                    self.assertTrue(reader._simulate())
                self.assertEqual(texts(lowered), texts(lowered_by_torch(order, reader.stage_index_to_group_rank, p * v)))

    def test_finds_what_is_wrong(self):
        """Each of the comparisons above can fail."""
        case = ("interleaved", 4, 2, 8)
        [(order, lowered)] = our_schedules([case], self.folder)
        swapped = {rank: list(row) for rank, row in order.items()}
        swapped[2][0], swapped[2][1] = swapped[2][1], swapped[2][0]
        self.assertNotEqual(texts(swapped), texts(theirs("Interleaved1F1B", 4, 2, 8)))
        self.assertEqual(texts(order), texts(theirs("Interleaved1F1B", 4, 2, 8)))
        self.assertNotEqual(texts(order), texts(theirs("InterleavedZeroBubble", 4, 2, 8)))

        def load(rows, form):
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                file.write("\n".join(rows) + "\n")
                file.flush()
                reader = schedules._PipelineScheduleRuntime(stages(4, 2), 8)
                reader._load_csv(file.name, format=form)
                return reader

        rows = texts(order)
        load(rows, "compute_only")
        with self.assertRaisesRegex(AssertionError, "Full Backward for stage 3, microbatch 0 without"):
            load([*rows[:3], "3B0," + rows[3].replace("3B0,", "")], "compute_only")
        with self.assertRaisesRegex(AssertionError, "is assigned to both"):
            load([rows[0] + ",5F0", *rows[1:]], "compute_only")
        late = texts(lowered)
        late[1] = late[1].replace("1RECV_F0,", "", 1) + ",1RECV_F0"
        # it finds no way on, and prints how far it came; the print itself fails where ranks came differently far
        with self.assertRaises((ValueError, IndexError)), contextlib.redirect_stdout(io.StringIO()):
            load(late, "compute_comms")._simulate()


if __name__ == "__main__":
    GRID_PROGRAM = sys.argv.pop(1)
    logging.disable(logging.CRITICAL)  # each schedule is logged otherwise
    unittest.main()
