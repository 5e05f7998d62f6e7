#!/usr/bin/env python3
"""Compares the clocks of a trace with the truth: what `clockpage` measured on each machine without a network.

    clock_truth.py TP_SHELL TRACE PAGE...

A PAGE is the file that a guest shared with the host. Prints for each guest the error of the trace's clock, the bound
that the trace claims, and the quickest round trip; fails when the truth lies outside the bound."""
import collections
import csv
import io
import struct
import subprocess
import sys
import tempfile

from links import machine_id

# guest/clockpage.c: struct page, struct record
COUNT_AT, RECORDS_AT = 128, 4096
RECORD = struct.Struct("<7q")
FEWEST = 10

# One turn of clockpage: two exchanges (asked and heard on the guest's clock, told on the host's) and the mark between them.
Turn = collections.namedtuple("Turn", "asked told heard asked2 told2 heard2 mark")
# What the trace claims beside what is so, all in ns: how far claims are off, what they claim to be off at most, how exactly
# the truth is known, which claims are false: (when, by how much, bound).
Verdict = collections.namedtuple("Verdict", "errors bounds known outside")


def read_page(path):
    """(boot id, turns). Turns that the host did not answer in time are left out: they say nothing."""
    with open(path, "rb") as f:
        page = f.read()
    (count,) = struct.unpack_from("<q", page, COUNT_AT)
    boot_id = page[COUNT_AT + 8:COUNT_AT + 72].split(b"\0")[0].decode()
    end = min(RECORDS_AT + count * RECORD.size, len(page))
    turns = [Turn(*r) for r in RECORD.iter_unpack(page[RECORDS_AT:RECORDS_AT + (end - RECORDS_AT) // RECORD.size * RECORD.size])]
    return boot_id, [t for t in turns if t.told and t.told2]


def ask(tp_shell, trace, sql, *flags):
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as f:
        f.write(sql)
        f.flush()
        out = subprocess.run([tp_shell, "query", *flags, "-f", f.name, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if out.returncode:
        raise RuntimeError(out.stderr.decode(errors="replace"))
    return list(csv.reader(io.StringIO(out.stdout.decode())))[1:]


def machine_of(tp_shell, trace, boot_id):
    """Row of machine, or None."""
    rows = ask(tp_shell, trace, f"SELECT id FROM machine WHERE raw_id = {machine_id(boot_id)} ORDER BY id DESC LIMIT 1")
    return int(rows[0][0]) if rows else None


def judge(claims):
    """claims: (claimed earliest, its bound, claimed latest, its bound, truly not before, truly not after). The claim is
    wrong when no time within the bounds can be the true one."""
    errors, bounds, known, outside = [], [], [], []
    for early, early_bound, late, late_bound, low, high in claims:
        by = max(early - early_bound - high, low - (late + late_bound), 0)
        errors.append(((early + late) - (low + high)) // 2)
        bounds.append(max(early_bound, late_bound))
        known.append((late - early) + (high - low))
        if by:
            outside.append((low, by, bounds[-1]))
    return Verdict(errors, bounds, known, outside)


def clocks(tp_shell, trace, machine, turns, flags=()):
    """What the trace makes of the guest's readings: told must lie between asked and heard."""
    readings = [(a, t, h) for r in turns for a, t, h in ((r.asked, r.told, r.heard), (r.asked2, r.told2, r.heard2))]
    values = ",".join(f"({a},{t},{h})" for a, t, h in readings)
    rows = ask(tp_shell, trace, f"""WITH readings(asked, told, heard) AS (VALUES {values}),
        mapped AS (SELECT told, from_machine_time(asked, {machine}, 'BOOTTIME') AS early,
            from_machine_time(heard, {machine}, 'BOOTTIME') AS late FROM readings)
        SELECT early, clock_error_ns(early, {machine}), late, clock_error_ns(late, {machine}), told, told FROM mapped""", *flags)
    if any("" in r or "NULL" in r or "[NULL]" in r for r in rows):
        raise RuntimeError(f"machine {machine} has times without a bound")
    return judge([tuple(map(int, r)) for r in rows])


def marks(tp_shell, trace, machine, flags=()):
    """{number: (ts, bound)} of the marks that are in the trace."""
    rows = ask(tp_shell, trace, f"""SELECT extract_arg(f.arg_set_id, 'buf'), f.ts, clock_error_ns(f.ts, {machine})
        FROM ftrace_event f JOIN cpu USING (ucpu)
        WHERE f.name = 'print' AND cpu.machine_id = {machine} AND extract_arg(f.arg_set_id, 'buf') GLOB '*|mark *'""", *flags)
    return {int(text.split()[-1]): (int(ts), int(bound)) for text, ts, bound in rows}


def judge_marks(found, turns):
    """What the trace makes of the marks: their times must lie between the two exchanges."""
    return judge([(*found[t.mark], *found[t.mark], t.told, t.told2) for t in turns if t.mark in found])


def median(values):
    return sorted(values)[len(values) // 2]


def describe(what, v):
    return (f"{what}: error {median(list(map(abs, v.errors)))} ns (median of {len(v.errors)}), {max(map(abs, v.errors))} ns at most; "
            f"bound {min(v.bounds)} to {max(v.bounds)} ns, median {median(v.bounds)}; the truth is known to {median(v.known)} ns; "
            f"{len(v.outside)} outside the bound" + (f", by up to {max(by for _, by, _ in v.outside)} ns" if v.outside else ""))


def main(tp_shell, trace, *pages):
    ok = True
    ((start, end),) = ask(tp_shell, trace, "SELECT start_ts, end_ts FROM trace_bounds")
    for page in pages:
        boot_id, turns = read_page(page)
        machine = machine_of(tp_shell, trace, boot_id)
        turns = [t for t in turns if int(start) <= t.told and t.told2 <= int(end)]
        assert len(turns) >= FEWEST, f"{page}: {len(turns)} samples fall into the recording"
        drift = ((turns[-1].asked - turns[0].asked) / (turns[-1].told - turns[0].told) - 1) * 1e6
        ((rtt,),) = ask(tp_shell, trace, f"SELECT min(min_rtt_ns) FROM clock_sync WHERE machine_id = {machine}")
        v = clocks(tp_shell, trace, machine, turns)
        print(f"machine {machine}: runs {drift:+.1f} ppm against the host; quickest round trip {rtt} ns; {describe('clock', v)}")
        ok &= not v.outside
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
