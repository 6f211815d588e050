#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_test.py [PROGRAMS]: tests/gpu/check with programs that only play theirs, and, where PROGRAMS is given, with the real ones."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

CHECK = pathlib.Path(__file__).resolve().parent / "check"
REAL = None

# What a run and a part say is told by files beside the program, named after the schedule or the part; else all is well.
CLI = """
    #!{python}
    import json, os, pathlib, sys, time
    here = pathlib.Path(sys.argv[0]).parent
    verb = sys.argv[1]
    if verb == "doctor":
        found = not (here / "no-gpu").exists()
        print(json.dumps({{"gpus": {{"found": found, "version": "the card" if found else None, "reason": None if found else "no driver"}}}}))
    elif verb == "list":
        print(json.dumps([{{"name": name, "min_chunks": 1}} for name in ("1f1b", "zb-h1", "bpipe", "odd")]))
    elif verb == "schedule":
        sys.exit("odd" in sys.argv and (here / "takes-no-odd").exists())
    elif verb == "run":
        if "PYTORCH_CUDA_ALLOC_CONF" in os.environ:
            sys.exit("the rank ran out of memory")
        name = sys.argv[sys.argv.index("--schedule") + 1]
        if "--trace" in sys.argv:
            seen = not (here / "no-kernels").exists()
            lanes = [{{"tid": 1, "kind": "compute"}}, {{"tid": 2, "kind": "stream"}}]
            trace = {{"otherData": {{"lanes": lanes, "notes": [] if seen else ["another profiler"], "lostEvents": 0}},
                     "traceEvents": [{{"ph": "X", "tid": tid}} for tid in ((1, 2, 2) if seen else (1,))]}}
            pathlib.Path(sys.argv[sys.argv.index("--trace") + 1]).write_text(json.dumps(trace))
        if (here / name).exists():
            exec((here / name).read_text())
        print(json.dumps({{"device": "cuda", "gradient_check": "tolerance", "gradient_max_abs_diff": 1e-7, "loss": [2.0, 1.5]}}))
"""
PROBE = """
    #!{python}
    import json, os, pathlib, signal, sys, time
    here = pathlib.Path(sys.argv[0]).parent
    part = here / sys.argv[1]
    if "--activities" in sys.argv:
        pathlib.Path(sys.argv[sys.argv.index("--activities") + 1]).write_text("records")
    if part.exists():
        exec(part.read_text())
    level = sys.argv[3] if sys.argv[1] == "overhead" else ""
    print(json.dumps({{"figures": {{"work, us": {{"host": 100, "events": 101, "kernels": 110}}.get(level, 150), "began": time.monotonic()}}, "problems": []}}))
"""


