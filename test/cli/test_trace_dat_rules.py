"""What trace.dat may hold, rule by rule, on made files of a few events."""
import csv
import io
import struct
import unittest

import harness
from trace_dat_writer import (BTF, BUFFER, CMDLINES, CPUCOUNT, CPUSTAT, DATE, GUEST, HOOK, KALLSYMS, LAST_BOOT_INFO, MODULES, OFFSET, PADDING, PROCMAPS, TIME_SHIFT,
                              TRACECLOCK, TRACEID, TSC2NSEC, UNAME, VERSION, Event, Kernel, TraceDat)

TICK = Event(300, "tick", ("int n", 4, 1))
TICKS_AND_STATS = ("SELECT '' AS name, ts, cpu.cpu, extract_arg(ftrace_event.arg_set_id, 'n') AS n FROM ftrace_event JOIN cpu USING (ucpu) WHERE name = 'tick' UNION ALL "
                   "SELECT name, value, idx, NULL FROM stats WHERE value > 0 AND severity <> 'info' ORDER BY 1, 2, 3")
MADE = {"made": [TICK]}
KERNELS = [Kernel(big, long) for big in (False, True) for long in (8, 4)]
FORMS = [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]
SWITCH = Event(316, "sched_switch", ("char prev_comm[16]", 16, 0), ("pid_t prev_pid", 4, 1), ("int prev_prio", 4, 1), ("long prev_state", "long", 1),
               ("char next_comm[16]", 16, 0), ("pid_t next_pid", 4, 1), ("int next_prio", 4, 1))
PRINT = Event(5, "print", ("unsigned long ip", "long", 0), ("char buf[]", 0, 0))


def ticks(k, time, *numbers, step=10, **more):
    """A sub-buffer with a tick each 10 ns."""
    return k.sub_buffer(time, [k.entry(step if i else 0, TICK.pack(k, 40, n)) for i, n in enumerate(numbers)], **more)


