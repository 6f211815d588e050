# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the NVIDIA libraries that PyTorch's Python module is linked with.

    python cuda_stand_ins.py TORCH_LIB FOLDER

The wheel of PyTorch on the package index is the one for GPUs: without CUDA's libraries (3.9 GB) beside it "import torch" fails,
even where no GPU is used. Its schedules are plain Python, and CPU tensors call nothing of CUDA. So this makes small libraries
with the same names that have the symbols which PyTorch asks for, in the versions it asks for; whoever calls one is told so and
ends. LD_LIBRARY_PATH=FOLDER lets PyTorch find them. TORCH_LIB is torch/lib; wheels with the real ones beside it are left alone.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOTS = ["libtorch_python.so", "libtorch_global_deps.so"]
SYSTEM = re.compile(r"(lib(c|m|dl|rt|util|pthread|gcc_s|stdc\+\+|gomp)|ld-linux.*)\.so\.")
CALLED = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((visibility("hidden"))) void stand_in(void)
{
    static const char text[] = "%s is a stand-in of the tests, which has no code to call\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(1);
    abort();
}
"""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_of(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(library)))


def versions_of(library):
    """Which versions of which other library it asks for: {"libcublas.so.13": {"libcublas.so.13"}}."""
    wanted, name = defaultdict(set), None
    for line in output("readelf", "-VW", str(library)).splitlines():
        if file := re.search(r"Version: \d+  File: (\S+)", line):
            name = file[1]
        elif version := re.search(r"Name: (\S+)  Flags:", line):
            if name:
                wanted[name].add(version[1])
    return wanted


def symbols_of(library, kind):
    """[(name, version or None)] of what the library defines or leaves undefined."""
    lines = output("nm", "-D", f"--{kind}-only", str(library)).splitlines()
    fields = [line.split() for line in lines]
    return [(name, version or None) for f in fields if f[-2] not in "wv" for name, _, version in [f[-1].replace("@@", "@").partition("@")]]


def closure(torch_lib):
    """The installed libraries that the roots pull in, and the names of those that are not there."""
    here = {path.name: path for path in torch_lib.glob("*.so*")}
    here |= {path.name: path for path in torch_lib.parent.parent.glob("nvidia/*/lib/*.so*")}
    found, missing, open_names = {}, set(), list(ROOTS)
    while open_names:
        name = open_names.pop()
        if name in found or name in missing or SYSTEM.match(name) and name not in here:
            continue
        if name not in here:
            missing.add(name)
            continue
        found[name] = here[name]
        open_names += needed_of(here[name])
    return found, missing


def make(folder, soname, symbols, versions):
    """symbols: {version or None: names}"""
    # an alias of each version of its own, as one name may be asked for in several
    assembly, script = [], []
    for version, names in symbols.items():
        for i, name in enumerate(sorted(names)):
            alias = f"stand_in_{len(assembly)}" if version else name
            assembly.append(f'__asm__(".globl {alias}\\n.set {alias}, stand_in\\n.type {alias}, @function");')
            if version:
                assembly.append(f'__asm__(".symver {alias}, {name}@@{version}");')
    for version in sorted(versions):
        script.append(f"{version} {{ global: {''.join(n + '; ' for n in sorted(symbols.get(version, [])))}}};")
    source, versions_file = folder / f"{soname}.c", folder / f"{soname}.versions"
    source.write_text(CALLED % soname + "\n".join(assembly) + "\n")
    versions_file.write_text("\n".join(script) + "\n")
    options = [f"-Wl,--version-script={versions_file}"] if versions else []
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}", *options, "-o", str(folder / soname), str(source)], check=True)
    source.unlink()
    versions_file.unlink()


def main(torch_lib, folder):
    folder.mkdir(parents=True, exist_ok=True)
    found, missing = closure(torch_lib)
    versions, undefined, defined = defaultdict(set), set(), set()
    for library in found.values():
        for name, wanted in versions_of(library).items():
            if name in missing:
                versions[name] |= wanted
        undefined |= set(symbols_of(library, "undefined"))
        defined |= {name for name, _ in symbols_of(library, "defined")}
    by_library = defaultdict(lambda: defaultdict(set))
    for name in missing:
        for version in versions[name]:
            by_library[name][version] = {symbol for symbol, of in undefined if of == version}
    # what carries no version is looked for in every library, so any one may have it; Python's and C++'s own are there already
    plain = sorted(missing - versions.keys()) or sorted(missing)
    if plain:
        own = re.compile(r"_?Py|_Z|_ITM|__")
        by_library[plain[0]][None] = {s for s, of in undefined if of is None and s not in defined and not own.match(s)}
    for name in sorted(missing):
        make(folder, name, by_library[name], versions[name])
    print(f"made {len(missing)} stand-ins in {folder}: {' '.join(sorted(missing))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