class Check(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.bin = pathlib.Path(self.temporary.name) / "bin"
        self.out = pathlib.Path(self.temporary.name) / "out"
        self.bin.mkdir()
        (self.bin / "stagecraft_cuda.so").touch()
        for name, text in (("stagecraft-cli", CLI), ("stagecraft-live", CLI), ("gpu_probe", PROBE)):
            (self.bin / name).write_text(textwrap.dedent(text).strip().format(python=sys.executable) + "\n")
            (self.bin / name).chmod(0o755)

    def plays(self, name, text):
        (self.bin / name).write_text(text)

    def check(self, *arguments, programs=None, **environment):
        return subprocess.run([sys.executable, CHECK, "--bin", programs or self.bin, "--out", self.out, *arguments], capture_output=True, text=True,
                              timeout=120, env={**os.environ, **environment})

    def parts(self):
        return {each["name"]: each for each in json.loads((self.out / "check.json").read_text())["parts"]}

    def test_passes_where_all_that_can_run_passes(self):
        self.plays("bpipe", "sys.exit('run.device: schedule bpipe offloads, and the engine does that on the CPU alone; take the device cpu')")
        self.plays("takes-no-odd", "")
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        parts = self.parts()
        self.assertEqual({each["result"] for name, each in parts.items() if "bpipe" not in name and "odd" not in name}, {"ok"})
        self.assertEqual(parts["gradients bpipe threads"]["result"], "could not")
        self.assertIn("Could not be done:\n  gradients bpipe threads: run.device: schedule bpipe offloads", done.stdout)
        self.assertIn("gradients odd: takes none of the numbers", done.stdout)
        self.assertRegex(done.stdout, r"gradients zb-h1 emulated +ok +gradients tolerance; off by 1e-07; loss 1.5")
        self.assertTrue((self.out / "marks-launching-calls.activities").exists())
        self.assertEqual(parts["traced run api"]["figures"]["kernels and copies"], 2)
        for level, more in (("events", 1.0), ("kernels", 10.0), ("api", 50.0)):
            self.assertAlmostEqual(parts[f"overhead {level}"]["figures"]["work, more %"], more)

    def test_what_is_about_times_runs_alone(self):
        self.check("--only", "latency *,marks *")
        began = {name: each["figures"]["began"] for name, each in self.parts().items()}
        alone = [time for name, time in began.items() if name.startswith("latency")]
        self.assertEqual(len(alone), 10)
        self.assertLess(max(alone), min(time for name, time in began.items() if name.startswith("marks")))

    def test_a_part_that_fails_is_named_and_the_others_go_on(self):
        self.plays("memory", "print(json.dumps({'figures': {'ledger': 5}, 'problems': ['the ledger has other sums']})); sys.exit(1)")
        self.plays("kernels", "os.kill(os.getpid(), signal.SIGSEGV)")
        self.plays("nccl-to-itself", "print('no JSON'); sys.exit(0)")
        self.plays("zb-h1", "print(json.dumps({'device': 'cuda', 'gradient_check': 'failed', 'gradient_max_abs_diff': 1, 'loss': [1]})); sys.exit(0)")
        done = self.check("--only", "memory,kernels,nccl-*,gradients *b* threads")
        self.assertEqual(done.returncode, 1)
        self.assertIn("memory: the ledger has other sums", done.stdout)
        self.assertRegex(done.stdout, r"memory +FAILED +ledger 5")
        self.assertIn("kernels: died of SIGSEGV", done.stdout)
        self.assertIn("nccl-to-itself: exit 0, and its output is not what it should be", done.stdout)
        self.assertIn("gradients zb-h1 threads: gradients: failed", done.stdout)
        self.assertEqual(self.parts()["nccl-two-on-one"]["result"], "ok")
        self.assertEqual(self.parts()["gradients 1f1b threads"]["result"], "ok")

    def test_a_part_that_hangs_is_killed_with_what_it_started_and_named(self):
        self.plays("memory", "import subprocess; print('waits', file=sys.stderr, flush=True); subprocess.run(['sleep', '1000'])")
        begin = time.monotonic()
        done = self.check("--only", "memory,kernels", "--each", "2")
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(done.returncode, 1)
        self.assertIn("memory: hung: killed after 2 s: waits", done.stdout)
        self.assertEqual(self.parts()["kernels"]["result"], "ok")

    def test_all_of_it_is_bounded(self):
        self.plays("latency", "time.sleep(1000)")
        done = self.check("--only", "latency *", "--seconds", "3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not begun: the 3 s were over", done.stdout)

    def test_a_run_in_processes_has_a_process_for_each_rank(self):
        note = "pathlib.Path(here / ('rank' + os.environ.get('RANK', ''))).write_text(' '.join(os.environ[each] for each in ('WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')))"
        self.plays("1f1b", f"if 'processes' in sys.argv: {note}")
        self.assertEqual(self.check("--only", "gradients two processes 1f1b").returncode, 0)
        told = {(self.bin / f"rank{rank}").read_text() for rank in (0, 1)}
        self.assertEqual(len(told), 1)
        self.assertRegex(told.pop(), r"^2 127\.0\.0\.1 \d+$")

    def test_nccl_between_processes_takes_a_gpu_for_each(self):
        self.plays("1f1b", "if 'nccl' in sys.argv: sys.exit('run.transport: NCCL cannot hand over: ranks 0 and 1 are both on GPU 0, and NCCL takes one rank per GPU.')")
        done = self.check("--only", "gradients two processes*")
        self.assertEqual(done.returncode, 0, done.stdout)
        parts = self.parts()
        self.assertEqual(parts["gradients two processes by nccl"]["result"], "could not")
        self.assertEqual(parts["gradients two processes 1f1b"]["result"], "ok")
        self.plays("1f1b", "")
        self.check("--only", "gradients two processes by nccl")
        self.assertEqual(self.parts()["gradients two processes by nccl"]["result"], "ok")

    def test_processes_end_with_the_first_that_fails(self):
        self.plays("1f1b", "if os.environ.get('RANK') == '1': time.sleep(1000)\nif 'RANK' in os.environ: sys.exit('rank 1 died')")
        begin = time.monotonic()
        done = self.check("--only", "gradients two processes 1f1b")
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("gradients two processes 1f1b: rank 1 died", done.stdout)

    def test_a_run_that_stays_on_the_cpu_proves_nothing(self):
        self.plays("1f1b", "print(json.dumps({'device': 'cpu', 'gradient_check': 'bitwise', 'gradient_max_abs_diff': 0, 'loss': [1]})); sys.exit(0)")
        done = self.check("--only", "gradients 1f1b threads")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ran on cpu", done.stdout)

    def test_a_trace_without_kernels_is_no_trace_of_a_gpu(self):
        self.plays("no-kernels", "")
        done = self.check("--only", "traced run *")
        self.assertEqual(done.returncode, 1)
        self.assertIn("traced run kernels: no kernel is in the trace; another profiler", done.stdout)

    def test_without_a_gpu_it_says_so_and_what_it_would_do(self):
        self.plays("no-gpu", "")
        done = self.check()
        self.assertEqual(done.returncode, 2)
        self.assertIn("no GPU can be used: no driver. Nothing was checked", done.stderr)
        for name in ("marks kernels-alone", "latency 64K 20ms", "gradients zb-h1 emulated", "nccl-two-on-one"):
            self.assertIn(f"  {name}\n", done.stdout)

    def test_wrong_use_is_told(self):
        for arguments, text in ((["--jobs", "0"], "are positive"), (["--jobs", "x"], "invalid int"), (["--what"], "unrecognized"),
                                (["--build"], "not allowed with"), (["--only", "nothing"], "no part is named so")):
            done = self.check(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(text, done.stderr)
        done = self.check(programs=self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no stagecraft-cli, stagecraft-live, stagecraft_cuda.so, gpu_probe", done.stderr)

    def test_what_cannot_be_built_here_is_to_come_from_elsewhere(self):
        done = subprocess.run([sys.executable, CHECK, "--build", "--out", self.out], capture_output=True, text=True, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("it cannot be built here: cmake", done.stderr)
        self.assertIn("Take programs from elsewhere", done.stderr)

    def test_the_real_programs_know_the_parts_and_need_a_gpu(self):
        if REAL is None:
            self.skipTest("no programs were given")
        done = self.check(programs=REAL)
        if done.returncode in (0, 1) and "passed" in done.stdout:
            self.skipTest("there is a GPU here: tests/gpu/check itself tells more")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("no GPU can be used", done.stderr)
        self.assertIn("  gradients 1f1b threads\n", done.stdout)
        self.assertIn("  gradients dualpipe emulated\n", done.stdout)

    def test_what_is_packed_is_all_that_a_machine_with_torch_needs(self):
        if REAL is None:
            self.skipTest("no programs were given")
        to = pathlib.Path(self.temporary.name) / "packed"
        done = subprocess.run([sys.executable, CHECK, "--bin", REAL, "--pack", to], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(sum(each.stat().st_size for each in to.rglob("*") if each.is_file()), 64 << 20)
        for name in ("check", "stagecraft-cli", "stagecraft-live", "stagecraft_cuda.so", "gpu_probe"):
            self.assertTrue((to / name).exists(), name)
        self.assertTrue(list((to / "lib").glob("libfmt.so*")))
        # there LibTorch lies elsewhere
        site = re.search(r"\[(.*/site-packages)/torch/lib", subprocess.run(["readelf", "-d", REAL / "gpu_probe"], capture_output=True, text=True).stdout)[1]
        for name in ("stagecraft-cli", "stagecraft-live", "stagecraft_cuda.so", "gpu_probe"):
            (to / name).write_bytes((to / name).read_bytes().replace(site.encode(), b"/not-here".ljust(len(site), b"x")))
        done = subprocess.run([sys.executable, to / "check", "--out", self.out, "--only", "memory"], capture_output=True, text=True)
        self.assertIn("no GPU can be used" if done.returncode == 2 else "passed", done.stdout + done.stderr)
        # on the CPU, as the check starts it
        start = f"""
            import importlib.machinery, importlib.util, json, pathlib, subprocess, sys
            sys.dont_write_bytecode = True
            loader = importlib.machinery.SourceFileLoader("check", "{to}/check")
            check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
            loader.exec_module(check)
            setup = check.Setup(pathlib.Path("{to}"), sys.executable, pathlib.Path("{self.out}"))
            setup.plan.write_text(json.dumps(check.PLAN))
            sys.exit(subprocess.run([setup.programs / check.RUNS, "run", setup.plan, "--check", "all", "--json"], env=setup.environment).returncode)
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(start)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": site})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["gradient_check"], "bitwise")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        REAL = pathlib.Path(sys.argv.pop(1))
    unittest.main()
