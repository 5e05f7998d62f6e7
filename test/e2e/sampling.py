"""Whether this machine lets a test sample, and what tests of traced_perf share."""
import ctypes
import os
import platform
import struct
import subprocess

from harness import TRACEBOX, Case

CONFIG = """
buffers { size_kb: 32768 }
duration_ms: %d
data_sources { config { name: "linux.perf" perf_event_config {
  timebase { %s }
  callstack_sampling { kernel_frames: true user_frames: UNWIND_KERNEL_FRAME_POINTER %s } %s } } }
"""


def can_sample():
    """Opens cpu-clock for all tasks of cpu 0, as traced_perf does."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
    attr = bytearray(112)
    struct.pack_into("<IIQQ", attr, 0, 1, len(attr), 0, 10000000)  # software, cpu-clock
    fd = libc.syscall(number, (ctypes.c_char * len(attr)).from_buffer(attr), -1, 0, -1, 0) if number else -1
    if fd >= 0:
        os.close(fd)
    return fd >= 0


class PerfCase(Case):
    """A service, and traced_perf with it."""

    def setUp(self):
        super().setUp()
        self.start_traced()
        self.perf = self.start_perf()

    def start_perf(self, **kw):
        r, w = os.pipe()
        with open(self.dir / "perf.log", "ab") as log:
            p = subprocess.Popen([TRACEBOX, "traced_perf"], env={**self.env, "TRACED_PERF_NOTIFY_FD": str(w)},
                                 stderr=log, pass_fds=[w], **kw)
        os.close(w)
        self.procs.append(p)
        self.assertEqual(os.read(r, 1), b"1", (self.dir / "perf.log").read_text())
        os.close(r)
        return p

    def record(self, text, code=0):
        trace = self.dir / "trace.pftrace"
        _, self.err = self.finish(self.perfetto("--txt", "-c", self.config(text), "-o", trace), code)
        return trace

    def frames(self, trace, pid):
        """Samples of a process: lists of (mapping, build id, rel_pc), the innermost first."""
        rows = self.query(trace, f"""
            with recursive walk(sample, depth, callsite) as (
              select s.id, 0, s.callsite_id from perf_sample s join thread using (utid) join process using (upid)
              where process.pid = {pid} and s.callsite_id is not null
              union all select sample, walk.depth + 1, parent_id from walk join stack_profile_callsite c on c.id = callsite
              where parent_id is not null)
            select sample, m.name, m.build_id, f.rel_pc, f.name from walk join stack_profile_callsite c on c.id = callsite
            join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping
            order by sample, walk.depth""")
        stacks = {}
        for sample, mapping, build_id, pc, name in rows:
            stacks.setdefault(sample, []).append((mapping, build_id, int(pc), name))
        return list(stacks.values())
