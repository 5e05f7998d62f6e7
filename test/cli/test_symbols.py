"""tp_shell util symbolize, bundle and --symbols: names, lines and inlined functions of programs whose truth is known, where
their files are found, and what is refused."""
import csv
import http.server
import io
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import threading
import time
import unittest

import harness
from frame_trace import Elf, Module, module_symbols, trace

CC = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")

# Each MARK is an instruction with a label of its own; "@name" says which line it stands in.
SOURCE = r"""
#define MARK(name) __asm__ volatile("mark_" #name "_%=: nop" ::)
static inline __attribute__((always_inline)) void inner(void)
{
    MARK(inner); /* @inner */
}
static inline __attribute__((always_inline)) void middle(void)
{
    MARK(middle); /* @middle */
    inner(); /* @inner_call */
}
__attribute__((noinline)) void outer(void)
{
    middle(); /* @middle_call */
    MARK(outer); /* @outer */
}
static __attribute__((noinline)) int recursive(int n)
{
    MARK(recursive); /* @recursive */
    return n ? recursive(n - 1) + n * 3 : 0;
}
static __attribute__((noinline)) void hidden(void)
{
    MARK(hidden); /* @hidden */
}
int API(int n)
{
    outer();
    hidden();
    return recursive(n);
}
"""
CHAINS = {
    "inner": [("inner", "inner"), ("middle", "inner_call"), ("outer", "middle_call")],
    "middle": [("middle", "middle"), ("outer", "middle_call")],
    "outer": [("outer", "outer")],
    "recursive": [("recursive", "recursive")],
    "hidden": [("hidden", "hidden")],
}


def run(*args, **kw):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, text=True, **kw).stdout


def line_of(word):
    return next(i for i, text in enumerate(SOURCE.splitlines(), 1) if f"@{word} " in text)


