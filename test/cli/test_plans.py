"""Every object of the library gives the same rows with plans (docs/plans.md) and without them: the modules' own statements
run either way as they are included, and each table and view is read."""
import re
import unittest

import harness

STDLIB = harness.DATA.parents[1] / "stdlib"
# How long this program took.
LEFT_OUT = {"stats", "sqlstats"}
ROWS = 300


class Plans(harness.Case):
    def ask(self, trace, sql, plans):
        script = self.dir / "script.sql"
        script.write_text(sql)
        p = self.run_shell("query", "--dev", "--dev-flag", "native-plan=" + plans, trace, "-f", script)
        self.assertEqual(p.returncode, 0, p.stderr.decode()[-2000:])
        return p.stdout.decode()

    def compare(self, name):
        trace = harness.DATA / name
        functions = set()
        for p in STDLIB.rglob("*.sql"):
            functions |= set(re.findall(r"PERFETTO\s+FUNCTION\s+(\w+)", p.read_text(), re.I))
        modules = sorted(".".join(p.relative_to(STDLIB).with_suffix("").parts) for p in STDLIB.rglob("*.sql"))
        self.assertGreater(len(modules), 200)
        include = "".join("INCLUDE PERFETTO MODULE %s;\n" % m for m in modules)
        objects = include + ("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' "
                             "ORDER BY name;")
        names = [l.strip('"') for l in self.ask(trace, objects, "on").split('"name"\n')[-1].split("\n") if l]
        names = [n for n in names if n not in LEFT_OUT | functions]
        self.assertGreater(len(names), 600)
        script = include + "".join("SELECT '=== %s';\nSELECT * FROM \"%s\" LIMIT %d;\n" % (n, n, ROWS) for n in names)
        with_plans, without = (self.ask(trace, script, plans).split('"=== ') for plans in ("on", "off"))
        self.assertEqual(len(with_plans), len(without))
        self.assertGreater(len(with_plans), len(names))
        for a, b in zip(with_plans, without):
            self.assertEqual(a, b)

    def test_scheduling(self):
        self.compare("linux-sched.pftrace")

    def test_two_machines(self):
        self.compare("mm-calls.pftrace.gz")


if __name__ == "__main__":
    unittest.main()
