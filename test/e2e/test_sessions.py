"""What sessions can be asked for: names, semaphores, priorities, clones, triggers, filters; and what the trace says of it."""
import os
import re
import signal
import time
import unittest

from harness import PRODUCER, Case, field, fields, first, invoke, main, packets, wait_for
from test_hostile import (ATTACH, CLONE, DETACH, DISABLE, ENABLE, FLUSH, STARTED, Producer, chunk, move)
from test_record import config

START, CHANGE, STATS, OBSERVE, QUERY, CAPABILITIES = 6, 7, 10, 11, 12, 13
UPDATE_SOURCE, TRIGGERS = 12, 10


def buffer(kb=64, extra=b""):
    return field(1, field(1, kb) + extra)


def source(name, extra=b""):
    return field(2, field(1, field(1, name)) + extra)


class Sessions(Case):
    def setUp(self):
        super().setUp()
        self.start_traced()

    def enable(self, text, request=2):
        """A consumer with a session; wait_refused() tells why there is none."""
        c = self.consumer()
        n = self.log().count("configured by") + self.log().count("refused:")
        c.send(invoke(request, ENABLE, field(1, text)))
        wait_for(lambda: self.log().count("configured by") + self.log().count("refused:") > n)
        return c

    def refused(self, text):
        """The error that a config gets."""
        c = self.enable(text)
        _, _, reply = c.reply(2)
        return first(reply, 3, b"").decode()

    def read(self, c, stop=True, request=60):
        if stop:
            c.send(invoke(request, DISABLE, b""))
            c.reply(2)  # EnableTracing is answered when all have stopped
        return c.read_trace(request + 1)

    def call(self, c, request, method, args=b""):
        c.send(invoke(request, method, args))
        return c.reply(request)

    def test_a_stop_in_the_middle_of_a_packet(self):
        """Nobody asks for a flush before: the packets in front of the open one are handed over with it, and waited for."""
        c = self.enable(buffer(256) + source("e2e.source"))
        p = self.spawn(PRODUCER, "--ledger", "--open-ms", 200, "--max-size", 20)
        wrote = [p.stdout.readline() for _ in range(3)]
        time.sleep(0.05)  # it is in the next packet now; when it is not, nothing is tested, and nothing fails
        here = {first(first(b, 900), 1).split()[1] for b in self.read(c) if first(b, 900) is not None}
        wrote += p.communicate(timeout=30)[0].splitlines()
        self.assertEqual({line.split()[2] for line in wrote if line.startswith(b"wrote")} - here, set())

    # ---- which sessions may be ----

    def test_refusals(self):
        two = field(17, field(1, 2) + field(3, 1000))
        twice = field(2, field(1, "a"))
        for text, why in (
                (field(17, field(1, 2)), "trigger_timeout_ms must be"),
                (field(17, field(1, 3) + field(3, 1)), "unknown trigger_mode"),
                (field(17, field(1, 1) + field(3, 1) + field(5, 1)), "use_clone_snapshot_if_available needs"),
                (two + field(3, 1000), "exclude each other"), (two + field(8, 1), "exclude each other"),
                (field(17, field(1, 2) + field(3, 1) + twice + twice), "used twice"),
                (field(38, "a/b"), "bugreport_filename"), (field(33, field(1, b"x")), "trace_filter is not supported"),
                (buffer() * 129, "too many buffers"), (buffer(extra=field(7, "n")) * 2, 'buffer name "n"'),
                (buffer(200000) + field(4, 1), "guardrail: the buffers"), (field(3, 90000000) + field(4, 1), "too long"),
                (buffer() + source("s") + field(2, field(1, field(1, "t") + field(11, "nowhere"))), "there is no target buffer"),
                (buffer() + field(8, 1), "needs a file descriptor or output_path"),
                (buffer() + field(8, 1) + field(29, "/no/such/folder/x"), "cannot create output_path"),
                (buffer() + field(40, field(1, 7)), "priority_boost: policy"),
                (buffer() + field(40, field(1, 2) + field(2, 100)), "priority 100 is not between 1 and 99")):
            with self.subTest(why=why):
                self.assertIn(why, self.refused(text))
        self.assertEqual(self.log().count("configured by"), 0)

    def test_names(self):
        named = buffer() + field(22, "one")
        self.enable(named)
        self.assertIn('unique_session_name "one" exists', self.refused(named))
        guarded = buffer() + field(22, "two") + field(4, 1)
        c = self.enable(guarded)
        c.close()
        self.peers.remove(c)
        wait_for(lambda: "freed" in self.log())
        self.assertIn('"two" began less than 300 s ago', self.refused(guarded))
        self.enable(buffer() + field(22, "two"))  # without the guardrails

    def test_semaphores_and_exclusive_sessions(self):
        held = lambda others: buffer() + field(39, field(1, "s") + field(2, others))
        self.enable(held(1))
        self.enable(held(1))
        self.assertIn('semaphore "s" is held by 2', self.refused(held(1)))
        exclusive = self.enable(buffer() + field(41, 5))
        wait_for(lambda: self.log().count("disabled") == 2)  # the others were ended for it
        self.assertIn("records exclusively with priority 5", self.refused(buffer() + field(41, 5)))
        self.assertIn("records exclusively", self.refused(buffer()))
        self.enable(buffer() + field(41, 6))
        self.assertTrue(first(exclusive.reply(2)[2], 1, 0))  # ended, too

    @unittest.skipUnless(os.getuid() == 0, "needs root to raise a priority")
    def test_priority_boost(self):
        niceness = lambda: os.getpriority(os.PRIO_PROCESS, self.traced.pid)
        a = self.enable(buffer() + field(40, field(1, 1) + field(2, 5)))
        self.assertEqual(niceness(), -5)
        b = self.enable(buffer() + field(40, field(1, 1) + field(2, 9)))
        self.assertEqual(niceness(), -9)
        self.read(b)
        wait_for(lambda: niceness() == -5)
        self.read(a)
        wait_for(lambda: niceness() == os.getpriority(os.PRIO_PROCESS, 0))

    # ---- life ----

    def test_deferred_start_and_what_is_observed(self):
        c = self.enable(buffer() + source("s") + field(12, 1))
        self.call(c, 3, CAPABILITIES)
        c.send(invoke(4, OBSERVE, field(1, 1) + field(1, 2)))
        p = Producer(self, "p", "s")
        time.sleep(0.1)
        self.assertIn("CONFIGURED", self.sessions())
        c.send(invoke(5, START, b""))
        p.wait_start()
        seen = b"".join(first(c.reply(4)[2], 1) for _ in range(2))
        self.assertFalse(self.call(c, 6, START)[0])  # once
        self.assertIn(b"s", [first(v, 2) for n, v in fields(seen) if n == 1 and first(v, 3) == 2])
        self.assertEqual(first(seen, 2), 1)  # all_data_sources_started
        self.assertIn("STARTED", self.sessions())
        p.p.close()
        self.peers.remove(p.p)
        stopped = first(c.reply(4)[2], 1)
        self.assertEqual(first(first(stopped, 1), 3), 1)

    def sessions(self):
        out, _ = self.finish(self.perfetto("--query"))
        return out.split("TRACING SESSIONS")[1].replace("STARTED  NAME", "")

    def test_detach_key_belongs_to_one_session(self):
        a, b = self.enable(buffer()), self.enable(buffer())
        self.assertTrue(self.call(a, 3, DETACH, field(1, "k"))[0])
        self.assertFalse(self.call(b, 3, DETACH, field(1, "k"))[0])
        self.assertFalse(self.call(b, 4, ATTACH, field(1, "k"))[0])  # has a session
        self.assertFalse(self.call(a, 4, ATTACH, field(1, "other"))[0])
        self.assertTrue(self.call(a, 5, ATTACH, field(1, "k"))[0])

    def test_filters_can_be_widened(self):
        text = lambda *names: buffer() + source("s", b"".join(field(2, n) for n in names))
        c = self.enable(text("first"))
        one, two = Producer(self, "first", "s"), Producer(self, "second", "s")
        one.wait_start()
        self.call(c, 3, CHANGE, field(1, text("first", "second")))
        two.wait_start()

    def test_flush_and_stats(self):
        c = self.enable(buffer() + source("s"))
        p = Producer(self, "p", "s")
        _, target = p.wait_start()
        c.send(invoke(3, FLUSH, field(1, 5000)))
        flush = first(first(first(p.p.recv(), 6), 3), 5)
        p.commit(move(target, chunk(1, 0, [field(900, b"x")])) + field(3, first(flush, 2)))
        self.assertTrue(c.reply(3)[0])
        ok, _, reply = self.call(c, 4, STATS)
        self.assertTrue(ok)
        stats = dict(fields(first(reply, 1)))
        self.assertEqual((stats[2], stats[12], stats[13]), (1, 1, 1))
        c.send(invoke(5, FLUSH, field(1, 100)))
        self.assertFalse(c.reply(5)[0])  # nobody answers

    # ---- triggers ----

    def trigger(self, *names):
        p = Producer(self, "pressed")
        p.call(TRIGGERS, b"".join(field(1, n) for n in names))

    def test_triggers_that_do_not_count(self):
        """Another producer's, one too many a day, and those that chance skips."""
        def text(extra):
            return buffer() + field(17, field(1, 2) + field(3, 60000) + field(2, field(1, "go") + extra))
        never = self.enable(text(field(2, "nobo.y")))
        skipped = self.enable(text(b"\x29" + b"\0\0\0\0\0\0\xf0\x3f"))  # skip_probability 1.0
        often = self.enable(text(field(4, 1)))
        self.trigger("go", "other")
        self.assertTrue(first(often.reply(2)[2], 1))
        again = self.enable(text(field(4, 1)))
        self.trigger("go")
        time.sleep(0.2)
        for c in (never, skipped, again):
            self.assertEqual(self.read(c), [])
        hits = [first(p, 46) for p in self.read(often, stop=False) if first(p, 46)]
        self.assertEqual([(first(t, 1), first(t, 2)) for t in hits], [(b"go", b"pressed")])

    def test_flood_of_triggers(self):
        """What a producer presses without end neither fills the memory nor the log."""
        c = self.enable(buffer() + field(17, field(1, 2) + field(3, 60000) + field(2, field(1, "go") + field(3, 60000))))
        pressing = Producer(self, "pressing")
        for _ in range(50):
            pressing.call(TRIGGERS, field(1, "go") * 2000, drop=True)
        self.assertTrue(pressing.commit(b"")[0])
        self.assertEqual(len([p for p in self.read(c) if first(p, 46)]), 1000)
        self.assertLess(self.log().count('trigger "go"'), 200)

    def test_stop_trigger_that_clones(self):
        """use_clone_snapshot_if_available: the trigger gives a copy, the session goes on."""
        extra = ('trigger_config { trigger_mode: STOP_TRACING use_clone_snapshot_if_available: true '
                 'trigger_timeout_ms: 30000 triggers { name: "snap" } }\n')
        perf = self.perfetto("-c", self.config(config(extra=extra)), "--txt", "-o", self.dir / "out")
        wait_for(lambda: "session 1" in self.log())
        self.finish(self.perfetto("--trigger", "snap"))
        copy = self.dir / "out.0"
        wait_for(lambda: copy.exists() and copy.stat().st_size)
        self.assertIsNone(perf.poll())
        perf.send_signal(signal.SIGINT)
        self.finish(perf, 3)  # nobody offers e2e.source

    # ---- clones ----

    def events(self, trace):
        """[(field, value)] of the service's events."""
        return [fields(first(p, 69))[0] for p in trace if first(p, 69)]

    def clone(self, *args):
        out = self.dir / "clone"
        self.finish(self.perfetto(*args, "-o", out))
        return packets(out.read_bytes())

    def test_clone_for_bugreport(self):
        self.enable(buffer() + buffer() + field(30, 3))
        self.enable(buffer() + field(30, 2))
        got = self.clone("--clone-for-bugreport")
        events = self.events(got)
        self.assertEqual([v for n, v in events if n == 11], [0, 1])  # buffer_cloned
        self.assertIn((10, 1), events)  # clone_started
        self.assertIn((6, 1), events)   # seized_for_bugreport
        self.assertEqual(first(next(first(p, 33) for p in got if first(p, 33)), 30), 3)  # the better score

    def test_transfer_and_clear(self):
        text = ('buffers { size_kb: 256 } buffers { size_kb: 256 transfer_on_clone: true }\n'
                'buffers { size_kb: 256 clear_before_clone: true }\n' +
                "".join(f'data_sources {{ config {{ name: "s{i}" target_buffer: {i} }} }}\n' for i in range(3)) +
                'unique_session_name: "one"\n')
        trace = self.dir / "out"
        perf = self.perfetto("-c", self.config(text), "--txt", "-o", trace)
        for p in [Producer(self, f"p{i}") for i in range(3)]:
            p.call(2, field(1, field(1, p.name.replace("p", "s")) + field(9, 1)))  # no_flush
            p.commit(move(p.wait_start()[1], chunk(1, 0, [field(900, p.name)])))
        copy = self.clone("--clone-by-name", "one")
        self.assertEqual([first(p, 900) for p in copy if first(p, 900)], [b"p0", b"p1"])
        perf.send_signal(signal.SIGINT)
        self.finish(perf)
        self.assertEqual([first(p, 900) for p in packets(trace.read_bytes()) if first(p, 900)], [b"p0"])

    # ---- what the service writes ----

    def test_order_of_the_services_packets(self):
        c = self.enable(buffer() + source("s"))
        p = Producer(self, "p", "s")
        p.commit(move(p.wait_start()[1], chunk(1, 0, [field(900, b"x")])))
        kinds = [next(n for n in (6, 36, 33, 89, 124, 45, 69, 900, 35) if first(q, n) is not None) for q in self.read(c)]
        order = [k for i, k in enumerate(kinds) if i == 0 or kinds[i - 1] != k]
        self.assertEqual(order, [6, 36, 33, 89, 124, 45, 69, 900, 69, 35])

    def test_builtin_data_sources(self):
        for number, kind in ((1, 6), (2, 33), (3, 45), (4, 69)):
            with self.subTest(kind=kind):
                got = self.read(self.enable(buffer() + field(20, field(number, 1))))
                self.assertFalse([p for p in got if first(p, kind) is not None])
                self.peers.pop().close()
        got = self.read(self.enable(buffer() + field(20, field(5, 3) + field(8, 1))))
        self.assertEqual(first(next(first(p, 6) for p in got if first(p, 6)), 2), 3)  # primary_trace_clock
        stats = next(first(p, 35) for p in got if first(p, 35))
        self.assertIsNone(first(stats, 17))  # no histograms

    def test_concurrent_sessions(self):
        self.enable(buffer() + source("s") + field(22, "before"))
        c = self.enable(buffer() + field(20, field(10, 1)))
        other = self.enable(buffer() + field(22, "after"))
        self.read(other)
        got = [dict(fields(first(p, 134))) for p in self.read(c) if first(p, 134)]
        self.assertEqual([(e[2], e[1], e[5]) for e in got], [
            (b"before", 3, 1), (b"after", 2, 0), (b"after", 3, 0), (b"after", 4, 0), (b"after", 1, 0)])
        self.assertEqual({e[4] for e in got}, {os.getuid()})

    def test_late_producers_and_updates(self):
        c = self.enable(buffer() + source("late"))
        p = Producer(self, "p")
        p.call(2, field(1, field(1, "late") + field(7, 9) + field(3, 1)))  # will_notify_on_start, id 9
        instance, _ = p.wait_start()
        self.assertTrue(p.call(UPDATE_SOURCE, field(1, field(1, "late") + field(7, 9) + field(9, 1)))[0])  # no_flush
        self.assertFalse(p.call(UPDATE_SOURCE, field(1, field(1, "late") + field(7, 8)))[0])
        self.assertFalse(p.call(UPDATE_SOURCE, field(1, field(1, "late")))[0])
        p.call(STARTED, field(1, instance))
        self.assertIn((1, 1), self.events(self.read(c)))  # all_data_sources_started

    # ---- connections ----

    def test_producer_comes_as_soon_as_there_is_a_service(self):
        """Not at the next attempt, which may be half a minute away."""
        self.traced.terminate()
        self.traced.wait()
        os.unlink(self.env["PERFETTO_PRODUCER_SOCK_NAME"])
        self.spawn(PRODUCER, "--packets", 1)
        time.sleep(2)  # by now it waits longer between its attempts
        seen = self.log().count("connected:")
        self.start_traced()
        begin = time.monotonic()
        wait_for(lambda: self.log().count("connected:") > seen)
        self.assertLess(time.monotonic() - begin, 0.5)

    def test_log_says_who_and_why(self):
        p = Producer(self, "named\nlike\x1bthis", "s")
        c = self.enable(buffer() + source("s"))
        self.refused(buffer() + field(3, 0xffffffff))
        c.close()
        self.peers.remove(c)
        p.p.close()
        self.peers.remove(p.p)
        me = f"uid={os.getuid()} pid={os.getpid()}"
        stranger = self.consumer()
        self.assertFalse(self.call(stranger, 2, ATTACH, field(1, "no such key"))[0])
        self.call(stranger, 3, CLONE, field(1, 77))
        for line in (rf"consumer connected: unix {me}", rf"refused unix {me}: Attach: ",
                     rf"refused a clone to unix {me}: there is no such session", rf'producer 1 "named\?like\?this" connected: unix {me}', rf"session 1 .* configured by uid {os.getuid()}",
                     rf"session of uid {os.getuid()} refused: duration_ms 4294967295 is too long", "session 1 freed",
                     r'producer 1 "named\?like\?this" disconnected'):
            wait_for(lambda: any(re.search(line, s) for s in self.log().splitlines()), what=line)


if __name__ == "__main__":
    main()
