"""Pictures of answers at the prompt."""
import harness

SCHED = harness.DATA / "linux-sched.pftrace"


class Plot(harness.Case):
    def draw(self, *lines, code=0):
        p = self.run_shell("interactive", SCHED, stdin="\n".join([".timer off", *lines, ""]).encode(), code=code)
        return p.stdout.decode(), "\n".join(l for l in p.stderr.decode().splitlines() if not l.startswith("Trace loaded"))

    def test_bars(self):
        out, err = self.draw(".plot select column1 as name, column2 as n from (values ('one', 10), ('日本', 5), ('none', 0), (null, 2.5), ('x', null))")
        rows = out.splitlines()
        full = rows[0].count("█")
        self.assertGreater(full, 19)
        self.assertEqual(rows[0], "one    " + "█" * full + " 10")
        self.assertEqual(rows[1], "日本   " + "█" * (full // 2) + ("▌" if full % 2 else "") + " 5")
        self.assertEqual(rows[2], "none    0")
        self.assertEqual((rows[3][:7], rows[3].split()[-1]), ("[NULL] ", "2.5"))
        self.assertEqual(rows[4:], ["1 rows without a number are left out"])
        self.assertEqual(err, "")

    def test_bars_below_zero_and_too_many(self):
        rows = self.draw(".plot select column1, column2 from (values ('up', 1), ('down', -1))")[0].splitlines()
        self.assertEqual(rows[0].count("█"), rows[1].count("█"))
        self.assertGreater(rows[0].index("█"), rows[1].index("█"))
        out, _ = self.draw(".plot select 'r' || value, value as v from generate_series(1, 100)", code=None)
        if out:  # where SQLite has generate_series
            self.assertIn("… and 60 more rows: ORDER BY v DESC LIMIT 40", out)

    def test_line_of_the_last_answer(self):
        out, err = self.draw("with recursive n(i) as (values (0) union all select i + 1 from n where i < 99) select i, i * 2 as twice from n;", ".plot")
        picture = [l for l in out.splitlines() if "┤" in l]
        self.assertEqual((len(picture), err), (12, ""))
        self.assertTrue(picture[0].startswith("198┤") and picture[-1].startswith("  0┤"), out)
        left, right = picture[-1].split("┤")[1], picture[0].split("┤")[1]
        self.assertNotEqual(left[0], "\u2800")  # a line that goes up: begins below on the left, ends above on the right
        self.assertNotEqual(right[-1], "\u2800")
        self.assertEqual((left[-1], right[0]), ("\u2800", "\u2800"))
        self.assertIn("twice against i", out)

    def test_histogram(self):
        out, _ = self.draw(".plot select dur from sched where dur > 0")
        counts = [int(l.split()[-1]) for l in out.splitlines()]
        self.assertEqual(len(counts), 20)
        n = self.query("select count(*) from sched where dur > 0", trace=SCHED).split()[-1].strip('"')
        self.assertEqual(sum(counts), int(n))
        self.assertEqual(self.draw(".plot hist select 5")[0].split()[0], "5")

    def test_spark(self):
        out, _ = self.draw(".plot spark select column1 from (values (0), (1), (2), (3), (4), (5), (6), (7))")
        self.assertEqual(out, "▁▂▃▄▅▆▇█\nleast 0, most 7, last 7\n")

    def test_doubles_at_their_ends(self):
        out, err = self.draw(".plot line select column1, column2 from (values (-1.7e308, -1.7e308), (1.7e308, 1.7e308), (1, 9e999))")
        self.assertIn("1 rows without a number", out)
        self.assertEqual(err, "")

    def test_nothing_to_draw(self):
        for line, reason in ((".plot", "there is none"), (".plot brs", "did you mean 'bars'?"), (".plot select 'a'", "no rows with numbers"),
                             (".plot select 1 where 0", "no rows with numbers"), (".plot select x", "no such column: x"),
                             (".plot line", "there is none")):
            out, err = self.draw(line, code=None)
            self.assertEqual(out, "", line)
            self.assertIn(reason, err, line)

    def test_tables_by_group(self):
        out, _ = self.draw(".tables")
        self.assertRegex(out, r"CPUs and scheduling\n(  .*\n)*  .*\bsched +13549")
        self.assertNotIn("heap_graph", out)
        self.assertRegex(out, r"\d+ more tables have no rows")


if __name__ == "__main__":
    harness.main()
