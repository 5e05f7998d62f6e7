#!/usr/bin/env python3
"""Compares the clocks of a trace with the truth: what `clockpage guest` measured on each machine without a network.

    clock_truth.py TP_SHELL TRACE LOG...

A LOG is what a guest printed: "boot_id ID", and lines "<guest ns> <guest - host ns> <uncertainty ns>". Prints for each
guest the error of the trace's clock, the bound that the trace claims, and the quickest round trip; fails when the truth
lies outside the bound."""
import csv
import io
import subprocess
import sys

from links import machine_id

NEAR_NS = 3_000_000_000
EDGE_NS = 1_000_000_000
PAGE_NS = 1000  # a sample of the page is late by a read of device memory


def ask(tp_shell, trace, sql):
    out = subprocess.run([tp_shell, "query", trace, sql], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return list(csv.reader(io.StringIO(out.stdout.decode())))[1:]


def lower_hull(points):
    """Samples are late by chance, never early: the truth runs along their lower edge."""
    hull = []
    for p in sorted(points):
        while len(hull) > 1 and ((hull[-1][0] - hull[-2][0]) * (p[1] - hull[-2][1]) <=
                                 (p[0] - hull[-2][0]) * (hull[-1][1] - hull[-2][1])):
            hull.pop()
        hull.append(p)
    return hull


def offset_at(samples, t):
    """Samples from close by: the pace of a young kernel's clock changes. Of a window's ends the samples may be late."""
    near = lower_hull([s for s in samples if abs(s[0] - t) <= NEAR_NS])
    for (t0, y0), (t1, y1) in zip(near, near[1:]):
        if t0 <= t <= t1:
            return y0 + (y1 - y0) * (t - t0) // (t1 - t0)
    raise ValueError("outside the samples")


def slope(hull):
    (t0, y0), (t1, y1) = max(zip(hull, hull[1:]), key=lambda s: s[1][0] - s[0][0])
    return (y1 - y0) / (t1 - t0)


def main(tp_shell, trace, *logs):
    ok = True
    ((start, end),) = ask(tp_shell, trace, "SELECT start_ts, end_ts FROM trace_bounds")
    start, end = int(start), int(end)
    for log in logs:
        lines = [line.split() for line in open(log, errors="replace")]
        boot_id = next(w[1] for w in lines if w[:1] == ["boot_id"])
        samples = [(int(w[0]), int(w[1])) for w in lines if len(w) == 3 and all(v.lstrip("-").isdigit() for v in w)]
        first, last = samples[0][0], samples[-1][0]
        drift_ppm = slope(lower_hull(samples)) * 1e6
        ((machine, rtt),) = ask(tp_shell, trace, "SELECT m.id, min(c.min_rtt_ns) FROM machine m JOIN clock_sync c "
                                                 f"ON c.machine_id = m.id WHERE m.raw_id = {machine_id(boot_id)}")
        errors, bounds = [], []
        times = [t for t, y in samples if start <= t - y <= end and first + EDGE_NS < t < last - EDGE_NS]
        assert len(times) >= 10, f"{log}: {len(times)} samples fall into the recording"
        for (got, bound), t in zip(ask(tp_shell, trace, " UNION ALL ".join(
                f"SELECT * FROM (SELECT t, clock_error_ns(t, {machine}) FROM (SELECT from_machine_time({t}, {machine}, 'BOOTTIME') AS t))"
                for t in times)), times):
            errors.append(int(got) - (t - offset_at(samples, t)))
            bounds.append(int(bound))
        outside = sum(abs(e) > b + PAGE_NS for e, b in zip(errors, bounds))
        median = sorted(abs(e) for e in errors)[len(errors) // 2]
        print(f"machine {machine}: runs {drift_ppm:+.1f} ppm against the host; error {median} ns (median of {len(errors)} "
              f"samples), {max(map(abs, errors))} ns at most; bound {min(bounds)} to {max(bounds)} ns; quickest round trip "
              f"{rtt} ns: error {100 * median / int(rtt):.1f} % of it; {outside} samples outside the bound")
        ok &= not outside
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
