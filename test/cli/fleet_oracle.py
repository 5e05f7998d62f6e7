"""What a fleet must answer about its traces, from the traces asked one by one by SQL."""
import json
import re
import subprocess

import harness
import test_export

MODULUS = 1000003


def public(table):
    return table.removeprefix("__intrinsic_").lstrip("_")


# Rows that a fleet takes of a table, and what is measured anew by every import.
WHERE = {"cpu": "cpu IS NOT NULL", "stats": "value != 0 AND name NOT LIKE '%duration_ns'"}


def columns_of(server, database="fleet_local"):
    """{table: {column: type}} of the tables of traces."""
    out = {}
    for table, name, kind in server.rows(f"SELECT table, name, type FROM system.columns WHERE database = '{database}' AND table LIKE '%_rows'"):
        if name not in ("load", "month", "trace"):
            out.setdefault(table.removesuffix("_rows"), {})[name] = kind
    return out


def sums(column, kind, quote, length):
    """What is compared of a column: how many values, and their sum (of texts: of their lengths)."""
    name = quote + column + quote
    value = length.format(name) if "String" in kind else f"({name} % {MODULUS})" if "Int" in kind else name
    return [f"count({name})", f"sum({value})"]


class Oracle:
    """The sums of every table of traces. `columns` as columns_of()."""

    def __init__(self, columns):
        self.columns = columns

    def table_sql(self, table, own, machines):
        made = test_export.readable(own, machines)
        cells = ["count(*)"]
        for column, kind in self.columns[public(table)].items():
            if column in own or column in made:
                cells += sums(column, kind, '"', "length(CAST({} AS BLOB))")
        more = "".join(f', {e} AS "{name}"' for name, e in made.items())
        where = WHERE.get(public(table))
        return f"SELECT {', '.join(cells)} FROM (SELECT r.*{more} FROM {table} r{' WHERE ' + where if where else ''})"

    def of_trace(self, path):
        """{table: [numbers]} with the columns that the fleet has, in its order; missing ones are 0."""
        probe = ";".join(f"SELECT '{t}' AS _t, * FROM {t} LIMIT 1" for t in test_export.TABLES)
        rows = self.ask(path, probe + ";SELECT 'n' AS _t, count(*) AS n FROM __intrinsic_machine")
        own = {r["_t"]: [k for k in r if k != "_t"] for r in rows if r["_t"] != "n"}
        machines = next(r["n"] for r in rows if r["_t"] == "n")
        tables = list(own)
        answers = self.ask(path, ";".join(self.table_sql(t, own[t], machines) for t in tables))
        out = {}
        for table, answer in zip(tables, answers):
            values, made = list(answer.values()), test_export.readable(own[table], machines)
            row, at = [values[0]], 1
            for column in self.columns[public(table)]:
                there = column in own[table] or column in made
                row += [v or 0 for v in values[at:at + 2]] if there else [0, 0]
                at += 2 * there
            if values[0]:
                out[public(table)] = row
        return out

    @staticmethod
    def ask(path, sql):
        # every statement's columns get names of their own, so that JSON keeps all of them
        def named(statement):
            m = re.match(r"SELECT (count\(\*\).*?) FROM \(SELECT r\.", statement)
            if not m:
                return statement
            cells = re.findall(r"(?:count|sum)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", m.group(1))
            return "SELECT " + ", ".join(f"{c} AS c{i}" for i, c in enumerate(cells)) + statement[m.end(1):]
        text = ";".join(map(named, sql.split(";")))
        p = subprocess.run([harness.SHELL, "query", "--format", "jsonl", str(path), text], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=120, check=True)
        return [json.loads(line) for line in p.stdout.decode().splitlines() if line]

    def of_fleet(self, server, database="fleet"):
        """{trace: {table: [numbers]}}"""
        out = {}
        for table, columns in self.columns.items():
            if table.startswith("fleet_"):
                continue
            cells = ["count()"]
            for column, kind in columns.items():
                length = "length({})" if "Nullable" not in kind else "length(ifnull({}, ''))"
                if column == "machine": # '' stands for none
                    cells += ["countIf(machine != '')", "sum(length(machine))"]
                else:
                    cells += sums(column, kind, "`", length)
            where = WHERE.get(table)
            sql = f"SELECT trace, {', '.join(cells)} FROM {database}.`{table}`{' WHERE ' + where if where else ''} GROUP BY trace"
            for trace, *values in server.rows(sql, distributed_product_mode="local"):
                out.setdefault(trace, {})[table] = [0 if v == "\\N" else float(v) if "." in v or "e" in v else int(v) for v in values]
        return out


def differences(found, wanted):
    """Where {table: [numbers]} differ; doubles by more than their last digits."""
    out = []
    for table in sorted(set(found) | set(wanted)):
        a, b = found.get(table), wanted.get(table)
        if a is None or b is None or len(a) != len(b) or any(abs(x - y) > 1e-9 * max(abs(x), abs(y)) for x, y in zip(a, b)):
            out.append((table, a, b))
    return out