class TraceDatRules(harness.Case):
    files, last = 0, None

    def written(self, data):
        TraceDatRules.files += 1
        path = self.dir / f"{self.files}.dat"
        path.write_bytes(data if isinstance(data, bytes) else data.bytes())
        return path

    def rows(self, files, sql):
        files = files if isinstance(files, list) else [files]
        paths = [f if not isinstance(f, (bytes, TraceDat)) else self.written(f) for f in files]
        return [list(r.values()) for r in csv.DictReader(io.StringIO(self.run_shell("query", *paths, sql).stdout.decode()))]

    def read(self, files):
        """Both of the following, by one run."""
        contents = [f if isinstance(f, bytes) else f.bytes() for f in files]
        if not self.last or self.last[0] != contents:
            self.last = contents, self.rows(contents, TICKS_AND_STATS)
        return self.last[1]

    def ticks(self, *files):
        return [tuple(map(int, r[1:])) for r in self.read(files) if not r[0]]

    def told(self, *files):
        return {(name, idx.replace("[NULL]", "")): int(value) for name, value, idx, _ in self.read(files) if name}

    def of_pages(self, k, *pages, version=7, compression="none", events=MADE, **more):
        return TraceDat(k, version, compression, events, **more).buffer(b"", {0: list(pages)})

    def usual(self, k, version=7, compression="none", **more):
        return TraceDat(k, version, compression, MADE, **more).buffer(b"", {0: [ticks(k, 1000, 1, 2), ticks(k, 2000, 3)], 1: [ticks(k, 1005, -4)]})

    USUAL = [(1000, 0, 1), (1005, 1, -4), (1010, 0, 2), (2000, 0, 3)]

    # 1 to 3: the container

    def test_forms(self):
        for k in [Kernel(big, long, page) for big, long, page in ((False, 8, 4096), (False, 4, 256), (True, 8, 65536), (True, 4, 4096), (True, 4, 256))]:
            for version, compression in FORMS:
                with self.subTest(big=k.big, long=k.long, page=k.page, version=version, compression=compression):
                    f = self.usual(k, version, compression)
                    self.assertEqual(self.ticks(f), self.USUAL)
                    self.assertEqual(self.told(f), {})

    def test_longs_of_the_recording_program(self):
        """They need not be those of the kernel, whose pages header_page describes."""
        k, program = Kernel(long=8), Kernel(long=4)
        f = self.usual(k)
        f.head = lambda: TraceDat.head(TraceDat(program, 7))
        self.assertEqual(self.ticks(f), self.USUAL)

    def test_other_versions_are_refused(self):
        for version in (b"5", b"8", b"66", b"", b"6.1"):
            whole = self.usual(KERNELS[0]).bytes()
            got = self.run_shell("query", self.written(whole[:10] + version + whole[11:]), "SELECT 1", code=1)
            self.assertIn(b"trace.dat version '%s'" % version, got.stderr)

    def test_other_compressions_are_refused(self):
        whole = self.usual(KERNELS[0]).bytes().replace(b"none\x001.0\0", b"lzma\x001.0\0", 1)
        self.assertIn(b"compressed with 'lzma'", self.run_shell("query", self.written(whole), "SELECT 1", code=1).stderr)

    def test_version_6(self):
        for k in KERNELS:
            stands = TRACECLOCK, b"[global] mono\0"
            for clock in (b"", k.u64(8) + b"[global]", k.u64(8) + b"[global]\0"):  # behind the table
                for options in ([], [stands], [stands, (99, b"unknown"), (CPUSTAT, b"")]):
                    self.assertEqual(self.ticks(self.usual(k, 6, options=options, clock_text=clock)), self.USUAL)
            f = self.usual(k, 6, options=[(CPUCOUNT, k.u32(5))])  # the table has as many entries
            f.buffers[0][1][4] = [ticks(k, 3000, 9)]
            f.buffer(b"more", {3: [ticks(k, 4000, 10)]})
            self.assertEqual(self.ticks(f), self.USUAL + [(3000, 4, 9), (4000, 3, 10)])
            fewer = self.usual(k, 6, options=[(CPUCOUNT, k.u32(1))])
            self.assertEqual(self.ticks(fewer), self.USUAL)

    def test_version_6_instances(self):
        for k in KERNELS:
            f = self.usual(k, 6).buffer(b"one", {1: [ticks(k, 1500, 7)]}).buffer(b"two", {0: [ticks(k, 1600, 8)], 1: []})
            self.assertEqual(self.ticks(f), sorted(self.USUAL + [(1500, 1, 7), (1600, 0, 8)]))

    def test_version_6_tables_that_lead_nowhere(self):
        k = KERNELS[0]
        whole = bytearray(self.usual(k, 6).bytes())
        table = whole.index(b"flyrecord\0") + 10
        far = whole[:table + 16] + k.u64(1 << 40, 4096) + whole[table + 32:]
        self.assertEqual(self.ticks(bytes(far)), [r for r in self.USUAL if r[1] == 0])
        self.assertEqual(self.told(bytes(far)), {("trace_dat_truncated", "0"): 1})
        long = whole[:table + 24] + k.u64(1 << 40) + whole[table + 32:]  # more than there is: what is there
        self.assertEqual(self.ticks(bytes(long)), self.USUAL)
        self.assertEqual(self.told(bytes(long)), {("trace_dat_truncated", "0"): 1})
        died = whole[:table] + bytes(32) + whole[table + 32:]
        self.assertEqual(self.ticks(bytes(died)), [])
        self.assertEqual(self.told(bytes(died)), {("trace_dat_truncated", "0"): 1})
        whole[table - 10:table] = b"something\0"
        self.assertEqual(self.run_shell("query", self.written(bytes(whole)), "SELECT 1", code=1).stdout, b"")

    def test_tables_that_lead_to_the_same_place(self):
        """Bytes that are not compressed are read as often as they can be there, for the memory that rows take."""
        k, n = KERNELS[0], 500
        whole = bytearray(self.usual(k, 6, n_cpus=n).bytes())
        table = whole.index(b"flyrecord\0") + 10
        whole[table:table + 16 * n] = whole[table:table + 16] * n
        cpus = {cpu for _, cpu, _ in self.ticks(bytes(whole))}
        self.assertTrue(1 <= len(cpus) <= len(whole) // k.page < n, len(cpus))
        self.assertTrue(self.told(bytes(whole))[("trace_dat_truncated", "0")])

    def test_sections(self):
        """Options may be compressed, and go on elsewhere; the size of a CPU's data may hold the number of its chunks; chunks have any size."""
        for k in KERNELS[1:3]:
            for compression in ("zlib", "zstd"):
                for chunk in (1, 2, 64):
                    for counted in (False, True):
                        f = self.usual(k, 7, compression, squeeze_options=True, count_in_size=counted, chunk_pages=chunk, more=[(VERSION, b"late\0"), (77, b"?")])
                        self.assertEqual(self.ticks(f), self.USUAL)
                        self.assertEqual(self.rows(f, "SELECT str_value FROM metadata WHERE name = 'trace_dat_writer'"), [["late"]])

    def test_options_in_a_circle(self):
        """Each section of options is read once."""
        k = KERNELS[0]
        for at_end in (False, True):
            whole = bytearray(self.usual(k).bytes())
            first = struct.unpack_from("<Q", whole, 27)[0]
            second = struct.unpack_from("<Q", whole, len(whole) - 8)[0]
            place = second + 16 + 6 if at_end else len(whole) - 8
            whole[place:place + 8] = k.u64(first)
            self.assertEqual(self.ticks(bytes(whole)), self.USUAL)
            self.assertEqual(self.told(bytes(whole)), {("trace_dat_bad_section", "0"): 1})

    def test_sections_that_are_not_what_they_should_be(self):
        """The others are read."""
        k = KERNELS[0]
        for number, size in ((KALLSYMS, 8), (CMDLINES, 8), (KALLSYMS, 3), (BUFFER, 12), (HOOK, 0), (MODULES, 4), (BTF, 8)):
            f = self.usual(k, more=[(number, bytes(size))])
            self.assertEqual(self.ticks(f), self.USUAL, number)
            self.assertEqual(self.told(f), {("trace_dat_bad_section", "0"): 1} if number not in (HOOK, MODULES, BTF) and size != 3 else self.told(f), number)

    def test_sizes_without_bounds(self):
        k = KERNELS[0]
        f = self.usual(k, 7, "zlib")
        honest = f.cpu_data
        for count, packed, size in ((2**32 - 1, None, None), (None, 2**32 - 1, None), (None, None, 2**31 + 1), (None, None, 2**32 - 1), (0, None, None)):
            def absurd(pages, page):
                data = honest(pages, page)
                if not data:
                    return data
                a, b, c = struct.unpack_from("<III", data)
                return struct.pack("<III", a if count is None else count, packed or b, size or c) + data[12:]
            f.cpu_data = absurd
            got, told = self.ticks(f), self.told(f)
            self.assertLessEqual(set(got), set(self.USUAL))
            self.assertTrue(count == 0 or told.get(("trace_dat_truncated", "0")), (count, packed, size))

    def test_many_cpus(self):
        k = KERNELS[0]
        f = self.usual(k)
        f.buffers[0][1][1023] = [ticks(k, 3000, 5)]
        f.buffers[0][1][1024] = [ticks(k, 3000, 6)]
        f.buffers[0][1][2**32 - 1] = [ticks(k, 3000, 7)]
        self.assertEqual(self.ticks(f), self.USUAL + [(3000, 1023, 5)])
        self.assertEqual(self.told(f), {("trace_dat_bad_section", "0"): 2})

    def test_more_rows_than_there_are_cpus(self):
        """Options may be compressed: 9 KB had 100,000 rows, each of which was gone to."""
        k = KERNELS[0]
        f = self.usual(k, 7, "zlib", squeeze_options=True)
        honest, rows = f.option, 2000
        def option(number, data):
            if number == BUFFER:
                clock = data.index(b"\0", data.index(b"\0", 8) + 1) + 1
                data = data[:clock + 4] + k.u32(rows) + data[clock + 8:clock + 28] * rows
            return honest(number, data)
        f.option = option
        cpus = self.rows(f, "SELECT count(*) FROM ftrace_event")
        self.assertLessEqual(int(cpus[0][0]), 1024 * len(self.USUAL))
        self.assertEqual(self.told(f)[("trace_dat_bad_section", "0")], 1)

    def test_cut_anywhere(self):
        """What came before is there, and the loss is told. Each form at other bytes; at every byte: unit.cuts."""
        k, step = Kernel(True, 4, 128), 37
        sql = "SELECT group_concat(ts), (SELECT sum(value) FROM stats WHERE name IN ('trace_dat_truncated', 'trace_dat_bad_section')) FROM ftrace_event"
        for first, (version, compression) in enumerate(FORMS):
            whole, usual = self.usual(k, version, compression).bytes(), {str(ts) for ts, _, _ in self.USUAL}
            for at in range(27 + first, len(whole), step):
                done = self.run_shell("query", self.written(whole[:at]), sql, code=None)
                if done.returncode:
                    self.assertIn(b"trace.dat", done.stderr)
                    continue
                times, told = list(csv.reader(io.StringIO(done.stdout.decode())))[1]
                there = set() if times == "[NULL]" else set(times.split(","))
                self.assertLessEqual(there, usual)
                self.assertTrue(there == usual or told != "[NULL]" and int(told), f"{version} {compression} cut at {at}: {there}")

    # 4: options

    def test_options_that_come_again(self):
        """Of texts the last one counts, but hooks are many."""
        k = KERNELS[1]
        f = self.usual(k, options=[(UNAME, b"Linux first 5.1 x86\0"), (VERSION, b"1\0"), (TRACECLOCK, b"[local] mono\0"), (HOOK, b"a:b,c/a:d,c\0")],
                       more=[(UNAME, b"Linux second 6.2 arm\0"), (VERSION, b"2\0"), (TRACECLOCK, b"local [mono] boot\n\0"), (HOOK, b"e:f,g/e:h,g\0")])
        self.assertEqual(self.rows(f, "SELECT name, sysname, release, arch FROM machine"), [["second", "Linux", "6.2", "arm"]])
        self.assertEqual(self.rows(f, "SELECT name, str_value FROM metadata WHERE name IN ('trace_dat_writer', 'trace_dat_clock') OR name GLOB 'trace_dat_hook*' ORDER BY name"),
                         [["trace_dat_clock", "mono"], ["trace_dat_hook", "a:b,c/a:d,c"], ["trace_dat_hook_2", "e:f,g/e:h,g"], ["trace_dat_writer", "2"]])

    def test_unknown_options_are_passed_over(self):
        for k in KERNELS:
            for version in (6, 7):
                f = self.usual(k, version, options=[(26, b""), (1000, b"x" * 300), (65535, b"\0"), (OFFSET, b"5\0")])
                self.assertEqual(self.ticks(f), [(ts + 5, cpu, n) for ts, cpu, n in self.USUAL])

    def test_numbers_in_texts(self):
        for text, offset in ((b"0", 0), (b"100", 100), (b"0x100", 256), (b"-1000", -1000), (b"-0x100", -256), (b"100\0", 100), (b"", 0)):
            self.assertEqual(self.ticks(self.usual(KERNELS[2], 6, options=[(OFFSET, text)])), [(ts + offset, cpu, n) for ts, cpu, n in self.USUAL], text)

    def test_date(self):
        """Microseconds, to be added for the wall clock."""
        for k in KERNELS:
            for version in (6, 7):
                f = self.usual(k, version, options=[(DATE, b"0x%x\0" % 1_700_000_000_000_007)])
                self.assertEqual(self.rows(f, "SELECT ts, to_realtime(ts) FROM ftrace_event ORDER BY ts LIMIT 1"), [["1000", "1700000000000008000"]])
        self.assertEqual(self.rows(self.usual(KERNELS[0]), "SELECT to_realtime(ts) FROM ftrace_event LIMIT 1"), [["[NULL]"]])

    def test_cpustat(self):
        """Of each CPU; a title comes before those of an instance, whose losses are the recording's, too."""
        k = KERNELS[0]
        text = lambda cpu, *n: (f"CPU: {cpu}\nentries: {n[0]}\noverrun: {n[1]}\ncommit overrun: {n[2]}\nbytes: {n[3]}\noldest event ts: {n[4]}.500000\n"
                                f"now ts: {n[5]}.700000\ndropped events: {n[6]}\nread events: {n[7]}\n\0").encode()
        f = self.usual(k, options=[(CPUSTAT, text(0, *range(1, 9))), (CPUSTAT, text(1, *range(11, 19)))],
                       more=[(CPUSTAT, b"\nBuffer: extra\n\n\0"), (CPUSTAT, text(1, *range(100, 108))), (CPUSTAT, b"\nBuffer: third\n\n\0"), (CPUSTAT, text(0, *range(200, 208)))])
        got = {(name, idx): int(v) for name, idx, v in self.rows(f, "SELECT name, idx, value FROM stats WHERE name GLOB 'ftrace_cpu_*' AND value <> 0")}
        names = ("entries", "overrun", "commit_overrun", "bytes", "oldest_event_ts", "now_ts", "dropped_events", "read_events")
        want = {(f"ftrace_cpu_{name}_end", cpu): i + base for cpu, base in (("0", 1), ("1", 11)) for i, name in enumerate(names)}
        want |= {("ftrace_cpu_overrun_delta", "0"): 2 + 201, ("ftrace_cpu_overrun_delta", "1"): 12 + 101, ("ftrace_cpu_commit_overrun_delta", "0"): 3 + 202,
                 ("ftrace_cpu_commit_overrun_delta", "1"): 13 + 102, ("ftrace_cpu_dropped_events_delta", "0"): 7 + 206, ("ftrace_cpu_dropped_events_delta", "1"): 17 + 106}
        self.assertEqual(got, want)

    def test_memory_maps(self):
        k = KERNELS[3]
        f = self.usual(k, options=[(PROCMAPS, b"28 2 /bin/a\n1000 3000 /bin/a\nffff0000 ffff1000 /lib/b c\n29 1 /bin/x\n5 6 /x\n\0"), (PROCMAPS, b"2a 1 /bin/z\n7 8 /z\n\0")])
        self.assertEqual(self.rows(f, "SELECT pid, m.start, m.end, m.name FROM stack_profile_mapping m JOIN __intrinsic_mmap_record r ON r.mapping_id = m.id JOIN process USING (upid) "
                                      "WHERE m.start > 0 ORDER BY m.start"),
                         [["41", "5", "6", "/x"], ["42", "7", "8", "/z"], ["40", "4096", "12288", "/bin/a"], ["40", str(0xffff0000), str(0xffff1000), "/lib/b c"]])

    def test_addresses_of_the_boot_before(self):
        """They are moved by how far the kernel has moved."""
        k = KERNELS[0]
        call = Event(301, "funcgraph_entry", ("unsigned long func", 8, 0), ("int depth", 4, 1))
        there = self.of_pages(k, events={"ftrace": [call]}, kallsyms=b"0000000000005000 T _text\n0000000000005100 T later\n")
        there.buffers = []
        there.buffer(b"", {0: [k.sub_buffer(1000, [k.entry(0, call.pack(k, 40, 0x5104, 0))])]})
        there.buffer(b"boot", {0: [k.sub_buffer(2000, [k.entry(0, call.pack(k, 40, 0x1104, 0))])]})
        there.options.append((LAST_BOOT_INFO, b"boot:# comment\n1000\t[kernel]\n"))
        self.assertEqual(self.rows(there, "SELECT extract_arg(ftrace_event.arg_set_id, 'func') FROM ftrace_event ORDER BY ts"), [["later"], ["later"]])

    # 5: buffers

    def test_cpus_of_a_buffer(self):
        """In any order, with gaps, without data; sub-buffers have the size that the option says."""
        for compression in ("none", "zlib"):
            k = KERNELS[0]
            f = TraceDat(k, 7, compression, MADE)
            f.buffer(b"", {5: [ticks(k, 1000, 1)], 2: [], 0: [ticks(k, 1001, 2), ticks(k, 1002, 3)]})
            f.buffer(b"large", {1: [ticks(k, 1003, 4, size=1024), ticks(k, 1004, 5, size=1024)]}, page=1024)
            f.buffer(b"none", {})
            self.assertEqual(self.ticks(f), [(1000, 5, 1), (1001, 0, 2), (1002, 0, 3), (1003, 1, 4), (1004, 1, 5)])
            self.assertEqual(self.told(f), {})

    def test_sizes_of_sub_buffers_that_cannot_be(self):
        k = KERNELS[0]
        for size in (1, 15, 1 << 21, 2**32 - 1):
            f = self.usual(k).buffer(b"odd", {0: [ticks(k, 3000, 9)]}, page=size)
            self.assertEqual(self.ticks(f), self.USUAL, size)
            self.assertEqual(self.told(f), {("trace_dat_bad_section", "0"): 1})

    def test_instances(self):
        """One that has an event of a kind that the top buffer has, too: a row, and nothing else. Others mean what they say."""
        for version in (6, 7):
            k = KERNELS[1]
            switch = lambda a, b: SWITCH.pack(k, a, b"x", a, 120, 0, b"y", b, 120)
            mark = lambda text: PRINT.pack(k, 40, 0, text + b"\n\0")
            f = TraceDat(k, version, events={"sched": [SWITCH], "ftrace": [PRINT]}, n_cpus=1)
            f.buffer(b"", {0: [k.sub_buffer(1000, [k.entry(0, switch(0, 40)), k.entry(500, switch(40, 0))])]})
            f.buffer(b"i", {0: [k.sub_buffer(1000, [k.entry(0, switch(0, 40)), k.entry(20, mark(b"B|40|work")), k.entry(30, mark(b"E|40")), k.entry(450, switch(40, 0))])]})
            self.assertEqual(self.rows(f, "SELECT name, count(*) FROM ftrace_event GROUP BY name"), [["print", "2"], ["sched_switch", "4"]])
            self.assertEqual(self.rows(f, "SELECT ts, dur, tid FROM sched_slice JOIN thread USING (utid) WHERE tid"), [["1000", "500", "40"]])
            self.assertEqual(self.rows(f, "SELECT ts, dur, name FROM slice"), [["1020", "30", "work"]])
            self.assertEqual(self.rows(f, "SELECT value FROM stats WHERE name = 'trace_dat_instance_events_unparsed'"), [["2"]])
            f.buffers.pop(0)  # none but the instance: all of it counts
            if version == 7:
                self.assertEqual(self.rows(f, "SELECT ts, dur, tid FROM sched_slice JOIN thread USING (utid) WHERE tid"), [["1000", "500", "40"]])

    def test_events_without_a_format(self):
        """They are counted, also those of instances."""
        k = KERNELS[2]
        alien = Event(999, "alien", ("int n", 4, 1))
        page = lambda time: k.sub_buffer(time, [k.entry(0, TICK.pack(k, 40, 1)), k.entry(1, alien.pack(k, 40, 2)), k.entry(1, TICK.pack(k, 40, 3))])
        f = TraceDat(k, 7, events=MADE).buffer(b"", {0: [page(1000)]})
        self.assertEqual((self.ticks(f), self.told(f)), ([(1000, 0, 1), (1002, 0, 3)], {("trace_dat_unknown_event", "0"): 1}))
        f.buffer(b"i", {0: [page(2000), page(3000)]}).buffer(b"k", {1: [page(4000)]})
        self.assertEqual(len(self.ticks(f)), 8)
        self.assertEqual(self.told(f), {("trace_dat_unknown_event", "0"): 4})

    # 6: time

    def test_clocks(self):
        """Their names; what is no time is told."""
        for name, number in ((b"mono", 3), (b"mono_raw", 5), (b"boot", 6)):
            f = self.usual(KERNELS[0], options=[(TRACECLOCK, b"local [%s] x\0" % name)])
            self.assertEqual(self.rows(f, "SELECT int_value FROM metadata WHERE name = 'trace_time_clock_id'"), [[str(number)]])
        for name, told in ((b"counter", 1), (b"x86-tsc", 1), (b"local", 0), (b"perf", 0)):
            f = self.usual(KERNELS[0], options=[(TRACECLOCK, b"[%s]\0" % name)])
            self.assertEqual(sum(self.told(f).values()), told, name)

    def test_ticks(self):
        """128 bits, without a sign; then the offset."""
        for mult, shift, offset in ((3, 1, 0), (2**31 + 5, 31, 0), (2**32 - 1, 32, -7), (1, 0, 100), (795371089, 31, 0), (5, 63, 1)):
            for base in (1000, 3 * 10**15, 2**62):
                if (base * mult >> shift) < 2**62:
                    k = KERNELS[1]
                    f = self.of_pages(k, ticks(k, base, 1, 2, step=1000), options=[(TRACECLOCK, b"[x86-tsc]\0"), (TSC2NSEC, k.u32(mult, shift) + k.u64(12345)), (OFFSET, b"%d\0" % offset)])
                    self.assertEqual(self.ticks(f), [((base + d) * mult // 2**shift + offset, 0, n) for d, n in ((0, 1), (1000, 2))])

    # 7: pages

    def test_entries(self):
        """Payloads of all lengths, each with a time: small, large, absolute, of what was taken back."""
        for k in (Kernel(big, long, 4096) for big in (False, True) for long in (8, 4)):
            long = lambda n, size: TICK.pack(k, 40, n).ljust(size, b"\x55")
            base = (5 << 59) + 1000 - (5 << 59)
            entries = [k.entry(0, long(1, 12)), k.entry(1, long(2, 112)), k.entry(1, long(3, 116)), k.entry(1, long(4, 13), counted=True), k.entry(1, long(5, 400)),
                       k.word(PADDING, 5) + k.u32(12) + b"\xee" * 8, k.entry(0, long(6, 12)), k.extend((3 << 27) + 4), k.entry(2, long(7, 12)),
                       k.stamp(1 << 40), k.entry(3, long(8, 12)), k.word(PADDING, 0) + b"\xff" * 40]
            f = self.of_pages(k, k.sub_buffer(base, entries))
            after = base + 9 + (3 << 27) + 6
            self.assertEqual(self.ticks(f), [(base, 0, 1), (base + 1, 0, 2), (base + 2, 0, 3), (base + 3, 0, 4), (base + 4, 0, 5), (base + 9, 0, 6), (after, 0, 7),
                                             ((1 << 40) + 3, 0, 8)])
            self.assertEqual(self.told(f), {})

    def test_absolute_times_keep_their_top_bits(self):
        k, top = KERNELS[0], 7 << 59
        f = self.of_pages(k, k.sub_buffer(top + 1000, [k.entry(0, TICK.pack(k, 40, 1)), k.stamp(5000), k.entry(1, TICK.pack(k, 40, 2))]), options=[(OFFSET, b"-%d\0" % top)])
        self.assertEqual(self.ticks(f), [(1000, 0, 1), (5001, 0, 2)])

    def test_pages_have_times_of_their_own(self):
        k = KERNELS[0]
        f = self.of_pages(k, ticks(k, 5000, 1, 2), ticks(k, 5010, 3), ticks(k, 5010, 4, 5, step=0), ticks(k, 9000, 6))
        self.assertEqual(self.ticks(f), [(5000, 0, 1), (5010, 0, 2), (5010, 0, 3), (5010, 0, 4), (5010, 0, 5), (9000, 0, 6)])

    def test_entries_that_cannot_be(self):
        """They end the page; those before them and the other pages are there."""
        for k in KERNELS:
            good, after = k.entry(0, TICK.pack(k, 40, 1)), ticks(k, 2000, 9)
            for bad in (k.word(0, 1) + k.u32(0), k.word(0, 1) + k.u32(3), k.word(0, 1) + k.u32(4), k.word(0, 1) + k.u32(2**32 - 1), k.word(0, 1) + k.u32(2000), k.word(28, 1), k.word(PADDING, 1),
                        k.word(PADDING, 1) + k.u32(3), k.word(PADDING, 1) + k.u32(2**32 - 1), k.word(30, 1), k.word(31, 1), k.word(0, 1), b"\1", b"\1\2\3"):
                f = self.of_pages(k, k.sub_buffer(1000, [good, bad]), after)
                self.assertEqual(self.ticks(f), [(1000, 0, 1), (2000, 0, 9)], bad)
                self.assertNotEqual(self.told(f), {}, bad)

    def test_pages_that_cannot_be(self):
        k = KERNELS[0]
        f = self.of_pages(k, ticks(k, 1000, 1), ticks(k, 2000, 2, commit=241), ticks(k, 3000, 3, commit=0xfffff), ticks(k, 4000, 4))
        self.assertEqual(self.ticks(f), [(1000, 0, 1), (4000, 0, 4)])
        self.assertEqual(self.told(f), {("trace_dat_bad_page", "0"): 2})

    def test_pages_that_were_not_written(self):
        """A file system that lost power leaves zeros: they are a page without events, which no kernel hands out."""
        k = KERNELS[0]
        hole = bytes(len(ticks(k, 1000, 1)))
        for pages in ([ticks(k, 1000, 1), hole, ticks(k, 3000, 3)], [hole, ticks(k, 3000, 3)], [ticks(k, 1000, 1), hole]):
            self.assertEqual(self.told(self.of_pages(k, *pages)), {("trace_dat_bad_page", "0"): 1})
        self.assertEqual(self.told(self.of_pages(k, hole)), {})

    def test_losses(self):
        """Before a page, with a number or without; of each CPU and of all buffers. A count needs both bits."""
        for k, (version, compression) in zip(KERNELS, FORMS):
            for lost in (5, 70000):
                f = TraceDat(k, version, compression, MADE)
                f.buffer(b"", {0: [ticks(k, 1000, 1), ticks(k, 2000, 2, lost=lost), ticks(k, 3000, 3, lost=0), ticks(k, 4000, 4, lost=6)], 1: [ticks(k, 1500, 5, lost=0)]})
                f.buffer(b"i", {0: [ticks(k, 5000, 6, lost=9)]})
                self.assertEqual([n for _, _, n in self.ticks(f)], [1, 5, 2, 3, 4, 6])
                self.assertEqual(self.told(f), {("trace_dat_lost_events", "0"): lost + 15, ("ftrace_cpu_has_data_loss", "0"): 1, ("ftrace_cpu_has_data_loss", "1"): 1})
            stored = self.of_pages(k, ticks(k, 1000, 1, commit=16 | 1 << 30))
            self.assertEqual((self.ticks(stored), self.told(stored)), ([(1000, 0, 1)], {}))

    def test_a_slice_does_not_last_over_a_loss(self):
        k = KERNELS[0]
        switch = lambda a, b: SWITCH.pack(k, a, b"x", a, 120, 0, b"y", b, 120)
        f = self.of_pages(k, k.sub_buffer(1000, [k.entry(0, switch(0, 40)), k.entry(10, switch(40, 41))]), k.sub_buffer(9000, [k.entry(0, switch(42, 0))], lost=3), events={"sched": [SWITCH]})
        self.assertNotIn(["1010", "7990", "41"], self.rows(f, "SELECT ts, dur, tid FROM sched_slice JOIN thread USING (utid)"))
        self.assertIn(["1000", "10", "40"], self.rows(f, "SELECT ts, dur, tid FROM sched_slice JOIN thread USING (utid)"))

    def test_old_pages_are_refused(self):
        old = self.usual(KERNELS[0], header_event=b"\ttype        :    2 bits\n\tlen         :    3 bits\n")
        self.assertIn(b"without type_len", self.run_shell("query", self.written(old), "SELECT 1", code=1).stderr)
        bare = self.usual(KERNELS[0], header_page=b"")
        self.assertIn(b"header_page", self.run_shell("query", self.written(bare), "SELECT 1", code=1).stderr)

    # 7: fields

    def args(self, f):
        """{key: value} of the first event."""
        return dict(self.rows(f, "SELECT key, display_value FROM ftrace_event JOIN args USING (arg_set_id) WHERE ftrace_event.id = 0"))

    def one(self, k, event, *values, group="made", **more):
        return self.of_pages(k, k.sub_buffer(1000, [k.entry(0, event.pack(k, 40, *values))]), events={group: [event]}, **more)

    def test_fields(self):
        """Numbers of all sizes and signs, texts; their places are what the format says."""
        event = Event(302, "all", ("u8 a", 1, 0), ("s8 b", 1, 1), ("u16 c", 2, 0), ("s16 d", 2, 1), ("u32 e", 4, 0), ("int f", 4, 1), ("u64 g", 8, 0), ("s64 h", 8, 1),
                      ("unsigned long i", "long", 0), ("long j", "long", 1), ("char text[8]", 8, 0), ("char short_text[NAME]", 4, 0), ("bool k", 1, 0), ("void * p", "long", 0))
        values = (200, -100, 60000, -30000, 2**32 - 1, -2**31, 2**63 + 5, 1 - 2**63, 2**31 + 7, -9, b"eight!!!", b"four", 1, 0)
        for k in KERNELS:
            got = self.args(self.one(k, event, *values))
            del got["p"]
            self.assertEqual(got, {"a": "200", "b": "-100", "c": "60000", "d": "-30000", "e": str(2**32 - 1), "f": str(-2**31), "g": got["g"], "h": str(1 - 2**63), "i": str(2**31 + 7), "j": "-9",
                                   "text": "eight!!!", "short_text": "four", "k": "1"})
            self.assertIn(got["g"], (str(2**63 + 5), str(5 - 2**63)))

    def test_texts_behind_the_fields(self):
        for k in KERNELS:
            place = lambda at, n: n << 16 | at
            event = Event(303, "texts", ("__data_loc char[] one", 4, 1), ("int n", 4, 1), ("__rel_loc char[] two", 4, 1))
            f = self.one(k, event, place(20, 4), 7, place(4, 6), b"abc\0", b"defgh\0")
            self.assertEqual(self.args(f), {"one": "abc", "n": "7", "two": "defgh"})
            for one, two in ((place(200, 4), place(4, 6)), (place(20, 200), place(4, 6)), (place(20, 4), place(65535, 65535))):  # outside of the event
                f = self.one(k, event, one, 7, two, b"abc\0", b"defgh\0")
                self.assertEqual(self.args(f), {})
                self.assertNotEqual(self.told(f), {})

    def test_events_shorter_than_their_format(self):
        k = KERNELS[0]
        event = Event(304, "long", ("u64 a", 8, 0), ("u64 b", 8, 0))
        f = self.of_pages(k, k.sub_buffer(1000, [k.entry(0, event.pack(k, 40, 1)), k.entry(1, event.pack(k, 40, 1, 2))]), events={"made": [event]})
        self.assertEqual(self.rows(f, "SELECT ts FROM ftrace_event"), [["1001"]])
        self.assertNotEqual(self.told(f), {})

    def test_markers(self):
        for k in KERNELS:
            texts = (b"B|40|work\n\0", b"C|40|level|7\n\0", b"E|40\n\0", b"B|40|no end of line\0", b"E|40\n\0")
            f = self.of_pages(k, k.sub_buffer(1000, [k.entry(10, PRINT.pack(k, 40, 0xc0100004, t)) for t in texts]), events={"ftrace": [PRINT]})
            self.assertEqual(self.rows(f, "SELECT ts, dur, name FROM slice"), [["1010", "20", "work"], ["1040", "10", "no end of line"]])
            self.assertEqual(self.rows(f, "SELECT ts, cast(value AS INT), name FROM counter JOIN track ON track.id = track_id"), [["1020", "7", "level"]])

    SYMBOLS = b"00000000c0100000 T schedule\n00000000c0200000 t helper\t[module]\n00000000c0300000 D not_code\n"

    def test_function_graph(self):
        """Calls are slices with the names of their functions, whatever the size of an address, whichever fields there are."""
        before = (("unsigned long long calltime", 8, 0), ("unsigned long long rettime", 8, 0))
        for k in KERNELS:
            entry = Event(10, "funcgraph_entry", ("unsigned long func", "long", 0), ("int depth", 4, 1))
            for fields in ((("unsigned long func", "long", 0), *before, ("unsigned long overrun", "long", 0), ("int depth", 4, 1)),
                           (("unsigned long func", "long", 0), ("int depth", 4, 1), ("unsigned int overrun", 4, 0), *before),
                           (("unsigned long func", "long", 0), ("unsigned long retval", "long", 0), ("int depth", 4, 1), ("unsigned int overrun", 4, 0), *before)):
                leave = Event(11, "funcgraph_exit", *fields)
                returns = lambda address, depth: leave.pack(k, 40, *[{"func": address, "depth": depth}.get(d.split()[-1], 0) for d, _, _ in fields])
                f = self.of_pages(k, k.sub_buffer(1000, [k.entry(0, entry.pack(k, 40, 0xc0100000, 0)), k.entry(10, entry.pack(k, 40, 0xc0200008, 1)), k.entry(10, returns(0xc0200008, 1)),
                                                         k.entry(10, returns(0xc0100000, 0))]), events={"ftrace": [entry, leave]}, kallsyms=self.SYMBOLS)
                self.assertEqual(self.rows(f, "SELECT ts, dur, slice.name, depth, tid FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid)"),
                                 [["1000", "30", "schedule", "0", "40"], ["1010", "10", "helper", "1", "40"]])

    def test_functions(self):
        for k in KERNELS:
            event = Event(1, "function", ("unsigned long ip", "long", 0), ("unsigned long parent_ip", "long", 0))
            f = self.one(k, event, 0xc0100010, 0xc0200004, group="ftrace", kallsyms=self.SYMBOLS)
            self.assertEqual(self.args(f), {"ip": "schedule", "parent_ip": "helper"})

    def test_texts_of_the_kernel(self):
        """printk formats, by their addresses; C escapes mean what they do there."""
        for k in KERNELS:
            event = Event(6, "bputs", ("unsigned long ip", "long", 0), ("const char * str", "long", 0))
            f = self.one(k, event, 0xc0100010, 0xc0400000, group="ftrace", printk=b'0xc0400000 : "line \\"one\\"\\n\\ttwo"\n0xc0500000 : "other"\n')
            self.assertEqual(self.rows(f, "SELECT hex(extract_arg(arg_set_id, 'str')) FROM ftrace_event"), [[b'line "one"\n\ttwo'.hex().upper()]])

    def test_names_of_threads(self):
        """What events say comes before what the kernel remembered at the end."""
        k = KERNELS[1]
        f = self.of_pages(k, k.sub_buffer(1000, [k.entry(0, SWITCH.pack(k, 40, b"old name", 40, 120, 0, b"next", 41, 120))]), events={"sched": [SWITCH]},
                          cmdlines=b"40 remembered\n42 with a space\n43 <...>\nbad\n44\n 45 x\n46 last")
        self.assertEqual(self.rows(f, "SELECT tid, name FROM thread WHERE tid > 0 ORDER BY tid"), [["40", "old name"], ["41", "next"], ["42", "with a space"], ["46", "last"]])

    # 9: guests

    HOST, PEER = 0x1111222233334444, 0x5555666677778888

    def shift(self, k, samples, flags=0, fractions=True, cpus=1):
        """samples: (time, offset, scaling, fraction), the same for each CPU."""
        body = k.u64(self.HOST) + k.u32(flags, cpus)
        for _ in range(cpus):
            body += k.u32(len(samples)) + b"".join(k.u64(*(s[i] for s in samples)) for i in range(3))
        return TIME_SHIFT, body + (b"".join(k.u64(*(s[3] for s in samples)) for _ in range(cpus)) if fractions else b"")

    @staticmethod
    def host_time(samples, t, interpolate):
        by_time = {}
        for s in samples:
            by_time.setdefault(s[0], s)
        s = [by_time[x] for x in sorted(by_time)]
        if len(s) == 1:
            return t + s[0][1]
        i = 0 if t <= s[0][0] else len(s) - 2 if t >= s[-1][0] else max(j for j in range(len(s)) if s[j][0] <= t)
        time, offset, scaling, fraction = s[i]
        if interpolate:
            width = s[i + 1][0] - time
            n = (t - time) * (s[i + 1][1] - offset) + width // 2
            offset += n // width if n >= 0 else -(-n // width)
        return (t * scaling >> fraction) + offset

    def test_time_shifts(self):
        tables = ([(5000, 100, 3, 1)], [(1000, 10**6, 1, 0), (2000, 10**6 + 999, 1, 0)], [(1000, 5 * 10**6, 1, 0), (2000, 5 * 10**6 + 7, 1, 0), (3000, 5 * 10**6 - 20000, 1, 0)],
                  [(3000, 40, 3, 1), (1000, 20, 3, 1), (2000, 30, 5, 2), (2000, 30, 5, 2)], [(0, 0, 2**40 + 12345, 40), (10**4, 1, 2**40 + 12346, 40)], [])
        times = [1, 500, 999, 1000, 1001, 1500, 1999, 2000, 2001, 2500, 2999, 3000, 3001, 9000]
        for k, flags in ((KERNELS[0], (0, 1)), (KERNELS[3], (2, 3))):
            for samples in tables:
                for flag in flags:
                    for tsc in ((), ((TSC2NSEC, k.u32(3, 2) + k.u64(0)),)):
                        entries = [k.entry(t - times[i - 1] if i else 0, TICK.pack(k, 40, i)) for i, t in enumerate(times)]
                        f = self.of_pages(Kernel(k.big, k.long, 512), k.sub_buffer(times[0], entries, size=512), options=[self.shift(k, samples, flag, cpus=2), *tsc, (OFFSET, b"1000000\0")])
                        want = [self.host_time(samples, t, flag & 1) if samples else t for t in times]
                        self.assertEqual({n: ts for ts, _, n in self.ticks(f)}, {i: (t * 3 >> 2 if tsc else t) + 10**6 for i, t in enumerate(want)}, (samples, flag))

    def test_cpus_without_samples(self):
        """Those beyond the table's are not shifted. Fractions may be absent."""
        k = KERNELS[0]
        f = TraceDat(k, events=MADE, options=[self.shift(k, [(0, 10**6, 1, 0), (9000, 10**6, 1, 0)], fractions=False)])
        f.buffer(b"", {0: [ticks(k, 1000, 1)], 1: [ticks(k, 1000, 2)]})
        self.assertEqual(self.ticks(f), [(1000, 1, 2), (1001000, 0, 1)])

    def test_absurd_shifts(self):
        k, far = KERNELS[0], 2**63 - 1
        for samples in ([(0, far, far, 0), (1, -far - 1, -far - 1, 0)], [(0, far, 1, 2**64 - 1), (2**64 - 1, -far, 1, 127)], [(0, -far - 1, far, 126), (1, far, far, 64), (2**64 - 1, 0, 0, 0)]):
            for flag in (0, 1):
                f = self.of_pages(k, ticks(k, 2**64 - 100, 1, 2), options=[self.shift(k, samples, flag)])
                self.rows(f, "SELECT 1")
        guest = self.of_pages(k, ticks(k, 100, 7), options=[self.shift(k, [(0, 1000, 1, 0)])])
        for offset in (-2**63, 2**63 - 1):
            self.rows([guest, self.usual(k, options=[(TRACEID, k.u64(self.HOST)), (OFFSET, b"%d" % offset)])], "SELECT 1")
        self.assertEqual(self.told(self.usual(k, options=[(TIME_SHIFT, k.u64(1) + k.u32(0, 2**32 - 1))])), {("trace_dat_bad_section", "0"): 1})
        self.assertEqual(self.told(self.usual(k, options=[(TIME_SHIFT, k.u64(1) + k.u32(0, 1, 2**32 - 1))])), {("trace_dat_bad_section", "0"): 1})

    def guest_option(self, k, name, number, *threads):
        return GUEST, name + b"\0" + k.u64(number) + k.u32(len(threads)) + b"".join(k.u32(*t) for t in threads)

    def test_host_and_guest(self):
        """In one time, the host's; the host's offset is the guest's, too. A guest that calls itself as the host does has the host's name for it."""
        for k in KERNELS:
            for offset in (0, 500, -500):
                host = self.usual(k, options=[(UNAME, b"Linux same 6.1 x\0"), (TRACECLOCK, b"[mono]\0"), (TRACEID, k.u64(self.HOST)), (OFFSET, b"%d\0" % offset),
                                              self.guest_option(k, b"visitor", self.PEER, (0, 501), (3, 504)), self.guest_option(k, b"absent", 99, (0, 9))])
                guest = self.of_pages(k, ticks(k, 100, 7, 8), options=[(UNAME, b"Linux same 6.1 x\0"), (TRACECLOCK, b"[mono]\0"), (TRACEID, k.u64(self.PEER)), self.shift(k, [(0, 1000, 1, 0)])])
                together = [(ts + offset, cpu, n) for ts, cpu, n in sorted(self.USUAL + [(1100, 0, 7), (1110, 0, 8)])]
                self.assertEqual(self.ticks(host, guest), together)
                self.assertEqual([(ts - self.ticks(guest, host)[0][0], cpu, n) for ts, cpu, n in self.ticks(guest, host)], [(ts - together[0][0], cpu, n) for ts, cpu, n in together])
                self.assertEqual(self.rows([host, guest], "SELECT name FROM machine ORDER BY id"), [["same"], ["visitor"]])
                self.assertEqual(self.rows([host, guest], "SELECT v.machine_id AS guest, c.cpu, t.tid, t.machine_id FROM guest_vcpu v JOIN cpu c USING (ucpu) JOIN thread t ON t.utid = v.host_utid"),
                                 [["1", "0", "501", "0"], ["1", "3", "504", "0"]])
            self.assertEqual(self.ticks(guest), [(1100, 0, 7), (1110, 0, 8)])  # alone: in the host's time all the same

    def test_guests_that_break_off(self):
        k = KERNELS[0]
        _, whole = self.guest_option(k, b"visitor", self.PEER, (0, 501), (1, 502))
        for n in range(len(whole)):
            self.assertEqual(self.told(self.usual(k, options=[(GUEST, whole[:n])])), {("trace_dat_bad_section", "0"): 1}, n)

    # 10: what it is with others

    def test_latency_text(self):
        for k in KERNELS:
            for version in (6, 7):
                f = TraceDat(k, version, events=MADE, latency=b"# tracer: wakeup\n")
                self.assertEqual(self.told(f), {("trace_dat_latency_text", "0"): 1})

    def test_files_of_two_machines_meet_on_the_wall_clock(self):
        k = KERNELS[0]
        one = self.usual(k, options=[(UNAME, b"Linux one 6.1 x\0"), (DATE, b"0x%x\0" % 10**15)])
        two = self.usual(k, options=[(UNAME, b"Linux two 6.1 x\0"), (DATE, b"0x%x\0" % (10**15 + 2))])
        self.assertEqual(self.rows([one, two], "SELECT machine_id, min(ts) FROM ftrace_event JOIN cpu USING (ucpu) GROUP BY 1 ORDER BY 1"), [["0", "1000"], ["1", "3000"]])
        self.assertEqual(self.rows([one, two], "SELECT name FROM machine ORDER BY id"), [["one"], ["two"]])

    def test_metadata(self):
        for version, compression in FORMS:
            f = self.usual(KERNELS[0], version, compression, options=[(VERSION, b"3.3\0")])
            self.assertEqual(self.rows(f, "SELECT name, coalesce(str_value, int_value) FROM metadata WHERE name GLOB 'trace_dat_*' ORDER BY name"),
                             [["trace_dat_clock", "local"], ["trace_dat_compression", compression], ["trace_dat_version", str(version)], ["trace_dat_writer", "3.3"]])


if __name__ == "__main__":
    unittest.main()
