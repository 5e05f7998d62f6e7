"""Two real kernels, disturbed while they are recorded: clocks that stop, change pace and slew, relays, guests and services
that are killed, links that are cut. Whatever happens, the truth lies within the bound that the trace claims, and every
event that a guest produced is in the trace or among what the trace says it lost.

    test_disturbed.py [RUN...]    all runs of the table, or those named; clocks, losses: those of a kind

What the clocks truly showed, and which events were truly written, each guest keeps in memory that it shares with the host
(guest/clockpage.c)."""
import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import clock_truth
from guests import AGENT, Guest, need, shell
from harness import TP_SHELL, TRACEBOX, wait_for
from links import PORT, enter_namespace, machine_id

CLOCKPAGE = os.environ["CLOCKPAGE"]
CACHE = pathlib.Path(os.environ["GUEST_CACHE"])
PAGE_BYTES = 4 << 20  # guest/clockpage.c
TRACEFS = "/sys/kernel/tracing"

# A run: one recording, of the kind `clocks` (nothing may be lost) or `losses`. `before` and `during`: (seconds before or
# after its start, who, what, with what). `loses`: guests that may lose events, and from which second on; `steps`: by how
# many seconds a guest's clock falls behind, told as a row each; None: rows are as they are.
Run = collections.namedtuple("Run", "kind name seconds before during loses steps config", defaults=((), (), {}, {}, ""))
STEP_NS = 20_000_000  # how exactly the monitor pauses a guest
PPM = 65536  # adjtimex -f
HOUR = 3600
HANDED_OVER_NS = 1_000_000_000  # what a crash may cost: one drain (a second at most), and what is under way
RUNS = [
    Run("clocks", "undisturbed", 8),
    Run("clocks", "paused", 14, during=[(5, "a", "pause", 0.2), (6, "b", "pause", 3)], steps={"a": 0.2, "b": 3}),
    Run("clocks", "rate_200", 14, during=[(6, "a", "rate", 200 * PPM), (6, "b", "rate", -200 * PPM)]),
    Run("clocks", "rate_500", 14, during=[(6, "a", "rate", 500 * PPM), (6, "b", "rate", -500 * PPM)]),
    Run("clocks", "slewed", 14, during=[(5, "a", "tick", 10100), (8, "a", "tick", 10000),
                                        (5, "b", "tick", 9900), (8, "b", "tick", 10000)], steps=None),
    Run("clocks", "clock_source", 9, during=[(s, g, "source", name) for s, name in ((4, "acpi_pm"), (7, "tsc")) for g in "ab"],
        steps=None),
    Run("clocks", "wall_clock_set", 8, during=[(4, "a", "date", HOUR), (4, "b", "date", -HOUR)]),
    Run("clocks", "paused_before", 8, before=[(4, "a", "pause", 0.2), (7, "b", "pause", 3)], steps=None),  # relays that are up for a minute
    Run("losses", "cut", 70, during=[(8, "b", "link", False), (53, "b", "link", True),
                                     (7, "a", "kill_relay", None), (13, "a", "start_relay", None)], loses={"a": 7, "b": 8}),
    Run("losses", "guest_killed", 10, during=[(6, "b", "kill", None)], loses={"b": 6}),
    Run("losses", "booted_again", 4),  # nothing of the guest that was killed before
    Run("losses", "service_killed", 10, during=[(6, "host", "kill_service", None)],
        loses={"a": 4.5, "b": 4.5},  # the file gets what came once a second
        config="write_into_file: true file_write_period_ms: 1000 flush_period_ms: 1000"),
]

CONFIG = """
buffers { size_kb: 32768 fill_policy: RING_BUFFER }
trace_all_machines: true
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/sched_switch" ftrace_events: "ftrace/print"
} } }
duration_ms: %d
%s
"""


