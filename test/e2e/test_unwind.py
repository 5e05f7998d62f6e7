"""Stacks of programs without frame pointers: the shares of their functions, and their callers, beside what they measure
themselves and beside perf record."""
import csv
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from harness import TP_SHELL, TRACEBOX, Case, main, wait_for
from sampling import can_sample

TRUTH = os.environ.get("TRUTH", "build/dev/truth")
TRUTH_LIBRARY = os.environ.get("TRUTH_LIBRARY", "build/dev/libtruth_library.so")
WAITS = os.environ.get("WAITS", "build/dev/waits")
LONG = bool(os.environ.get("MERIDIAN_LONG"))
SECONDS = 10 if LONG else 3  # of processor time
POINTS = 3 if LONG else 5  # a third of the samples: their error is larger

# What each function must have above it, the nearest first.
CALLERS = {"plain": ["take_turns"], "deep": ["recurse"] * 41 + ["run_deep"], "truth_in_library": ["take_turns"], "outer": ["take_turns"],
           "called_back": ["truth_through_library", "run_called_back"], "sorted": ["compare"], "aligned": ["run_aligned"],
           "varying": ["run_varying"], "handled": ["on_signal"]}


def functions_of(path):
    """[(address, size, name)] of a file, by nm."""
    out = subprocess.run(["nm", "-S", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return sorted((int(r[0], 16), int(r[1], 16), r[3]) for r in rows if len(r) == 4 and r[2] in "tT")


class Unwind(Case):
    def setUp(self):
        super().setUp()
        self.env = {**self.env, "PERFETTO_CONSUMER_SOCK_NAME": str(self.dir / "nobody")}

    def profile(self, *args):
        trace = self.dir / "profile.pftrace"
        p = subprocess.run([TRACEBOX, "profile", "-o", trace, *map(str, args)], env=self.env, capture_output=True, text=True,
                           timeout=500)
        self.assertEqual(p.returncode, 0, p.stderr)
        return trace, p.stdout, p.stderr

    def stacks(self, trace, name, *flags, tid=None):
        """Samples of the processes that run a file, or of one thread: lists of function names, the innermost first, and the error."""
        known = {str(pathlib.Path(p).resolve()): functions_of(p) for p in (TRUTH, TRUTH_LIBRARY)}
        known[str(pathlib.Path(TRUTH + "_stripped").resolve())] = functions_of(TRUTH)
        known[str(self.dir / "box" / "program")] = functions_of(TRUTH)
        known[str(self.dir / "packed")] = functions_of(TRUTH + "_bare")

        def function(mapping, pc):
            for start, size, text in known.get(mapping, []):
                if start <= pc < start + size:
                    return text
            return pathlib.Path(mapping).name

        which = f"thread.tid = {tid}" if tid else f"thread.name = '{pathlib.Path(name).name[:15]}'"
        rows = self.query(trace, "select s.id, coalesce(s.unwind_error, ''), s.callsite_id from perf_sample s join thread using "
                                 f"(utid) where {which} and s.callsite_id is not null and "
                                 "s.cpu_mode = 'user'", *flags)
        sites = {int(r[0]): (int(r[1]) if r[1] != "[NULL]" else None, r[2], int(r[3]), r[4]) for r in self.query(
            trace, "select c.id, c.parent_id, m.name, f.rel_pc, f.name from stack_profile_callsite c join stack_profile_frame f "
                   "on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping", *flags)}
        out = []
        for _, error, site in rows:
            stack, at = [], int(site)
            while at is not None:
                at, mapping, pc, text = sites[at]
                if not text.startswith("ERROR "):
                    stack.append(function(mapping, pc))
            out.append((stack, error))
        return out

    def shares(self, stacks, names):
        counts = {n: sum(s[0] == n for s, _ in stacks) for n in names}
        return {n: 100 * c / max(1, sum(counts.values())) for n, c in counts.items()}

    def sampled(self, program):
        """(trace, truth, stacks) of one run."""
        trace, out, err = self.profile("-F", 999, "-g", "--dwarf", "--", program, SECONDS)
        truth = {w[0]: float(w[1]) for w in map(str.split, out.splitlines()) if len(w) == 2 and re.fullmatch(r"[\d.]+", w[1])}
        self.assertEqual(len(truth), 12, out)
        stacks = self.stacks(trace, program)
        self.assertGreater(len(stacks), 999 * SECONDS * 0.5, err)
        return trace, truth, stacks

    def check(self, program):
        """Shares are right within POINTS. Who takes turns with the program on a busy processor may do so in step with its loops, which
        samples then meet unevenly: where one run is not enough, the samples and truths of up to three are taken together."""
        stacks, truths = [], []
        for _ in range(3):
            trace, truth, more = self.sampled(program)
            stacks += more
            truths.append(truth)
            truth = {n: sum(t[n] for t in truths) / len(truths) for n in truth}
            found = self.shares(stacks, truth)
            print({n: (round(found[n], 1), round(truth[n], 1)) for n in truth})
            if all(abs(found[n] - share) <= POINTS for n, share in truth.items()):
                break
        for n, share in truth.items():
            self.assertAlmostEqual(found[n], share, delta=POINTS, msg=f"{n}: {found} {truth}")
        whole = [s for s, error in stacks if "main" in s]
        print(f"{len(stacks)} samples, {100 * len(whole) / len(stacks):.2f} % reach main")
        self.assertGreater(len(whole), 0.99 * len(stacks))
        for n, callers in CALLERS.items():
            of_it = [s for s, _ in stacks if s[0] == n]
            right = [s for s in of_it if s[1:1 + len(callers)] == callers and "main" in s]
            self.assertGreater(len(right), 0.98 * len(of_it), f"{n}: {next((s for s in of_it if s not in right), None)}")
        return trace, truth, found, len(whole) / len(stacks)

    def test_shares_and_callers_are_right(self):
        trace, *_ = self.check(TRUTH)
        self.assertEqual(self.query(trace, "select name from stats where value > 0 and (name glob 'stackprofile_*' or "
                                           "name = 'interned_data_tokenizer_errors')"), [])

    def test_a_stripped_program_is_unwound_as_well(self):
        self.check(TRUTH + "_stripped")

    def test_tables_that_are_packed(self):
        """They are in .gnu_debugdata alone, as some distributions leave them; without that section few stacks reach main."""
        program, debug = self.dir / "packed", self.dir / "debug"

        def objcopy(*args):
            subprocess.run(["objcopy", *map(str, args)], check=True)
        objcopy("-S", TRUTH + "_bare", program)
        trace, *_ = self.profile("-F", 499, "-g", "--dwarf", "--", program, 1)
        stacks = self.stacks(trace, program)
        self.assertGreater(len(stacks), 200)
        self.assertLess(sum("main" in s for s, _ in stacks), 0.5 * len(stacks))
        objcopy("--only-keep-debug", TRUTH + "_bare", debug)
        debug.write_bytes(lzma.compress(debug.read_bytes()))
        program.unlink()
        objcopy("-S", "--add-section", f".gnu_debugdata={debug}", TRUTH + "_bare", program)
        self.check(program)

    def named(self, trace):
        """{(function, innermost function, its line, the line in the function): samples} of where the program ran, by the names that
        --symbols auto finds."""
        sql = ("select s.id, y.name, y.source_file, y.line_number from perf_sample s join thread using (utid) join stack_profile_callsite c on "
               "c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id join stack_profile_symbol y using (symbol_set_id) "
               "where thread.name = 'truth' and s.cpu_mode = 'user' order by s.id, y.id")
        p = subprocess.run([TP_SHELL, "query", "--symbols", "auto", "--format", "csv", trace, sql], stdout=subprocess.PIPE, text=True, check=True)
        samples, counts = {}, {}
        for sample, *line in csv.reader(p.stdout.splitlines()[1:]):
            samples.setdefault(sample, []).append(line)
        for lines in samples.values():
            inner, outer = lines[0], lines[-1]
            key = outer[0], inner[0], int(inner[2] or 0), int(outer[2] or 0)
            counts[key] = counts.get(key, 0) + 1
        return counts

    def test_names_lines_and_inlining(self):
        """The program's own symbols, looked for as the trace is loaded: each function in its line, what is inlined inside of its caller."""
        trace, truth, *_ = self.check(TRUTH)
        source = (pathlib.Path(__file__).parent / "truth.c").read_text().splitlines()

        def line_with(text):
            return 1 + next(i for i, line in enumerate(source) if text in line)
        counts = self.named(trace)
        whole = sum(counts.values())
        for name, share in truth.items():
            found = {k: n for k, n in counts.items() if k[0] == name}
            self.assertAlmostEqual(100 * sum(found.values()) / whole, share, delta=POINTS, msg=str(counts))
            (_, inner, line, call), n = max(found.items(), key=lambda kv: kv[1])
            self.assertGreater(n, 0.45 * sum(found.values()), name)
            if name == "outer":
                self.assertEqual((inner, call), ("inlined", line_with("    inlined(rounds);")))
                self.assertIn(line, range(line_with(" void inlined("), line_with("static void outer(")))
            elif name != "truth_in_library":
                self.assertEqual((inner, source[line - 1]), (name, f"SPIN({name})"))
        if shutil.which("perf"):
            self.compare_lines(counts)
        else:
            print("perf (linux-perf) is not there: its lines are not compared")

    def compare_lines(self, counts):
        """The line of each function that has most samples, by perf."""
        data = self.dir / "perf.data"
        subprocess.run(["perf", "record", "-q", "-F", "499", "-e", "cpu-clock:u", "-o", data, "--", TRUTH, "1"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run(["perf", "script", "--no-inline", "-F", "ip,sym,srcline", "-i", data], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=True).stdout
        theirs = {}
        for name, line in re.findall(r"^ +[0-9a-f]+ (\w+)\n +truth\.c:(\d+)", text, re.M):
            theirs.setdefault(name, {}).setdefault(int(line), 0)
            theirs[name][int(line)] += 1
        compared = 0
        for name, lines in theirs.items():
            ours = {}
            for (outer, _, line, _), n in counts.items():
                if outer == name:
                    ours[line] = ours.get(line, 0) + n
            if sum(lines.values()) >= 20 and ours:
                most = max(lines, key=lines.get)
                self.assertGreater(ours.get(most, 0), 0.3 * sum(ours.values()), f"{name}: {ours} {lines}")
                compared += 1
        self.assertGreaterEqual(compared, 5, f"{theirs} {text[:500]}")

    def record_with_perf(self, program, *args):
        """perf.data of a program; 8 KiB of the stack, perf's default: a recording of all processors would lose half of it."""
        data = self.dir / "perf.data"
        subprocess.run(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock:u", "--call-graph", "dwarf", "-o", data, "--", program, *args],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return data

    def addresses(self, data, *flags):
        """The stacks of a perf.data, innermost first, as places in a page: what perf script says of an address, that of the file or that
        of the process, has these bits in common; and why each ends."""
        sites = {int(r[0]): (r[1], int(r[2]) + int(r[3]) - int(r[4]) & 0xfff) for r in self.query(
            data, "select c.id, c.parent_id, f.rel_pc, m.start, m.exact_offset from stack_profile_callsite c join stack_profile_frame f "
                  "on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping", *flags)}
        stacks, errors = [], []
        for site, error in self.query(data, "select callsite_id, coalesce(unwind_error, '') from perf_sample order by ts, id", *flags):
            stack = []
            while site not in ("[NULL]", ""):
                site, address = sites[int(site)]
                stack.append(address)
            stacks.append(stack)
            errors.append(error)
        return stacks, errors

    @unittest.skipUnless(shutil.which("perf"), "needs perf (linux-perf)")
    def test_copies_of_perf_are_unwound(self):
        """--symbols auto unwinds what `perf record --call-graph dwarf` has copied, as perf script does; without it nothing is opened."""
        data = self.record_with_perf(TRUTH, "1")
        text = subprocess.run(["perf", "script", "--no-inline", "-F", "ip", "-i", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=True).stdout
        theirs = [[int(line, 16) & 0xfff for line in block.split()] for block in text.split("\n\n") if block.strip()]
        stacks, errors = self.addresses(data, "--symbols", "auto")
        self.assertGreater(len(stacks), 300)
        self.assertEqual(len(stacks), len(theirs))
        same = sum(a == b for a, b in zip(stacks, theirs))
        longer = sum(len(a) > len(b) and a[:len(b)] == b for a, b in zip(stacks, theirs))
        print(f"{len(stacks)} stacks: {same} as perf's, {longer} reach further; {sum(e != '' for e in errors)} have an error")
        self.assertGreater(same + longer, 0.98 * len(stacks))
        self.assertLess(sum(e != "" for e in errors), 0.02 * len(stacks))
        cached = ["--cache=" + str(self.dir / "cache")]
        self.assertEqual(self.addresses(data, *cached)[0], self.addresses(data)[0])  # the entry of this is not used for
        for _ in range(2):
            self.assertEqual(self.addresses(data, *cached, "--symbols", "auto")[0], stacks)
        snapshot = self.dir / "snapshot"
        subprocess.run([TP_SHELL, "snapshot", data, "-o", snapshot], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.query(snapshot, "select 1", "--symbols", "auto")
        plain, errors = self.addresses(data)
        self.assertEqual({len(s) for s in plain}, {1})
        self.assertEqual(set(errors), {""})

    @unittest.skipUnless(shutil.which("perf"), "needs perf (linux-perf)")
    def test_another_file_in_its_place_is_not_believed(self):
        """The program that lies there now is not the one that ran: its tables would make false stacks."""
        program = self.dir / "program"
        shutil.copy(TRUTH, program)
        env = {**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(TRUTH_LIBRARY).resolve().parent)}
        data = self.dir / "perf.data"
        subprocess.run(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock:u", "--call-graph", "dwarf", "-o", data, "--", program, "1"],
                       check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        program.unlink()
        shutil.copy("/bin/true", program)
        inside = "select count(*) from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id " \
                 f"join stack_profile_mapping m on m.id = f.mapping where m.name = '{program}' and "
        (leaves,), = self.query(data, inside + "c.depth = 0")
        self.assertGreater(int(leaves), 300)
        self.assertEqual(self.query(data, inside + "(c.depth > 0 or s.unwind_error is not 'invalid_elf')", "--symbols", "auto"), [["0"]])

    def kernel_names(self, data, *flags, within=()):
        """{name: samples} of where the kernel ran."""
        sql = ("select coalesce(y.name, ''), count(*) from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id join "
               "stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping left join "
               "stack_profile_symbol y using (symbol_set_id) where m.name glob '[[]kernel.kallsyms]*' group by 1")
        p = subprocess.run([*within, TP_SHELL, "query", *flags, "--format", "csv", data, sql], stdout=subprocess.PIPE, text=True, check=True)
        return {name: int(n) for name, n in csv.reader(p.stdout.splitlines()[1:])}

    @unittest.skipUnless(shutil.which("perf"), "needs perf (linux-perf)")
    def test_functions_of_the_kernel(self):
        """Of a perf.data: by the kernel that runs, as perf names them; by a vmlinux of its release where there is one."""
        data = self.dir / "perf.data"
        subprocess.run(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock:k", "-o", data, "--", "dd", "if=/dev/urandom", "of=/dev/null",
                        "bs=1M", "count=300"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run(["perf", "script", "-F", "ip,sym,dso", "-i", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout
        theirs = {}
        for name in re.findall(r"^ *[0-9a-f]+ (\w+) \(\[kernel\.kallsyms\]\)", text, re.M):
            theirs[name] = theirs.get(name, 0) + 1
        if sum(theirs.values()) < 50:
            self.skipTest("perf does not see the kernel")
        self.assertEqual(set(self.kernel_names(data)), {""})
        ours = self.kernel_names(data, "--symbols", "auto")
        same = sum(min(n, theirs.get(name, 0)) for name, n in ours.items())
        self.assertGreater(same, 0.95 * sum(theirs.values()), f"{ours} {theirs}")
        if not os.path.isdir("/boot"):
            return
        source, vmlinux = self.dir / "vmlinux.s", self.dir / "vmlinux"
        source.write_text(".globl whole_kernel\n.type whole_kernel, @function\nwhole_kernel: .skip 0x4000000\n.size whole_kernel, 0x4000000\n")
        subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,-e,whole_kernel", source, "-o", vmlinux], check=True)
        release = os.uname().release
        inside = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs t /boot && cp {vmlinux} /boot/vmlinux-{release} && exec "$@"', "sh"]
        self.assertEqual(set(self.kernel_names(data, "--symbols", "auto", within=inside)), {"whole_kernel"})

    def test_a_program_in_another_mount_namespace(self):
        """As in a container: its file is where nobody else sees it. It is unwound, and has its build id."""
        box = self.dir / "box"
        box.mkdir()
        p = self.spawn("unshare", "-m", "sh", "-c", f'mount -t tmpfs t {box} && cp {TRUTH} {box}/program && exec {box}/program 60')
        wait_for(lambda: pathlib.Path(f"/proc/{p.pid}/cmdline").read_bytes().startswith(f"{box}/program".encode()), what="the program")
        self.assertFalse((box / "program").exists())
        trace, *_ = self.profile("-F", 499, "-g", "--dwarf", "-t", "2s", "-p", p.pid)
        p.kill()
        stacks = self.stacks(trace, "program", tid=p.pid)
        self.assertGreater(len(stacks), 100)
        self.assertGreater(sum("main" in s for s, _ in stacks), 0.99 * len(stacks))
        ids = self.query(trace, f"select distinct build_id from stack_profile_mapping where name = '{box}/program'")
        self.assertEqual(ids, self.query(trace, "select distinct build_id from stack_profile_mapping where name = "
                                                f"'{box}/program' and build_id != ''"))
        self.assertEqual(len(ids), 1)

    @unittest.skipUnless(shutil.which("perf"), "needs perf (linux-perf)")
    def test_perf_record_finds_the_same(self):
        _, truth, found, whole = self.check(TRUTH)
        data = self.record_with_perf(TRUTH, str(SECONDS))
        text = subprocess.run(["perf", "script", "--no-inline", "-F", "ip,sym", "-i", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=True).stdout
        theirs = [([line.split(None, 1)[1] if " " in line.strip() else "?" for line in block.splitlines()
                    if line.strip()], "")
                  for block in text.split("\n\n") if block.strip()]
        shares = self.shares(theirs, truth)
        reached = sum("main" in s for s, _ in theirs) / len(theirs)
        print(f"perf: {len(theirs)} samples, {100 * reached:.2f} % reach main")
        self.assertGreaterEqual(whole, reached - 0.003)
        top = sorted(found, key=found.get, reverse=True)[:10]
        top_of_perf = sorted(shares, key=shares.get, reverse=True)[:10]
        # functions whose true shares are close may change places in either; three seconds have a third of the samples
        for mine, other in zip(top, top_of_perf):
            self.assertLess(abs(truth[mine] - truth[other]), 2 if LONG else 4, f"{top} {top_of_perf}")
        self.assertEqual(set(top[:9]), set(top_of_perf[:9]))


if __name__ == "__main__":
    if os.geteuid() != 0 or not can_sample():
        print("skipped: needs root and a kernel that lets it sample (perf_event_open)")
        sys.exit(77)
    main()
