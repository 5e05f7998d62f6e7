"""The standard library beside Perfetto's, from the list of objects that its shell gave to the UI: every public object must
be here with the same arguments, columns and types, but for those named in library-missing.txt. Descriptions are our own.
The same holds for private objects, as far as arguments and columns are declared there. All of our own answer as they are
declared."""
import gzip
import json
import os
import pathlib
import subprocess
import sys

import rpc

HERE = pathlib.Path(__file__).parent
SHARED = pathlib.Path(os.environ.get("MERIDIAN_SHARED", HERE.parent.parent.parent / "shared"))
QUERY = "select module, name, object_type, exposed, return_type, args, cols from __intrinsic_stdlib_objects"
# SELECT * gives these in another order than their declaration has; ours have the order of the rows.
ORDER_DIFFERS = {("prelude.after_eof.views", "thread"), ("prelude.after_eof.views", "process"),
                 ("prelude.after_eof.events", "actual_frame_timeline_slice")}


def signature(text, in_order=True):
    pairs = [(f["name"], f["type"]) for f in json.loads(text or "[]")]
    return pairs if in_order else sorted(pairs)


def public(columns, rows):
    """{(module, name, kind): the signatures that it has}; a function may have several."""
    out = {}
    for row in rows:
        r = dict(zip(columns, row))
        if r["exposed"] and r["object_type"] != "MODULE":
            in_order = (r["module"], r["name"]) not in ORDER_DIFFERS
            out.setdefault((r["module"], r["name"], r["object_type"]), []).append(
                (r["return_type"], signature(r["args"]), signature(r["cols"], in_order)))
    return out


def columns_of(module, name, args):
    """What SELECT * gives, or the error."""
    call = f"{name}({', '.join(['NULL'] * len(args))})" if args is not None else name
    sql = f"INCLUDE PERFETTO MODULE {module}; SELECT * FROM (SELECT 1) LEFT JOIN {call} ON 0"
    run = subprocess.run([rpc.SHELL, "query", "--format", "json", str(rpc.DATA / "linux-sched.pftrace"), sql],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return set(json.loads(run.stdout)[0]) if run.returncode == 0 else run.stderr.decode().strip().splitlines()[-1]


def private_complaints(answer, rows, listed):
    """What statements that name private objects would miss: all that the library's own files name must be here, the same kind of
    object (a view may stand for a table), with the same arguments, and with the columns that are declared."""
    ours = {(r["module"], r["name"]): r for r in rows}
    seen = 0
    for row in answer.rows:
        want = dict(zip(answer.columns, row))
        key = want["module"], want["name"]
        if want["exposed"] or want["object_type"] == "MODULE":
            continue
        seen += 1
        if (key in ours) == (".".join(key) in listed):
            yield f"private {'.'.join(key)}: {'listed as missing, but here' if key in ours else 'not here'}"
        if key not in ours:
            continue
        kinds = [kind.replace("VIEW", "TABLE") for kind in (want["object_type"], ours[key]["object_type"])]
        names = [[f["name"] for f in json.loads(r["args"] or "[]")] for r in (want, ours[key])]
        if kinds[0] != kinds[1] or names[0] != names[1]:
            yield f"private {'.'.join(key)}: {kinds[1]} with arguments {names[1]}, expected {kinds[0]} with {names[0]}"
        declared = {f["name"] for f in json.loads(want["cols"] or "[]")}
        if not declared or want["object_type"] in ("FUNCTION", "MACRO"):
            continue
        have = columns_of(*key, names[0] if want["object_type"] == "TABLE_FUNCTION" else None)
        if isinstance(have, str) or not declared <= have:
            yield f"private {'.'.join(key)}: {have}, expected {sorted(declared)}"
    if seen < 600:
        yield f"only {seen} private objects in the recorded list: it was not read"


def own_complaints(rows):
    """Every table, view, function and table function of our files is asked for its columns, of the module that has it."""
    server = rpc.Server(rpc.DATA / "linux-sched.pftrace")
    asked = 0
    try:
        for r in rows:
            names = [f["name"] for f in json.loads(r["args"] or "[]")]
            call = f"{r['name']}({', '.join(['NULL'] * len(names))})"
            what = {"TABLE": f"* FROM {r['name']} LIMIT 0", "VIEW": f"* FROM {r['name']} LIMIT 0", "FUNCTION": f"{call} LIMIT 0",
                    "TABLE_FUNCTION": f"* FROM (SELECT 1) LEFT JOIN {call} ON 0"}.get(r["object_type"])
            if what is None:
                continue
            asked += 1
            answer = server.ask(f"INCLUDE PERFETTO MODULE {r['module']}; SELECT {what}", timeout=200)
            have = set(answer.columns)
            declared = {f["name"] for f in json.loads(r["cols"] or "[]")}
            if answer.error or r["object_type"] != "FUNCTION" and not declared <= have:
                yield f"{r['module']}.{r['name']}: {answer.error or sorted(have)}, expected {sorted(declared)}"
    finally:
        server.stop()
    if asked < 800:
        yield f"only {asked} objects of the library were asked"


def main():
    recorded = SHARED / "ui" / "load.response.bin.gz"
    if not recorded.exists():
        print(f"skipped: no recorded answers in {recorded.parent} (MERIDIAN_SHARED names another place)")
        return 77
    answers = rpc.answers(rpc.results(gzip.decompress(recorded.read_bytes())))
    answer = next(a for a in answers if "object_type" in a.columns)
    theirs = public(answer.columns, answer.rows)
    shell = subprocess.run([rpc.SHELL, "query", "--format", "json", str(rpc.DATA / "linux-sched.pftrace"), QUERY],
                           stdout=subprocess.PIPE, check=True)
    rows = json.loads(shell.stdout)
    ours = public(list(rows[0]), [list(r.values()) for r in rows])
    listed = {line.split("#")[0].strip() for line in (HERE / "library-missing.txt").read_text().splitlines()} - {""}
    missing = {f"{m}.{name}" for m, name, kind in theirs if (m, name, kind) not in ours}
    listed_public = {name for name in listed if not name.rpartition(".")[2].startswith("_")}
    bad = [f"missing: {name}" for name in sorted(missing - listed_public)]
    bad += [f"listed as missing, but here: {name}" for name in sorted(listed_public - missing)]
    bad += [f"{key[0]}.{key[1]}: {ours[key]}, expected {want}" for key, want in sorted(theirs.items())
            if key in ours and ours[key] != want]
    bad += private_complaints(answer, rows, listed)
    bad += own_complaints(rows)
    print("\n".join(bad))
    print(f"{len(theirs)} public objects, {len(missing)} not here, {len(bad)} complaints")
    return bool(bad)


sys.exit(main())