class World:
    """The host with its service, and two guests."""

    def __init__(self, work):
        self.work = work
        self.env = {**os.environ, "PERFETTO_PRODUCER_SOCK_NAME": f"0.0.0.0:{PORT}",
                    "PERFETTO_CONSUMER_SOCK_NAME": str(work / "consumer"), "MERIDIAN_RUN_DIR": str(work / "run")}
        self.procs, self.guests, self.pages, self.boots = {}, {}, {}, 0
        self.paused = {}  # how long each guest stood still in the recording, at least and at most
        (work / "agent").write_text(AGENT)
        for part in ("vmlinuz", "base"):
            (work / part).symlink_to(CACHE.resolve() / part)
        if shell('guest_initrd "$@"', work, "disturbed", work / "agent", TRACEBOX, CLOCKPAGE).returncode:
            raise RuntimeError("the guests' initrd")

    def spawn(self, name, *args, **env):
        with open(self.work / f"{name}.log", "ab") as log:
            self.procs[name] = subprocess.Popen(list(map(str, args)), env={**self.env, **env}, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log)

    def start_service(self):
        self.spawn("traced", TRACEBOX, "traced", "--enable-relay-endpoint")

    def boot(self, names):
        """Fresh guests, with a fresh page each: a page speaks of one boot."""
        for name in names:
            self.boots += 1
            self.pages[name] = pathlib.Path(f"/dev/shm/clockpage.{os.getpid()}.{self.boots}")
            self.pages[name].write_bytes(b"")
            os.truncate(self.pages[name], PAGE_BYTES)
        if "clockpage" in self.procs:
            self.procs["clockpage"].kill()
        self.spawn("clockpage", "nice", "-n", "-10", CLOCKPAGE, "host", *self.pages.values())
        for name in names:
            self.guests[name] = Guest(self.work, f"guest-{name}", self.work / "disturbed.initrd", self.pages[name], PAGE_BYTES)
        for name in names:
            g = self.guests[name]
            g.wait_up()
            g.run(f"echo 0 >{TRACEFS}/tracing_on")  # marks are taken while something records, and only then
            self.start_relay(g)
            g.start("clockpage", "clockpage guest 3600 marks")
            g.start("probes", "sleep 0.5; tracebox traced_probes")

    def start_relay(self, g):
        g.start("relay", f"PERFETTO_RELAY_SOCK_NAME=10.0.2.2:{PORT} PERFETTO_MACHINE_NAME={g.name} tracebox traced_relay")

    def ready(self):
        """The service sees the kernel of every machine."""
        def seen():
            out = subprocess.run([TRACEBOX, "perfetto", "--query"], env=self.env, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, timeout=20).stdout.decode()
            return out.count("linux.ftrace") >= len(self.guests)
        wait_for(seen, 90, "every machine's linux.ftrace")

    def act(self, who, what, arg):
        g = self.guests.get(who)
        if what == "pause":
            self.paused.setdefault(who, []).append(g.pause(arg))
        elif what == "rate":
            g.run(f"adjtimex -q -f {arg} >/dev/null")
        elif what == "tick":
            g.run(f"adjtimex -q -t {arg} >/dev/null")
        elif what == "source":
            g.run(f"echo {arg} >/sys/devices/system/clocksource/clocksource0/current_clocksource")
        elif what == "date":
            g.run(f"date -s @$(($(date +%s) + {arg})) >/dev/null")
        elif what == "link":
            g.link(arg)
        elif what == "kill":
            g.kill()
        elif what == "kill_relay":
            g.run("kill -9 $(cat /tmp/relay.pid)")
        elif what == "start_relay":
            self.start_relay(g)
        elif what == "kill_service":
            self.procs["traced"].kill()

    def close(self):
        for g in self.guests.values():
            g.close()
        for p in self.procs.values():
            if p.poll() is None:
                p.terminate()
        for p in self.procs.values():
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        for page in pathlib.Path("/dev/shm").glob(f"clockpage.{os.getpid()}.*"):
            page.unlink()