@unittest.skipUnless(CC and shutil.which("readelf") and shutil.which("objcopy"), "no compiler, readelf or objcopy")
class Symbols(harness.Case):
    def setUp(self):
        self.work = self.dir / self.id().rsplit(".", 1)[-1]
        self.work.mkdir(exist_ok=True)
        self.work = self.work.resolve()

    # --- programs, and traces of them

    def build(self, *flags, name="program", shared=False):
        source, out = self.work / "source.c", self.work / name
        source.write_text(SOURCE)
        if shared:
            flags += ("-shared", "-fPIC", "-DAPI=api")
        else:
            (self.work / "main.c").write_text("int api(int); int main(int n, char **v) { (void)v; return api(n); }")
            flags += ("-DAPI=api", self.work / "main.c")
        run(CC, "-O2", "-g", "-Wl,--build-id=sha1", *flags, source, "-o", out)
        return out

    @staticmethod
    def marks(path):
        """{name: [addresses]} of the marked instructions."""
        out = {}
        for line in run("readelf", "-sW", path).splitlines():
            m = re.search(r": ([0-9a-f]+) .* mark_([a-z]+)_\d+$", line)
            if m:
                out.setdefault(m[2], []).append(int(m[1], 16))
        return out

    def trace_of(self, elf, marks, path=None, build_id=None):
        out = self.work / "trace.pftrace"
        out.write_bytes(trace([elf.module([[a] for name in sorted(marks) for a in marks[name]], path, build_id)]))
        return out

    def symbolize(self, trace, *flags, env=None, code=0):
        """{address: lines} of all packets, and what stood on standard error."""
        out = self.work / "symbols.pb"
        p = self.run_shell("util", "symbolize", *flags, trace, "-o", out, env=env, code=code)
        found = {}
        for addresses in module_symbols(out.read_bytes()).values():
            found.update(addresses)
        return found, p.stderr.decode()

    def check(self, found, marks, lines=True):
        for name, chain in CHAINS.items():
            self.assertTrue(marks[name], name)
            for address in marks[name]:
                got = found.get(address, [])
                if lines:
                    want = [(f, str(self.work / "source.c"), line_of(at)) for f, at in chain]
                else:
                    want = [(chain[-1][0], "", 0)]
                self.assertEqual(got, want, f"{name} at {address:#x}")

    # --- the truth

    def test_inlined_recursive_and_lines(self):
        kinds = {"default": (), "no frame pointer": ("-fomit-frame-pointer",), "DWARF 4": ("-gdwarf-4",), "DWARF 3": ("-gdwarf-3", "-gstrict-dwarf"),
                 "not moved": ("-no-pie",), "compressed": ("-gz",), "types apart": ("-fdebug-types-section",)}
        for kind, flags in kinds.items():
            with self.subTest(kind):
                program = self.build(*flags)
                marks = self.marks(program)
                found, said = self.symbolize(self.trace_of(Elf(program), marks))
                self.check(found, marks)
                n = sum(map(len, marks.values()))
                self.assertIn(f"Symbols: {n} of {n} addresses named", said)

    def test_shared_library(self):
        library = self.build(shared=True, name="libtruth.so")
        marks = self.marks(library)
        found, _ = self.symbolize(self.trace_of(Elf(library), marks))
        self.check(found, marks)

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_other_compiler(self):
        global CC
        before, CC = CC, shutil.which("clang")
        try:
            program = self.build()
        finally:
            CC = before
        marks = self.marks(program)
        found, _ = self.symbolize(self.trace_of(Elf(program), marks))
        self.check(found, marks)

    def test_loaded_elsewhere(self):
        """A recorder that knows no load bias (perf.data) says another address than the file."""
        program = self.build()
        elf, marks = Elf(program), self.marks(program)
        moved = {n: [a - elf.load_bias for a in at] for n, at in marks.items()}
        elf.load_bias = 0
        found, _ = self.symbolize(self.trace_of(elf, moved))
        self.check(found, moved)

    # --- where files are found

    def strip(self, program, keep_symbols=False):
        """(stripped, debug): the program as it is shipped, and what was taken from it."""
        debug, stripped = self.work / "program.debug", self.work / "stripped"
        run("objcopy", "--only-keep-debug", program, debug)
        run("objcopy", "--strip-debug" if keep_symbols else "--strip-all", program, stripped)
        return stripped, debug

    def below_build_id(self, root, build_id, file):
        to = root / ".build-id" / build_id.hex()[:2] / (build_id.hex()[2:] + ".debug")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
        return to

    def test_build_id_directory(self):
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        stripped, debug = self.strip(program)
        self.below_build_id(self.work / "root", elf.build_id, debug)
        os.remove(program)
        t = self.trace_of(elf, marks, path="/gone/program")
        found, _ = self.symbolize(t, "--symbol-paths", self.work / "root")
        self.check(found, marks)
        # beside other places, and with the stripped program there as well
        t = self.trace_of(elf, marks, path=str(stripped))
        found, said = self.symbolize(t, "--symbol-paths", f"{self.work},{self.work / 'root'}", "--verbose")
        self.check(found, marks)
        self.assertIn(".debug (used)", said)

    def test_any_directory(self):
        """Files are found below a directory under any name; links in circles are followed once."""
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        deep = self.work / "root" / "a" / "b"
        deep.mkdir(parents=True)
        shutil.move(program, deep / "whatever.bin")
        os.symlink("..", deep / "up")
        os.symlink("nowhere", deep / "dangling")
        os.symlink("self", deep / "self")
        os.mkfifo(deep / "pipe")
        found, _ = self.symbolize(self.trace_of(elf, marks, path="/gone/program"), "--symbol-paths", self.work / "root")
        self.check(found, marks)
        env = {"PERFETTO_BINARY_PATH": str(self.work / "root")}
        found, _ = self.symbolize(self.trace_of(elf, marks, path="/gone/program"), env=env)
        self.check(found, marks)
        env["PERFETTO_SYMBOLIZER_MODE"] = "find"  # under its own name alone
        found, said = self.symbolize(self.trace_of(elf, marks, path="/gone/program"), env=env)
        self.assertEqual(found, {})
        found, _ = self.symbolize(self.trace_of(elf, marks, path="/b/whatever.bin"), env={**env, "PERFETTO_BINARY_PATH": str(self.work / "root" / "a")})
        self.check(found, marks)

    def test_debuglink(self):
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        stripped, debug = self.strip(program)
        os.remove(program)
        run("objcopy", f"--add-gnu-debuglink={debug.name}", stripped, cwd=self.work)
        t = self.trace_of(elf, marks, path=str(stripped))
        found, _ = self.symbolize(t)
        self.check(found, marks)
        (self.work / ".debug").mkdir()
        shutil.move(debug, self.work / ".debug" / debug.name)
        found, _ = self.symbolize(t)
        self.check(found, marks)
        # a byte that changes the checksum and nothing else
        with open(self.work / ".debug" / debug.name, "ab") as f:
            f.write(b"\0")
        found, said = self.symbolize(t)
        self.assertFalse([l for a in found.values() for l in a if l[1]], "lines of a file with another checksum")
        self.assertIn("checksum mismatch", said)

    def test_names_alone(self):
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        stripped, _ = self.strip(program, keep_symbols=True)
        found, _ = self.symbolize(self.trace_of(elf, marks, path=str(stripped)))
        self.check(found, marks, lines=False)

    def packed(self, program):
        """The program as Fedora ships it: without .symtab, which is packed in .gnu_debugdata as far as .dynsym has it not."""
        stripped, _ = self.strip(program)
        mini = self.work / "mini"
        run("objcopy", "-S", "--keep-symbol=outer", "--keep-symbol=recursive", "--keep-symbol=hidden", program, mini)
        return stripped, mini

    def add_section(self, file, data):
        (self.work / "section").write_bytes(data)
        run("objcopy", "--remove-section", ".gnu_debugdata", file)
        run("objcopy", "--add-section", f".gnu_debugdata={self.work / 'section'}", file)

    def test_names_packed_in_the_program(self):
        library = self.build(shared=True, name="libtruth.so")
        marks, elf = self.marks(library), Elf(library)
        stripped, mini = self.packed(library)
        library.unlink()
        t = self.trace_of(elf, marks, path=str(stripped))
        found, _ = self.symbolize(t)
        self.assertEqual([found.get(a) for a in marks["hidden"]], [None] * len(marks["hidden"]))  # it is no name of .dynsym
        self.add_section(stripped, lzma.compress(mini.read_bytes()))
        found, _ = self.symbolize(t)
        self.check(found, marks, lines=False)
        # a file with lines says more
        debug = self.below_build_id(self.work / "root", elf.build_id, self.work / "program.debug")
        found, said = self.symbolize(t, "--symbol-paths", self.work / "root", "--verbose")
        self.check(found, marks)
        self.assertIn(f"{debug} (used)", said)

    def test_packed_names_that_are_damaged(self):
        """What is exported has its name all the same; nothing crashes, hangs, or takes memory without end."""
        library = self.build(shared=True, name="libtruth.so")
        marks, elf = self.marks(library), Elf(library)
        stripped, mini = self.packed(library)
        library.unlink()
        t = self.trace_of(elf, marks, path=str(stripped))
        whole = lzma.compress(mini.read_bytes())
        bomb = lzma.compress(bytes(300 << 20), preset=0)
        greedy = lzma.compress(b"x" * 4096, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}])
        inner = bytearray(mini.read_bytes())
        inner[40:48] = b"\xff" * 8  # where the sections are
        for what, data in {"cut": whole[:len(whole) // 2], "no xz": b"\x7fELF" * 100, "no ELF": lzma.compress(b"nothing" * 100), "bomb": bomb,
                           "greedy": greedy, "sections outside": lzma.compress(bytes(inner)),
                           "flipped": whole[:200] + bytes([whole[200] ^ 0x55]) + whole[201:]}.items():
            with self.subTest(what):
                self.add_section(stripped, data)
                found, said = self.symbolize(t)
                self.assertEqual([found[a] for a in marks["outer"]], [[("outer", "", 0)]] * len(marks["outer"]))
                self.assertEqual([found.get(a) for a in marks["hidden"]], [None] * len(marks["hidden"]))
                self.assertIn("its .gnu_debugdata cannot be unpacked: exported functions alone", said)

    @unittest.skipUnless(shutil.which("dwz"), "no dwz")
    def test_shared_debugging_information(self):
        first, second = self.build(name="first"), self.build("-O1", name="second")
        marks, elf = self.marks(first), Elf(first)
        run("dwz", "-m", self.work / "common.debug", first, second)
        found, _ = self.symbolize(self.trace_of(elf, marks))
        self.check(found, marks)

    # --- what is refused

    def test_wrong_build_id(self):
        program = self.build()
        marks = self.marks(program)
        found, said = self.symbolize(self.trace_of(Elf(program), marks, build_id=b"\1" * 20))
        self.assertEqual(found, {})
        self.assertIn(f"{program}: build ID mismatch", said)
        self.assertIn("stay without names", said)

    def test_no_build_id(self):
        program = self.build()
        found, said = self.symbolize(self.trace_of(Elf(program), self.marks(program), build_id=b""))
        self.assertEqual(found, {})
        self.assertIn("no build id", said)

    def test_cut_anywhere(self):
        """A file that ends at the border of any section, or within one: names or none, never a failure."""
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        t, whole = self.trace_of(elf, marks), program.read_bytes()
        cuts = {0, 1, 40, 63, 64, len(whole) - 1}
        for line in run("readelf", "-SW", program).splitlines():
            m = re.match(r"\s*\[\s*\d+\] \S*\s+\S+\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", line)
            if m:
                start, size = int(m[1], 16), int(m[2], 16)
                cuts.update((start, start + size // 2))
        for cut in sorted(cuts):
            program.write_bytes(whole[:cut])
            self.symbolize(t)

    def test_flipped_bytes(self):
        """Debugging information that is damaged: a bounded time, no failure of the program."""
        import random
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        t, whole, pick = self.trace_of(elf, marks), program.read_bytes(), random.Random(7)
        places = {}
        for line in run("readelf", "-SW", program).splitlines():
            m = re.match(r"\s*\[\s*\d+\] (\S+)\s+\S+\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", line)
            if m and (m[1].startswith(".debug") or m[1] in (".symtab", ".strtab", ".shstrtab")):
                places[m[1]] = (int(m[2], 16), int(m[3], 16))
        self.assertIn(".debug_info", places)
        for name, (start, size) in places.items():
            for _ in range(3):
                damaged = bytearray(whole)
                for _ in range(8):
                    damaged[start + pick.randrange(size)] = pick.choice((0, 1, 0x7f, 0x80, 0xff, pick.randrange(256)))
                program.write_bytes(damaged)
                self.symbolize(t)

    def test_debugging_information_that_goes_round(self):
        """Functions that are inlined copies of each other in a circle, sibling links that lead back, and inlined functions as deep as
        nobody writes: the symbol's name stays, in a bounded time."""
        deep = 5000
        inlined = """.uleb128 3; .quad outer; .quad 16; .long loop_a - info
                     .uleb128 5; .quad outer; .quad 16; .asciz "turn"\n""" * deep
        source = self.work / "loop.s"
        source.write_text(f"""
            .text; .globl outer; .type outer, @function
            outer: .fill 16, 1, 0x90
            .size outer, . - outer
            .globl _start; _start: ret
            .section .debug_abbrev, "", @progbits
            .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0, 0
            .uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0x31; .uleb128 0x13; .byte 0, 0
            .uleb128 3; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0x31; .uleb128 0x13; .byte 0, 0
            .uleb128 4; .uleb128 0x2e; .byte 0; .uleb128 0x31; .uleb128 0x13; .uleb128 0x01; .uleb128 0x13; .byte 0, 0
            .uleb128 5; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 3; .uleb128 8; .byte 0, 0
            .byte 0
            .section .debug_info, "", @progbits
            info: .long end - begin
            begin: .short 4; .long .debug_abbrev; .byte 8
            .uleb128 1; .quad outer; .quad 16
            .uleb128 2; .quad outer; .quad 16; .long loop_b - info
            {inlined}
            .fill {2 * deep + 1}, 1, 0
            loop_a: .uleb128 4; .long loop_b - info; .long loop_b - info
            loop_b: .uleb128 4; .long loop_a - info; .long loop_a - info
            .byte 0
            end:
            """.replace("; ", "\n"))
        program = self.work / "loop"
        run(CC, "-nostdlib", "-static", "-Wl,--build-id=sha1", source, "-o", program)
        symbol = next(line.split() for line in run("readelf", "-sW", program).splitlines() if line.endswith(" outer"))
        address = int(symbol[1], 16)
        began = time.monotonic()
        found, said = self.symbolize(self.trace_of(Elf(program), {"outer": [address, address + 5]}))
        self.assertLess(time.monotonic() - began, 20)
        for at in (address, address + 5):
            self.assertEqual(found[at][-1][0], "outer", said)
            self.assertIn("turn", [line[0] for line in found[at]])  # it was looked at
            self.assertLess(len(found[at]), 100)

    def test_pipes_and_devices(self):
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        os.remove(program)
        os.mkfifo(program)
        found, said = self.symbolize(self.trace_of(elf, marks))
        self.assertEqual(found, {})
        self.assertIn("not a regular file", said)
        found, _ = self.symbolize(self.trace_of(elf, marks, path="/dev/zero"))
        self.assertEqual(found, {})

    def test_huge_file(self):
        """A terabyte that is nowhere: what its headers do not speak of is not read."""
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        try:
            os.truncate(program, 1 << 40)
        except OSError as e:
            self.skipTest(f"no file of a terabyte here: {e}")
        found, _ = self.symbolize(self.trace_of(elf, marks))
        self.check(found, marks)

    @unittest.skipUnless(os.getuid() == 0, "only root makes files of others")
    def test_files_of_others(self):
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        t = self.trace_of(elf, marks)
        found, _ = self.symbolize(t)
        self.check(found, marks)
        for spoil, mend in ((lambda: os.chown(program, 65534, 65534), lambda: os.chown(program, 0, 0)),
                            (lambda: os.chmod(program, 0o777), lambda: os.chmod(program, 0o755)),
                            (lambda: os.chmod(program, 0o775), lambda: os.chmod(program, 0o755)),
                            (lambda: os.chmod(self.work, 0o777), lambda: os.chmod(self.work, 0o755)),
                            (lambda: os.chown(self.work, 65534, 65534), lambda: os.chown(self.work, 0, 0))):
            spoil()
            found, said = self.symbolize(t)
            self.assertEqual(found, {})
            self.assertIn("another user could have written it", said)
            found, _ = self.symbolize(t, "--symbol-paths", self.work)  # who names it trusts it
            self.check(found, marks)
            mend()
        os.rename(program, self.work / "real")
        os.symlink(self.work / "real", program)
        found, _ = self.symbolize(t)
        self.check(found, marks)
        os.lchown(program, 65534, 65534)  # who may change the link chooses the file
        found, said = self.symbolize(t)
        self.assertEqual(found, {})

    def test_nowhere(self):
        program = self.build()
        t = self.trace_of(Elf(program), self.marks(program))
        self.fails("util", "symbolize", "--no-auto-symbol-paths", t, text="nowhere to look")
        self.fails("util", "symbolize", "--symbol-paths", self.work / "missing", t, text="does not exist")
        self.fails("util", "symbolize", t, "-o", t, text="would be lost")
        self.fails("util", "symbolize", text="one trace")
        self.fails("util", "symbolize", "--debuginfod", t, text="DEBUGINFOD_URLS", env={"DEBUGINFOD_URLS": ""})

    # --- servers

    def serve(self, files):
        """A server of debuginfod's protocol on this machine: {build id in hex: bytes}. Its address, and what it was asked for."""
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                data = files.get(self.path.split("/")[2]) if self.path.endswith("/debuginfo") else None
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        return f"http://127.0.0.1:{server.server_port}", asked

    def test_servers_are_asked_when_that_is_wanted(self):
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        stripped, debug = self.strip(program)
        os.remove(program)
        t = self.trace_of(elf, marks, path=str(stripped))
        url, asked = self.serve({elf.build_id.hex(): debug.read_bytes()})
        env = {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(self.work / "cache"), "no_proxy": "127.0.0.1"}
        for args in (("util", "symbolize", t, "-o", self.work / "s.pb"), ("bundle", t, self.work / "b.tar"),
                     ("query", "--symbols", "auto", t, "SELECT 1"), ("convert", "--symbols", "auto", "json", t, self.work / "j")):
            self.run_shell(*args, env=env, code=0)
        self.assertEqual(asked, [])  # a server learns what one runs: it is off unless asked for
        p = self.run_shell("util", "symbolize", "--debuginfod", t, env=env, code=None)
        if b"is not installed" in p.stderr:
            self.skipTest("no libdebuginfod")
        found, said = self.symbolize(t, "--debuginfod", env=env)
        self.check(found, marks)
        self.assertEqual(set(asked), {f"/buildid/{elf.build_id.hex()}/debuginfo"})

    def test_what_servers_send_is_not_trusted(self):
        """Another file's debugging information, half of it, and nothing."""
        program = self.build()
        marks, elf = self.marks(program), Elf(program)
        stripped, debug = self.strip(program)
        other = self.build("-O1", name="other")
        os.remove(program)
        t, whole = self.trace_of(elf, marks, path=str(stripped)), debug.read_bytes()
        for kind, files, text in (("other", {elf.build_id.hex(): other.read_bytes()}, "build ID mismatch"),
                                  ("cut", {elf.build_id.hex(): whole[:len(whole) // 2]}, "failed to parse"), ("none", {}, "debuginfod: not there")):
            with self.subTest(kind):
                url, asked = self.serve(files)
                env = {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(self.work / f"cache-{kind}"), "no_proxy": "127.0.0.1"}
                p = self.run_shell("util", "symbolize", "--debuginfod", "--verbose", t, "-o", self.work / "s.pb", env=env, code=None)
                said = p.stderr.decode()
                if "is not installed" in said:
                    self.skipTest("no libdebuginfod")
                self.assertEqual(p.returncode, 0, said)
                self.assertTrue(asked)
                self.assertIn(text, said)
                self.assertFalse([a for m in module_symbols((self.work / "s.pb").read_bytes()).values() for a in m.values() if a[0][1]], "lines of it")

    # --- the tables

    def names(self, trace, *flags, env=None):
        sql = ("SELECT f.rel_pc, s.name, s.source_file, s.line_number FROM stack_profile_frame f "
               "LEFT JOIN stack_profile_symbol s USING (symbol_set_id) ORDER BY f.rel_pc, s.id")
        out = {}
        for pc, name, file, line in list(csv.reader(io.StringIO(self.query(sql, "--format", "csv", *flags, trace=trace, env=env))))[1:]:
            out.setdefault(int(pc), []).append((name, file, int(line) if line.isdigit() else 0))
        return out

    def test_appended(self):
        program = self.build()
        marks = self.marks(program)
        t = self.trace_of(Elf(program), marks)
        self.symbolize(t)
        both = self.work / "both.pftrace"
        both.write_bytes(t.read_bytes() + (self.work / "symbols.pb").read_bytes())
        self.check(self.names(both), marks)
        # a callsite begins with what is inlined deepest
        tree = self.query("INCLUDE PERFETTO MODULE callstacks.stack_profile; "
                          "SELECT group_concat(name, '<') FROM (SELECT name FROM _callstacks_for_callsites!("
                          "(SELECT callsite_id FROM stack_sample)) WHERE name IN ('inner', 'middle', 'outer') ORDER BY id DESC)", trace=both)
        self.assertLess(tree.index("outer"), tree.index("middle"))
        self.assertLess(tree.index("middle"), tree.index("inner"))
        folded = self.run_shell("convert", "collapsed", both).stdout.decode()
        self.assertIn("outer;middle;inner", folded)

    def test_at_load(self):
        program = self.build()
        marks = self.marks(program)
        t = self.trace_of(Elf(program), marks)
        self.check(self.names(t, "--symbols", "auto"), marks)
        self.check(self.names(t, "--symbols", str(self.work)), marks)
        self.check(self.names(t, env={"PERFETTO_BINARY_PATH": str(self.work)}), marks)
        nothing = {a: [("[NULL]", "[NULL]", 0)] for at in marks.values() for a in at}
        blank = lambda names: {a: [(n if n else "[NULL]", f if f else "[NULL]", l) for n, f, l in lines] for a, lines in names.items()}
        self.assertEqual(blank(self.names(t)), nothing)
        self.assertEqual(blank(self.names(t, "--symbols", "off", env={"PERFETTO_BINARY_PATH": str(self.work)})), nothing)
        folded = self.run_shell("convert", "--symbols", "auto", "collapsed", t).stdout.decode()
        self.assertIn("outer;middle;inner", folded)
        self.assertEqual(self.query("SELECT 1", "--symbols", "auto"), '"1"\n1\n')

    # --- bundles

    def test_bundle(self):
        program = self.build()
        marks = self.marks(program)
        t, out = self.trace_of(Elf(program), marks), self.work / "bundle.tar"
        (self.work / "mapping.txt").write_text("com.example.Zoo -> b.b:\n    int lions -> z\n")
        p = self.run_shell("bundle", "--proguard-map", f"com.example={self.work / 'mapping.txt'}", t, out)
        self.assertEqual(p.stdout.decode(), f"Wrote {out}.\n")
        with tarfile.open(out) as tar:
            self.assertEqual([(m.name, m.mode, m.uid, m.gid, m.uname, m.gname) for m in tar],
                             [(n, 0o644, 0, 0, "root", "root") for n in ("trace.perfetto", "symbols.pb", "deobfuscation.pb")])
            self.assertEqual(tar.extractfile("trace.perfetto").read(), t.read_bytes())
        self.assertEqual(out.read_bytes()[257:263], b"ustar\0")
        self.check(self.names(out), marks)
        kinds = self.query("SELECT trace_type FROM __intrinsic_trace_file ORDER BY id", trace=out)
        self.assertIn("symbols", kinds)
        # the same by -o, by another name, and on a machine that has none of it
        os.remove(program)
        self.run_shell("bundle", t, "-o", self.work / "empty.tar")
        with tarfile.open(self.work / "empty.tar") as tar:
            self.assertEqual(tar.getnames(), ["trace.perfetto"])
        self.check(self.names(out), marks)

    def test_bundle_mistakes(self):
        t = self.work / "trace.pftrace"
        t.write_bytes(trace([Module("/x", b"\1" * 20, [[1]])]))
        out = self.work / "out.tar"
        os.symlink("nothing", self.work / "dangling")
        os.symlink("loop", self.work / "loop")
        for args, text in (((t,), "give the trace and the archive"), ((t, out, "/usr/lib/debug"), "--symbol-paths A,B"),
                           (("-", out), "'-'"), ((t, "-"), "'-'"), ((self.work / "missing", out), "missing"),
                           ((self.work / "dangling", out), "link leads to"), ((self.work / "loop", out), "symbolic links"),
                           ((self.work, out), "directory"), ((t, self.work), "directory"), ((t, t), "replace the trace"),
                           ((t, self.work / "no" / "out.tar"), "out.tar"),
                           (("--proguard-map", "p=/missing.txt", t, out), "missing.txt")):
            self.fails("bundle", *args, text=text)
            self.assertFalse(out.exists())
        self.assertEqual(t.read_bytes()[:1], b"\n")

    # --- Breakpad

    def test_breakpad(self):
        text = ("MODULE Linux x86_64 000000000000000000000000000000000 program\nINFO CODE_ID 0102\n"
                "FILE 0 /src/a.c\nFILE 1 b.c\nFUNC 1000 20 0 first(int)\n1000 8 11 0\n1008 18 12 1\n"
                "FUNC m 1020 10 0 second\n1020 10 21 0\nPUBLIC 2000 0 open_end\nPUBLIC 9000 0 last\nSTACK CFI INIT 1000 20 .cfa: $rsp\n")
        build_id = bytes(range(20))
        (self.work / f"{build_id.hex()}.breakpad").write_text(text)
        addresses = {0x1000: ("first(int)", "/src/a.c", 11), 0x1008: ("first(int)", "b.c", 12), 0x101f: ("first(int)", "b.c", 12),
                     0x1025: ("second", "/src/a.c", 21), 0x2010: ("open_end", "", 0), 0x9001: None, 0x500: None}
        t = self.work / "trace.pftrace"
        t.write_bytes(trace([Module("/gone/program", build_id, [[a] for a in addresses])]))
        want = {a: [line] for a, line in addresses.items() if line}
        found, _ = self.symbolize(t, env={"BREAKPAD_SYMBOL_DIR": str(self.work)})
        self.assertEqual(found, want)
        found, _ = self.symbolize(t, "--symbol-paths", self.work)
        self.assertEqual(found, want)
        (self.work / f"{build_id.hex()}.breakpad").write_text(text + "what is that\n")
        found, said = self.symbolize(t, env={"BREAKPAD_SYMBOL_DIR": str(self.work)})
        self.assertEqual(found, {})
        self.assertIn("line 13", said)

    # --- the worker

    def test_worker_alone(self):
        """Started by hand it ends at once, and does nothing."""
        p = subprocess.run(["meridian-symbol-worker"], executable=harness.SHELL, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual((p.returncode, p.stdout), (12, b""))


@unittest.skipUnless(CC and shutil.which("readelf"), "no compiler")
class OtherTools(harness.Case):
    """1,000 addresses of several programs: the same lines and inlined functions as of the tools that are installed."""

    made = set()  # programs: each is compiled once

    def programs(self, skip_compiler):
        root = pathlib.Path(__file__).parent.parent.parent
        sources = [*sorted((root / "src" / "base").glob("*.c")), root / "src" / "wire" / "pb_writer.c"]
        common = ["-shared", "-fPIC", "-g", "-D_GNU_SOURCE", '-DMERIDIAN_VERSION="1"', f"-I{root / 'src'}", "-Wl,--build-id=sha1", *sources]
        for compiler, flags in ((CC, ["-O2"]), (CC, ["-O1", "-gdwarf-4"]), (shutil.which("clang"), ["-O2"])):
            if not compiler or skip_compiler and skip_compiler in compiler:
                continue
            out = self.dir / f"{pathlib.Path(compiler).name}{len(flags)}.so"
            if out not in self.made:
                run(compiler, *flags, *common, "-o", out, cwd=root)
                self.made.add(out)
            yield out

    @staticmethod
    def addresses(program):
        import random
        pick, functions, out = random.Random(3), [], set()
        for line in run("readelf", "-sW", program).splitlines():
            w = line.split()
            if len(w) >= 8 and w[3] == "FUNC" and w[6] != "UND" and int(w[2], 0) > 0:
                functions.append((int(w[1], 16), int(w[2], 0)))
        while len(out) < 1000:
            start, size = pick.choice(functions)
            out.add(start + pick.randrange(size))
        return sorted(out)

    @staticmethod
    def of_tool(tool, program, addresses):
        """{address: [(function, file, line)]}."""
        flags = ["--output-style=GNU", "--no-demangle"] if "llvm" in tool else []
        text = subprocess.run([tool, *flags, "-a", "-i", "-f", "-e", str(program)], capture_output=True, text=True,
                              input="".join(f"0x{a:x}\n" for a in addresses)).stdout
        out, lines = {}, []
        for line in text.splitlines():
            if re.fullmatch(r"0x[0-9a-f]+", line):
                lines = out.setdefault(int(line, 16), [])
            else:
                lines.append(line)
        for a, lines in out.items():
            out[a] = []
            for f, place in zip(lines[::2], lines[1::2]):
                m = re.match(r"(.*?):(\d+|\?)", place)
                out[a].append((re.sub(r" inlined at .*", "", f), os.path.basename(m[1]) if m and m[1] != "??" else "",
                               int(m[2]) if m and m[2] != "?" else 0))
        return out

    def compare(self, tool, skip_compiler=""):
        if not shutil.which(tool):
            self.skipTest(f"no {tool}")
        for program in self.programs(skip_compiler):
            with self.subTest(program.name):
                addresses = self.addresses(program)
                t, out = self.dir / "t.pftrace", self.dir / "t.pb"
                t.write_bytes(trace([Elf(program).module([[a] for a in addresses])]))
                self.run_shell("util", "symbolize", t, "-o", out)
                ours, theirs = next(iter(module_symbols(out.read_bytes()).values())), self.of_tool(tool, program, addresses)
                # the linker's name for a part of a function says more than the compiler's
                plain = lambda lines: [(re.sub(r"\.(part|constprop|isra|cold)\b.*", "", f), os.path.basename(p), n) for f, p, n in lines]
                differ = {hex(a): (plain(ours.get(a, [])), theirs[a]) for a in addresses
                          if theirs[a][-1][2] and plain(ours.get(a, [])) != plain(theirs[a])}
                self.assertEqual(len(theirs), 1000)
                self.assertFalse(differ, dict(list(differ.items())[:3]))

    def test_eu_addr2line(self):
        self.compare("eu-addr2line", skip_compiler="clang")  # it finds units by .debug_aranges, which clang does not write

    def test_addr2line(self):
        self.compare("addr2line", skip_compiler="clang")  # it leaves out what clang has inlined

    def test_llvm_symbolizer(self):
        self.compare("llvm-symbolizer")


if __name__ == "__main__":
    harness.main()
