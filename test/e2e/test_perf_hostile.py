"""tracebox traced_perf samples programs that make it hard: files of names that are not theirs, code that comes and goes, processes
that end, stacks that lead nowhere. Nothing of others is read, nothing stops the daemon, and each sample is told."""
import ctypes
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

from harness import TP_SHELL, TRACEBOX, main, wait_for
from sampling import CONFIG, PerfCase, can_sample

HOSTILE = os.environ.get("HOSTILE", "build/dev/hostile")
NOBODY = 65534
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18


class Hostile(PerfCase):
    def record_dwarf(self, ms=2000, scope='scope { target_cmdline: "hostile" }', more=""):
        return self.record((CONFIG % (ms, "frequency: 499", scope, "ring_buffer_pages: 2048 ring_buffer_read_period_ms: 20 " + more)).replace("UNWIND_KERNEL_FRAME_POINTER", "UNWIND_DWARF"))

    def samples(self, trace, pids=()):
        """(how many, with a stack, the errors of their stacks), of processes or of all that are in scope."""
        which = f"process.pid in ({', '.join(map(str, pids))})" if pids else "callsite_id is not null"
        rows = self.query(trace, "select coalesce(unwind_error, ''), count(*), count(callsite_id) from perf_sample join thread using (utid) join "
                          f"process using (upid) where cpu_mode = 'user' and {which} group by 1")
        return sum(int(r[1]) for r in rows), sum(int(r[2]) for r in rows), {r[0] for r in rows} - {""}

    def check_daemon(self, trace):
        self.assertIsNone(self.perf.poll())
        self.assertEqual(self.query(trace, "select name, value from stats where value > 0 and (name glob 'stackprofile_*' or name in "
                                           "('interned_data_tokenizer_errors', 'perf_guardrail_stop_ts'))"), [])

    def start_as_nobody(self, program, *args):
        """A copy, as another user may not get to where the program is."""
        os.chmod(self.dir, 0o755)
        copy = self.dir / pathlib.Path(program).name
        if not copy.exists():
            shutil.copy(program, copy)
        p = subprocess.Popen([copy, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, cwd="/")
        self.procs.append(p)
        return p

    def test_names_of_made_code_are_the_process_s_own(self):
        """By the truth of a file that is one's own; then as a link, a FIFO, a directory, a file of another user, and one without end."""
        secret = self.dir / "secret.map"

        def own(path, line):
            path.write_text(line)
            os.chown(path, NOBODY, NOBODY)

        def link(path, line):
            secret.write_text(line)
            path.symlink_to(secret)

        def endless(path, line):
            own(path, line)
            os.truncate(path, 1 << 40)

        kinds = {"own": (own, True), "link": (link, False), "fifo": (lambda path, line: os.mkfifo(path), False),
                 "directory": (lambda path, line: path.mkdir(), False), "of_root": (lambda path, line: path.write_text(line), False),
                 "endless": (endless, True), "hard_link": (None, False)}

        def hard_link(path, line):
            other = path.with_name(path.name + ".other")
            other.write_text(line)
            made.append(other)
            os.link(other, path)
        kinds["hard_link"] = (hard_link, False)
        made, running = [], {}
        try:
            for kind, (make, _) in kinds.items():
                p = running[kind] = self.start_as_nobody(HOSTILE, "jit", "20")
                address, size = p.stdout.readline().split()
                path = pathlib.Path(f"/tmp/perf-{p.pid}.map")
                made.append(path)
                make(path, f"{int(address, 16):x} {int(size):x} name_{kind}\n")
                p.stdin.write("\n")
                p.stdin.flush()
            trace = self.record_dwarf(3000)
            self.check_daemon(trace)
            names = {r[0] for r in self.query(trace, "select distinct name from stack_profile_frame where name glob 'name_*'")}
            self.assertEqual(names, {f"name_{kind}" for kind, (_, right) in kinds.items() if right})
            for kind, p in running.items():
                self.assertGreater(self.samples(trace, [p.pid])[1], 20, kind)
        finally:
            for p in running.values():
                p.kill()
                p.wait()
                p.stdin.close()
                p.stdout.close()
            for path in made:
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                elif path.is_symlink() or path.exists():
                    path.unlink()

    def test_code_that_comes_and_goes(self):
        """The address of made code is in a map, or was; the stack is told as far as it goes."""
        p = self.spawn(HOSTILE, "maps", "20")
        trace = self.record_dwarf()
        self.check_daemon(trace)
        n, stacks, errors = self.samples(trace, [p.pid])
        self.assertGreater(stacks, 50)
        self.assertEqual(n, stacks)
        self.assertLessEqual(errors, {"invalid_map", "unwind_info", "memory_invalid"})

    def test_processes_that_end(self):
        """Each lives for 3 ms, and is looked at up to 100 ms later: by what the kernel has told of its maps."""
        load = [self.spawn(HOSTILE, "quick", "20") for _ in range(2)]
        trace = self.record_dwarf()
        self.check_daemon(trace)
        n, stacks, errors = self.samples(trace)
        processes = int(self.query(trace, "select count(distinct upid) from perf_sample join thread using (utid) where callsite_id is not null")[0][0])
        self.assertGreater(processes, 5)
        self.assertEqual(n, stacks)
        self.assertLessEqual(errors, {"invalid_map", "unwind_info", "memory_invalid"})
        for p in load:
            p.kill()

    def test_stacks_that_lead_nowhere(self):
        """A frame that is its own caller; a stack that is larger than its copy."""
        circle, deep = self.spawn(HOSTILE, "frames", "20"), self.spawn(HOSTILE, "deep", "20")
        trace = self.record_dwarf()
        self.check_daemon(trace)
        n, stacks, errors = self.samples(trace, [circle.pid])
        self.assertGreater(stacks, 50)
        self.assertEqual(n, stacks)
        self.assertLessEqual(errors, {"repeated_frame", "unwind_info", "memory_invalid", "max_frames_exceeded", "invalid_map"})
        if os.uname().machine == "x86_64":
            self.assertTrue(errors)
        n, stacks, errors = self.samples(trace, [deep.pid])
        self.assertGreater(stacks, 50)
        self.assertEqual((n, errors), (stacks, {"memory_invalid"}))
        depth = int(self.query(trace, "select max(depth) from stack_profile_callsite")[0][0])
        self.assertGreater(depth, 40)
        self.assertLess(depth, 1001)

    def reasons(self, trace, pid):
        """Of the samples of a process: how many have each reason, and how many there are."""
        text = subprocess.run([TP_SHELL, "convert", "text", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout
        samples = [s for s in re.findall(r"perf_sample \{([^{}]*)\}", text) if re.search(rf"\bpid: {pid}\b", s)]
        found = [m[1] for s in samples for m in [re.search(r"sample_skipped_reason: PROFILER_SKIP_(\w+)", s)] if m]
        return {r: found.count(r) for r in found}, len(samples)

    def stat(self, trace, name):
        return int(self.query(trace, f"select coalesce(sum(value), 0) from stats where name = '{name}'")[0][0])

    def test_processes_that_cannot_be_read_are_told(self):
        """The daemon sees a process run whose maps stay empty: what waits when the time is over is dropped in the queue, what comes later
        at once."""
        self.perf.kill()
        self.perf.wait()
        p = self.spawn(HOSTILE, "deep", "20")
        libc = ctypes.CDLL(None, use_errno=True)
        maps = f"/proc/{p.pid}/maps".encode()

        def hide_maps():
            if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or \
                    libc.mount(b"/dev/null", maps, None, MS_BIND, None):
                raise OSError(ctypes.get_errno(), "mount")

        try:
            self.perf = self.start_perf(preexec_fn=hide_maps)
        except subprocess.SubprocessError:
            self.skipTest("cannot hide a file of /proc")
        trace = self.record(CONFIG % (2000, "frequency: 199", "", "remote_descriptor_timeout_ms: 300"))
        found, n = self.reasons(trace, p.pid)
        self.assertEqual(set(found), {"UNWIND_STAGE", "READ_STAGE"})
        self.assertEqual(sum(found.values()), n)
        self.assertGreater(found["UNWIND_STAGE"], 0)
        self.assertGreater(found["READ_STAGE"], 0)
        self.assertGreaterEqual(self.stat(trace, "perf_samples_skipped"), n)

    def test_stacks_beyond_the_footprint_are_told(self):
        p = self.spawn(HOSTILE, "deep", "20")
        trace = self.record_dwarf(more="max_enqueued_footprint_kb: 16")
        found, n = self.reasons(trace, p.pid)
        self.assertEqual(found, {"UNWIND_ENQUEUE": n})
        self.assertGreater(n, 20)
        self.assertGreaterEqual(self.stat(trace, "perf_samples_skipped_dataloss"), n)

    def test_what_lies_in_place_of_a_program_is_not_opened(self):
        """Its owner puts a link to something else there once its maps are known: it might be a device, which does something when it is
        opened. Here it is a directory, where no perf record of somebody else gets stuck."""
        p = self.start_as_nobody(HOSTILE, "deep", "20")
        program, other = self.dir / pathlib.Path(HOSTILE).name, self.dir / "other"
        other.mkdir()
        FAN_OPEN_DIRECTORY, FAN_NONBLOCK, FAN_MARK_ADD, AT_FDCWD = 0x40000020, 2, 1, -100
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.fanotify_init(FAN_NONBLOCK, os.O_RDONLY | os.O_NONBLOCK)
        if watch < 0 or libc.fanotify_mark(watch, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_DIRECTORY), AT_FDCWD, os.fsencode(other)):
            self.skipTest("cannot watch who opens a file")
        openers = set()

        def opened(*pids):
            """Whether one of these processes has opened it; a perf record of somebody else may."""
            try:
                for _, _, _, _, _, fd, pid in struct.iter_unpack("=IBBHQii", os.read(watch, 4096)):
                    openers.add(pid)
                    os.close(fd)
            except BlockingIOError:
                pass
            return bool(openers & set(pids))
        profile = subprocess.Popen([TRACEBOX, "profile", "-F", "199", "-g", "-t", "4s", "-p", str(p.pid), "-o", self.dir / "p"],
                                   env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.procs.append(profile)
        wait_for(lambda: "session 1" in self.log(), what="the session")
        time.sleep(2)
        program.unlink()
        program.symlink_to(other)
        out, err = profile.communicate(timeout=60)
        self.assertRegex(err, r"\b[1-9]\d* samples of running threads")
        self.assertIn("[hostile]", out)
        self.assertFalse(opened(profile.pid, self.perf.pid), out)
        shell = self.spawn(TP_SHELL, "query", "--symbols", "auto", self.dir / "p", "select 1")
        shell.communicate()
        self.assertFalse(opened(shell.pid))
        os.close(os.open(other, os.O_RDONLY))
        self.assertTrue(opened(os.getpid()))  # the watch works
        os.close(watch)

    def test_processes_out_of_scope_are_told(self):
        p = self.spawn(HOSTILE, "deep", "20")
        trace = self.record_dwarf(scope='scope { exclude_cmdline: "hostile" }')
        found, n = self.reasons(trace, p.pid)
        self.assertEqual(found, {"NOT_IN_SCOPE": n})
        self.assertGreater(n, 20)


if __name__ == "__main__":
    if os.geteuid() != 0 or not can_sample():
        print("skipped: needs root and a kernel that lets it sample (perf_event_open)")
        sys.exit(77)
    main()
