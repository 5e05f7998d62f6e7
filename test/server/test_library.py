"""The standard library beside Perfetto's, from the list of objects that its shell gave to the UI: every public object must
be here with the same arguments, columns and types, but for those named in library-missing.txt. Descriptions are our own."""
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
    bad = [f"missing: {name}" for name in sorted(missing - listed)]
    bad += [f"listed as missing, but here: {name}" for name in sorted(listed - missing)]
    bad += [f"{key[0]}.{key[1]}: {ours[key]}, expected {want}" for key, want in sorted(theirs.items())
            if key in ours and ours[key] != want]
    print("\n".join(bad))
    print(f"{len(theirs)} public objects, {len(missing)} not here, {len(bad)} complaints")
    return bool(bad)


sys.exit(main())
