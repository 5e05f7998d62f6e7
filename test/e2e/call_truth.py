#!/usr/bin/env python3
"""Compares the messages between machines with the truth: the marks that guest/calls.c wrote on both sides of each call.

    call_truth.py TP_SHELL TRACE...

A request is sent between the marks "asked" and "answered" of its call, and arrives before "heard" but behind the "replied" of
the call before; the reply the other way round. Both ends are compared on their own machine, so that no clock matters."""
import csv
import io
import subprocess
import sys

PORT, LEAST_PART, CALLS, SAMPLE = 7000, 0.99, 70, 50  # calls: of a very busy machine; a quiet one makes 800
CLOCK_NS = 300000  # more than the clocks of recordings that were put together by these messages are apart


def ask(sql):
    done = subprocess.run([sys.argv[1], "query", *sys.argv[2:], sql, "--format", "csv"], capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


marks = {}
for row in ask("select s.ts, s.name, t.utid, t.machine_id from slice s join thread_track k on k.id = s.track_id join thread t using (utid) "
               "where s.name glob 'call * *'"):
    _, call, what = row["name"].split()
    marks.setdefault(int(call), {})[what] = (int(row["ts"]), int(row["utid"]), int(row["machine_id"]))
whole = {n: m for n, m in marks.items() if len(m) == 4}
messages = [{k: int(v) if v.lstrip("-").isdigit() else v for k, v in row.items()} for row in ask(
    "include perfetto module machines.network; select m.*, s.source_port, s.destination_port from machine_network_messages m "
    f"join network_packet s on s.id = m.id where {PORT} in (s.source_port, s.destination_port)")]
requests = sorted((m["ts"], m) for m in messages if m["destination_port"] == PORT)
replies = sorted((m["ts"], m) for m in messages if m["source_port"] == PORT)


def within(found, low, high):
    return [m for ts, m in found if low < ts < high]


# Up to the first wakeup of a thread nobody knows what it was doing: the recording began in the middle of it.
known_from = {int(r["utid"]): int(r["ts"]) for r in ask("select utid, min(ts) as ts from thread_state where state = 'R' group by 1")}


def is_known(mark):
    ts, utid, _ = mark
    return known_from.get(utid, ts) < ts


def shortest(found):
    return min((m["dur"] for _, m in found), default=-10**18)


matched = wrong = woken = 0
paths = []
for call, m in sorted(whole.items()):
    before = whole.get(call - 1)
    asked, answered, heard, replied = (m[k][0] for k in ("asked", "answered", "heard", "replied"))
    there, back = within(requests, asked, answered), [r for _, r in replies if heard < r["ts"] and r["ts"] + r["dur"] < answered and
                                                      r["ts"] + r["dur"] > asked]
    ok = len(there) == 1 and len(back) == 1
    matched += ok
    wrong += len(there) > 1 or len(back) > 1
    for message in there:
        arrived = message["ts"] + message["dur"]
        wrong += not (arrived < heard and (not before or arrived > before["replied"][0]))
        wrong += (message["from_machine_id"], message["to_machine_id"]) != (m["asked"][2], m["heard"][2])
    if ok:
        wrong += there[0]["sender_utid"] != m["asked"][1] or back[0]["sender_utid"] != m["heard"][1]
        if there[0]["reader_utid"] == m["heard"][1] and back[0]["reader_utid"] == m["asked"][1]:
            woken += 1
            if is_known(m["asked"]) and is_known(m["heard"]):
                paths.append((call, m["asked"][1], asked, answered - asked, back[0]["ts"]))
# Recordings made apart are put together by these very messages. Of a relay's comparisons it is known how far they may be off.
error = 0
if len(sys.argv) == 3:
    error = int(ask("select max(max(clock_error_ns(start_ts, m.id), clock_error_ns(end_ts, m.id))) as ns from machine m, trace_bounds where m.id != 0")[0]["ns"])
ends = {m["from_machine_id"] for m in messages} | {m["to_machine_id"] for m in messages}
print(f"{len(whole)} calls, {matched} with both messages, {wrong} wrong, {woken} in which both woke their reader; "
      f"{sum(m['queue_dur'] != '[NULL]' and m['queue_dur'] != '' for m in messages)} of {len(messages)} messages with their time in the queue; "
      f"the shortest requests and replies took {shortest(requests)} and {shortest(replies)} ns; the clocks may be {error} ns off")

# A caller that sleeps waits for the packet of the reply, and while that was not sent yet, for the thread that sent it.
sample, through_both, waited, covered = paths[:SAMPLE], 0, 0, 0
values = ", ".join(f"({call}, {utid}, {ts}, {dur}, {sent})" for call, utid, ts, dur, sent in sample)
if sample:
    for r in ask("include perfetto module machines.critical_path; with calls(call, utid, ts, dur, sent) as (values " + values + ") select calls.call, "
                 "coalesce(calls.sent - (select max(s.ts) from thread_state s where s.utid = calls.utid and s.state = 'S' and s.ts between calls.ts and "
                 "calls.ts + calls.dur), -1) as slept, "
                 "count(distinct p.machine_id) as machines, count(distinct p.packet_id) as packets, sum(p.dur) = calls.dur as covered from calls join "
                 "machine_critical_path(calls.utid, calls.ts, calls.dur) p group by 1"):
        covered += int(r["packets"]) >= 1 and int(r["covered"])
        if int(r["slept"]) > CLOCK_NS + error:
            waited += 1
            through_both += r["machines"] == "2"
    print(f"critical paths: {covered} of {len(sample)} have a packet on them and cover the call to the nanosecond; of {waited} callers that slept before "
          f"the reply was sent, {through_both} paths go through both machines")
flows = ask("select count(*) as n from flow f join network_packet s on s.slice_id = f.slice_out join network_packet r on r.slice_id = f.slice_in "
            f"where s.machine_id != r.machine_id and {PORT} in (s.source_port, s.destination_port)")[0]["n"]
print(f"{flows} arrows")
ok = (len(whole) >= CALLS and min(shortest(requests), shortest(replies)) > -error and matched >= LEAST_PART * len(whole) and not wrong and len(ends) == 2 and int(flows) == len(messages)
      and woken >= 0.5 * len(whole) and covered == len(sample) == SAMPLE and (waited >= 10 or error > CLOCK_NS) and through_both == waited)
sys.exit(not ok)
