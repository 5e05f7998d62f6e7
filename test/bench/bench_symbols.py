#!/usr/bin/env python3
"""How fast addresses become names: 100,000 frames of a program of 100 MB with debugging information, made for it.

Usage: bench_symbols.py BUILD_DIR [FRAMES [PROGRAM]]

Prints the best of three of `tp_shell util symbolize` (wall, and processor time with its workers), of a load of the same
trace without symbols, and of addr2line and llvm-symbolizer over the same addresses where they are installed.
"""
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
import frame_trace  # noqa: E402

FILES, COPIES, FUNCTIONS, TYPES, ROUNDS = 8, 8, 1200, 6000, 3


def source(i):
    """A file of many small functions, each with two levels of inlined ones, beside many types."""
    lines = ["#include <stdint.h>"]
    for t in range(TYPES):
        lines.append(f"struct record_{t} {{ struct record_{t} *next; uint64_t key_{t}; const char *name_{t}; int flags_{t}[4]; }};")
    lines.append("static inline uint64_t inner(uint64_t x)\n{\n    return (x ^ x >> 7) * 11400714819323198485u;\n}")
    lines.append("static inline uint64_t middle(uint64_t x)\n{\n    uint64_t y = inner(x);\n    return inner(y + 1) ^ y;\n}")
    for f in range(FUNCTIONS):
        lines.append(f"uint64_t work_{i}_{f}(uint64_t x)\n{{\n    uint64_t y = middle(x + {f});\n    if (y & 1)\n"
                     f"        y += middle(y ^ {f * 7 + 1});\n    return y * {f + 3};\n}}")
    return "\n".join(lines) + "\n"


def make_program(directory):
    """Objects are compiled once, and linked several times under other names."""
    program = directory / "large"
    objects, running = [], []
    for i in range(FILES):
        c, o = directory / f"part_{i}.c", directory / f"part_{i}.o"
        c.write_text(source(i))
        objects.append(o)
        running.append(subprocess.Popen(["gcc", "-O2", "-g", "-fno-eliminate-unused-debug-types", "-c", c, "-o", o]))
        if len(running) == 2:
            running.pop(0).wait()
    for p in running:
        p.wait()
    for o in list(objects):
        for copy in range(1, COPIES):
            objects.append(o.with_suffix(f".{copy}.o"))
            subprocess.run(["objcopy", f"--prefix-symbols=copy_{copy}_", o, objects[-1]], check=True)
    (directory / "main.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    subprocess.run(["gcc", "-Wl,--build-id=sha1", "-g", directory / "main.c", *objects, "-o", program], check=True)
    for o in objects:
        o.unlink()
    return program


def functions(program):
    """(address, size) of its functions."""
    out = []
    for line in subprocess.run(["readelf", "-sW", program], capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if len(words) >= 8 and words[3] == "FUNC" and words[6] != "UND" and int(words[2], 0) > 0:
            out.append((int(words[1], 16), int(words[2], 0)))
    return out


def measure(args, **kw):
    best = None
    for _ in range(ROUNDS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, (cpu, wall)) if best else (cpu, wall)
    return best


def main():
    build = pathlib.Path(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        program = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else make_program(d)
        known = functions(program)
        pick = random.Random(1)
        addresses = set()
        while len(addresses) < n:
            address, size = pick.choice(known)
            addresses.add(address + pick.randrange(size))
        addresses = sorted(addresses)
        pick.shuffle(addresses)
        trace = d / "trace.pftrace"
        trace.write_bytes(frame_trace.trace([frame_trace.Elf(program).module([[a] for a in addresses])]))
        (d / "addresses").write_text("".join(f"0x{a:x}\n" for a in addresses))
        shell, out = build / "tp_shell", d / "symbols.pb"
        print(f"{program.name}: {os.path.getsize(program) / 1e6:.0f} MB, {len(known)} functions; {len(addresses)} frames")
        rows = [("util symbolize", [shell, "util", "symbolize", "--symbol-paths", program, "--no-auto-symbol-paths", trace, "-o", out], {}),
                ("load alone", [shell, "query", trace, "SELECT 1"], {})]
        if shutil.which("addr2line"):
            rows.append(("addr2line -i -f", ["addr2line", "-i", "-f", "-e", program], {"stdin": "addresses"}))
        if shutil.which("llvm-symbolizer"):
            rows.append(("llvm-symbolizer", ["llvm-symbolizer", f"--obj={program}"], {"stdin": "addresses"}))
        for name, args, kw in rows:
            if kw and n > 1000:  # they take long: a hundredth of the addresses
                (d / "addresses").write_text("".join(f"0x{a:x}\n" for a in addresses[:n // 100]))
            if kw:
                best = min(measure(args, stdin=open(d / "addresses")) for _ in range(1))
                name += f" ({min(n, max(n // 100, 1))} addresses)"
            else:
                best = measure(args)
            print(f"{name:40} {best[0]:7.2f} s of processor time, {best[1]:7.2f} s")
        named = sum(len(a) for a in frame_trace.module_symbols(out.read_bytes()).values())
        print(f"named: {named} of {len(addresses)}")


main()