class Recording:
    """What came out of a run."""

    def __init__(self, world, run):
        self.run, self.trace = run, world.work / f"{run.name}.pftrace"
        config = world.work / f"{run.name}.pbtx"
        config.write_text(CONFIG % (run.seconds * 1000, run.config))
        now = time.monotonic()
        longest = max((s for s, *_ in run.before), default=0)
        for second, *action in sorted(run.before, reverse=True):
            self.later(world, now + longest - second, action)
        time.sleep(max(0, now + longest - time.monotonic()))
        self.began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        perfetto = subprocess.Popen([TRACEBOX, "perfetto", "--txt", "-c", str(config), "-o", str(self.trace)], env=world.env,
                                    stderr=subprocess.PIPE)
        world.paused = self.paused = {}
        now = time.monotonic()
        threads = [self.later(world, now + second, action) for second, *action in run.during]
        self.said = perfetto.communicate(timeout=run.seconds + 90)[1].decode(errors="replace")
        self.code = perfetto.returncode
        self.ended = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for t in threads:
            t.join()
        check = subprocess.run([TP_SHELL, "check", str(self.trace)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.check, self.check_code = check.stdout.decode(errors="replace"), check.returncode
        self.pages = {name: clock_truth.read_page(path) for name, path in world.pages.items()}

    @staticmethod
    def later(world, when, action):
        def wait_and_act():
            time.sleep(max(0, when - time.monotonic()))
            world.act(*action)
        t = threading.Thread(target=wait_and_act)
        t.start()
        return t

    def ask(self, sql, *flags):
        return clock_truth.ask(TP_SHELL, self.trace, sql, *flags)


def gaps(missing, produced):
    """[(first, last)]: times of marks that are missing one after the other."""
    out = []
    for mark in missing:
        if out and mark == out[-1][2] + 1:
            out[-1][1:] = [produced[mark], mark]
        else:
            out.append([produced[mark], produced[mark], mark])
    return [(first, last) for first, last, _ in out]


def ledger(r, name, machine, turns, found):
    """Produced = imported + what the trace says may be missing, and that is no more than what the disturbance explains."""
    run, wrong = r.run, []
    produced = {t.mark: t.told for t in turns if t.mark >= 0}
    missing = sorted(set(produced) - set(found))
    lost = gaps(missing, produced)
    away = sum(int(v) for (v,) in r.ask(f"SELECT value FROM stats WHERE name = 'machine_away_ns' AND idx = {machine}"))
    print(f"guest {name}: {len(produced)} marks produced, {len(set(produced) & set(found))} imported, {len(missing)} missing: "
          f"{', '.join(f'{(a - r.began) / 1e9:.2f} to {(b - r.began) / 1e9:.2f} s' for a, b in lost)}; away {away / 1e9:.2f} s at most")
    if not produced:
        wrong.append("no marks were produced")
    if not missing:
        return wrong
    if name not in run.loses:
        wrong.append(f"{len(missing)} marks are missing, and nothing was disturbed that could have cost them")
    elif lost[0][0] < r.began + int(run.loses[name] * 10 ** 9) - HANDED_OVER_NS:
        wrong.append(f"marks are missing from {(lost[0][0] - r.began) / 1e9:.2f} s on, the disturbance came at {run.loses[name]} s")
    if r.code == 0 and sum(b - a for a, b in lost) > away:
        wrong.append(f"marks of {sum(b - a for a, b in lost) / 1e9:.2f} s are missing, the trace speaks of {away / 1e9:.2f} s at most")
    if r.check_code == 0:
        wrong.append("marks are missing, and check says that nothing was lost")
    return wrong


def steps(r, name, machine):
    """Complaints about the steps that the trace tells of."""
    if r.run.steps is None or r.run.kind != "clocks":
        return []
    got = [int(v) for (v,) in r.ask(f"SELECT step_ns FROM clock_sync WHERE machine_id = {machine} AND model = 'step'")]
    want = [(-int(most * 10 ** 9) - STEP_NS, -int(least * 10 ** 9) + STEP_NS) for least, most in r.paused.get(name, [])] if name in r.run.steps else []
    if len(got) != len(want) or any(not low <= g <= high for g, (low, high) in zip(got, want)):
        return [f"the steps of the clock are {got}, not {want}"]
    if want and "clock_sync_steps" not in r.check:
        return ["check does not speak of the step"]
    return []


def machines(r):
    """Complaints about the machines of a recording: the host and the guests that were connected, by their names."""
    got = {int(raw): name for raw, name in r.ask("SELECT raw_id, name FROM machine WHERE id != 0")}
    want = {machine_id(boot_id): f"guest-{name}" for name, (boot_id, _) in r.pages.items()}
    return [] if got == want else [f"the machines are {got}, not {want}"]


def judge(recording):
    """The complaints about a recording."""
    r, run, wrong = recording, recording.run, []
    print(f"--- {run.name}: perfetto ended with {r.code}: {r.said.strip()}\n{r.check.strip()}\n(check: {r.check_code})", flush=True)
    if not r.trace.exists():
        return [f"{run.name}: there is no file"]
    wrong += [f"{run.name}: {w}" for w in machines(r)]
    for name, (boot_id, turns) in r.pages.items():
        machine = clock_truth.machine_of(TP_SHELL, r.trace, boot_id)
        if machine is None:
            wrong.append(f"{run.name}: guest {name} has no row of machine")
            continue
        turns = [t for t in turns if r.began <= t.told and t.told2 <= r.ended]
        found = clock_truth.marks(TP_SHELL, r.trace, machine)
        for what, v in (("clock", clock_truth.clocks(TP_SHELL, r.trace, machine, turns)),
                        ("marks", clock_truth.judge_marks(found, turns))):
            print(f"guest {name}, {clock_truth.describe(what, v) if v.errors else what + ': none'}")
            if v.outside:
                wrong.append(f"{run.name}: guest {name}: {what}: the truth of {len(v.outside)} of {len(v.errors)} times lies outside "
                             f"of its bound: (when, by how many ns, bound) {[(at - r.began, by, bound) for at, by, bound in v.outside[:5]]}")
        wrong += [f"{run.name}: guest {name}: {w}" for w in ledger(r, name, machine, turns, found) + steps(r, name, machine)]
    for name, idx, value in r.ask("SELECT name, idx, value FROM stats WHERE value != 0 AND (name GLOB 'machine_*' OR name GLOB 'clock_sync*')"):
        print(f"{name}[{idx}] = {value}")
    sys.stdout.flush()
    return wrong


def main(names):
    runs = [r for r in RUNS if not names or {r.name, r.kind} & set(names)]
    if not os.environ.get("IN_NAMESPACE"):
        need(CACHE)
    enter_namespace()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="disturbed-", dir=CACHE) as work:
        world = World(pathlib.Path(work))
        try:
            world.start_service()
            world.boot("ab")
            for run in runs:
                for g in world.guests.values():
                    g.run("adjtimex -q -f 0 -t 10000 >/dev/null")
                world.ready()
                wrong += judge(Recording(world, run))
                world.boot([name for name, g in world.guests.items() if g.proc.poll() is not None])
                if world.procs["traced"].poll() is not None:
                    world.start_service()
        except (OSError, RuntimeError, AssertionError) as e:
            wrong.append(f"{type(e).__name__}: {e}")
            for g in world.guests.values():
                print(f"--- console of {g.name}\n{g.console()}")
        finally:
            world.close()
        if wrong or os.environ.get("KEEP"):
            subprocess.run(["cp", "-r", work, f"{CACHE}/disturbed.kept"])
    for w in wrong:
        print(f"FAILED: {w}")
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
