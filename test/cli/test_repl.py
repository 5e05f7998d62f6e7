"""The interactive shell on a pseudo-terminal, and from a pipe."""
import os
import pty
import re
import select
import signal
import sqlite3
import time
import unicodedata

import harness


class Terminal:
    """tp_shell on a pseudo-terminal of 24 lines by 200 columns."""

    def __init__(self, *args, home, **env):
        pid, self.fd = pty.fork()
        if pid == 0:
            try:
                os.environ.update({**dict(TERM="dumb", HOME=str(home), XDG_CONFIG_HOME="", COLUMNS="200", LINES="24",
                                          LC_ALL="C.UTF-8"), **env})
                os.execv(harness.SHELL, [harness.SHELL, *map(str, args)])
            finally:
                os._exit(127)
        self.pid = pid
        self.seen = ""

    def send(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern, timeout=30):
        """Waits until the pattern comes after what was expected before; returns the text up to its end."""
        end = time.monotonic() + timeout
        while True:
            m = re.search(pattern, self.seen)
            if m:
                got, self.seen = self.seen[:m.end()], self.seen[m.end():]
                return got
            left = end - time.monotonic()
            ready = select.select([self.fd], [], [], max(left, 0))[0]
            try:
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"no {pattern!r} in {self.seen[-2000:]!r}")
            self.seen += data.decode(errors="replace")

    def wait(self):
        """The exit code, after the terminal has been read to its end."""
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


class Repl(harness.Case):
    def start(self, *args, **env):
        t = Terminal(*(args or ["interactive", harness.DATA / "linux-deflate.pftrace"]), home=self.dir, **env)
        self.addCleanup(lambda: os.path.exists(f"/proc/{t.pid}") and os.kill(t.pid, signal.SIGKILL))
        t.expect("> ")
        return t

    def ask(self, t, text, pattern):
        t.send(text + "\r")
        got = t.expect(pattern)
        t.expect("> $")
        return got

    def test_select_and_quit(self):
        for leave in (".quit\r", ".q\r", "\x04"):
            t = self.start()
            got = self.ask(t, "select 41 + 1 as answer;", r"Query executed in [\d.]+ ms")
            self.assertIn("answer \r\n------ \r\n    42 ", got)
            t.send(leave)
            self.assertEqual(t.wait(), 0)

    def test_statement_over_lines(self):
        t = self.start()
        t.send("select count(*) > 0 as some\r")
        t.expect(r"\.\.\.> ")
        t.send("from sched -- it's; a comment\r")
        t.expect(r"\.\.\.> ")
        self.assertRegex(self.ask(t, ";", "Query executed"), r" [01] \r\n")
        t.send("select 'empty line' as ends\r")
        t.expect(r"\.\.\.> ")
        self.assertIn("empty line", self.ask(t, "", "Query executed"))
        t.send(".quit\r")
        self.assertEqual(t.wait(), 0)

    def test_empty_line_and_unknown_command(self):
        t = self.start()
        self.ask(t, "", "type .q or press CTRL-D")
        self.ask(t, ".nonsense", r"unknown command .nonsense[^$]*\.width")

    def test_errors_do_not_leave(self):
        t = self.start()
        self.ask(t, "select * from nope;", "no such table: nope")
        self.ask(t, "selec;", "syntax error")
        self.ask(t, "select 1;", "Query executed")

    def test_meta_commands(self):
        t = self.start()
        self.ask(t, ".help", r"\.dump +FILE")
        self.assertIn("thread_state", self.ask(t, ".tables", "thread_state"))
        self.ask(t, ".tables sched*", "sched_slice")
        self.ask(t, ".schema sched", r"JOINID\(thread.id\)")
        self.ask(t, ".schema __intrinsic_args", r"int_value +INTEGER +The value when it is a number, pointer or bool")
        self.ask(t, ".schema clock_sync", "-- How the clocks of remote machines were related")
        self.ask(t, ".schema", "usage: .schema")
        self.ask(t, ".schema nope", "nothing matches")
        self.ask(t, ".mode csv", "")
        self.ask(t, "select 'x' as a;", 'a\r\nx\r\n')
        self.ask(t, ".mode classic", "")
        self.ask(t, "select 'x' as a;", '"a"\r\n"x"\r\n')
        self.ask(t, ".mode json", "")
        self.ask(t, "select 'x' as a;", r'\{"a": "x"\}')
        self.ask(t, ".mode nope", "usage: .mode")
        self.ask(t, ".mode table", "")
        self.ask(t, ".width 6", "")
        self.assertIn("longname \r\n------ \r\nabcdef \r\n", self.ask(t, "select 'abcdefgh' as longname;", "abcdef \r\n")
                      .replace("longna \r\n", "longname \r\n"))
        self.ask(t, ".width x", "usage: .width")
        self.ask(t, ".timer off", "")
        self.assertNotIn("executed", self.ask(t, "select 1 as quiet;", "  1 \r\n"))
        self.ask(t, ".timer perhaps", "usage: .timer")
        self.ask(t, ".run-metrics", "tp_shell summarize")
        (self.dir / "script.sql").write_text("select 1 as one; select 'two' as two;")
        self.ask(t, f".read {self.dir}/script.sql", '"one"\r\n1\r\n\r\n"two"\r\n"two"\r\n')
        self.ask(t, ".read /nonexistent", "/nonexistent")
        self.ask(t, f".dump {self.dir}/dump.db", "written")
        with sqlite3.connect(self.dir / "dump.db") as db:
            self.assertGreater(db.execute("select count(*) from sched").fetchone()[0], 0)
        db.close()
        self.ask(t, "create table mine(x);", "")
        self.ask(t, ".reset", "")
        self.ask(t, "select * from mine;", "no such table: mine")

    def test_ctrl_c_stops_the_query_not_the_shell(self):
        t = self.start()
        t.send("with recursive n(v) as (select 1 union all select v + 1 from n) select count(*) from n;\r")
        time.sleep(0.7)
        t.send("\x03")
        t.expect("Interrupted")
        t.expect("> $")
        self.ask(t, "select 'still here' as x;", "still here")
        t.send("select half")
        t.expect("half")
        t.send("\x03")
        t.expect("> $")
        self.ask(t, "select 'fresh line' as x;", "fresh line")
        for _ in range(50):  # as soon as the prompt shows, whether or not the editor waits already
            t.send("\x03")
            t.expect("> $", timeout=10)
        t.send(".quit\r")
        self.assertEqual(t.wait(), 0)

    def test_pages(self):
        t = self.start()
        rows = "with recursive n(v) as (select 1 union all select v + 1 from n where v < 70) select v from n;\r"
        t.send(rows)
        t.expect("Type 'q' to stop, Enter for more records: ")
        t.send("\r")
        got = t.expect("Type 'q' to stop, Enter for more records: ")
        self.assertIn(" 33 ", got)
        t.send("q\r")
        t.expect("Query executed")
        self.assertNotIn(" 70 ", t.expect("> $"))
        t.send(rows.replace("70", "32"))
        self.assertNotIn("Type 'q'", t.expect("Query executed"))

    def test_wide(self):
        t = self.start("interactive", "-W", self.empty)
        self.ask(t, "select 1 as a;", "-" * 40 + " ")

    def test_completion(self):
        t = self.start()
        t.send("select count(*) as n from thread_sta\t;\r")
        t.expect("thread_state ?;")
        t.expect("Query executed")
        t.expect("> $")
        t.send(".sch\tsched\r")
        t.expect("utid")
        t.expect("> $")
        t.send("select * from sched where end_st\t\x15.q\r")
        t.expect("end_state")
        self.assertEqual(t.wait(), 0)

    def test_history(self):
        t = self.start()
        self.ask(t, "select 'remember me' as x;", "Query executed")
        t.send(".quit\r")
        self.assertEqual(t.wait(), 0)
        t = self.start()
        t.send("\x10\x10\r")  # the entry before .quit
        t.expect("remember me[^>]*Query executed")


    # ---- a terminal that can more ----

    PASTED = """\t-- who ran longest; it's a comment

select thread.name as name,

\tsum(dur) / 1000 as us,\tcount(*) as n
from sched
join thread using (utid)

where dur > 0 -- not the last one

group by thread.name

order by us desc

limit 3;
"""

    def paste(self, t, text):
        t.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def test_paste(self):
        """Tabs complete nothing and empty lines end nothing; the statement is one entry of the history, as it was."""
        t = self.start(TERM="xterm", PAGER="", NO_COLOR="1")
        t.send("")
        self.paste(t, self.PASTED)
        got = t.expect(r"Query executed in [\d.]+ ms, 3 rows")
        self.assertRegex(got, r"name +us +n")
        self.assertNotIn("syntax error", got)
        t.expect("> ")
        t.send("\x10\r")  # the entry before, once more
        self.assertRegex(t.expect(r"Query executed in [\d.]+ ms, 3 rows"), r"name +us +n")
        t.expect("> ")
        t.send(".quit\r")
        self.assertEqual(t.wait(), 0)
        saved = next(self.dir.rglob("tp_shell_history")).read_text()
        self.assertEqual(saved.count("who\\040ran"), 1, saved)
        self.assertIn("comment\\012", saved)

    def test_pasted_escapes(self):
        """What a pasted text has of control characters does not reach the terminal; arrows still work."""
        t = self.start(TERM="xterm", PAGER="", NO_COLOR="1")
        self.paste(t, "select 'a\x1b[31mb\x07' as x;\n")
        t.expect("1 row")
        t.expect("> ")
        t.send("select 2x\x1b[D\x1b[C\x7f as two;\r")
        t.expect("two")
        t.expect("1 row")

    def widths(self, columns, sql):
        t = self.start(COLUMNS=str(columns))
        t.send(".mode box\r")
        t.expect("> $")
        t.send(sql + "\r")
        got = t.expect("Query executed")
        t.send(".q\r")
        t.wait()
        return [l.rstrip("\r\n") for l in got.splitlines() if l.strip() and l[0] in "┌│├└"]

    def test_columns_of_the_terminal(self):
        long = "select 1 as id, hex(zeroblob(40)) as long_text, '日本語のテキスト' as wide, 'short' as s;"
        for columns in (60, 100, 200):
            lines = self.widths(columns, long)
            self.assertEqual(len(lines), 5)
            wide = [sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in l) for l in lines]
            self.assertEqual(len(set(wide)), 1, "\n".join(lines))
            self.assertLessEqual(wide[0], columns)
            self.assertEqual("…" in lines[3], columns < 120, "\n".join(lines))
            self.assertIn("short", lines[3])
        self.assertEqual(self.widths(60, "select " + ", ".join(f"{i} as c{i}" for i in range(30)) + ";"), [])  # a line a column

    def test_completion_of_each_kind(self):
        t = self.start()
        for typed, shown in (("select end_st from sched" + 11 * "\x02" + "\t\x05\x15", "end_state"),
                             ("select * from sched where prio\t\x15", "priority"),
                             ("INCLUDE PERFETTO MODULE sched.runn\t\x15", r"sched\.runnable"),
                             ("select extract_a\t\x15", r"extract_arg\("),
                             ("select * from counter_leading_int\t\x15", r"counter_leading_intervals!\("),
                             (".mode mark\t\x15", "markdown"), (".docs thread_sta\t\x15", "thread_state"),
                             (f".read {harness.DATA}/linux-defl\t\x15", "linux-deflate.pftrace"),
                             ("select sub\t\t\x15", r"substr\(")):
            with self.subTest(typed):
                t.send(typed)
                t.expect(shown)

    def test_output_and_once(self):
        t = self.start()
        self.ask(t, f".once {self.dir}/one", "")
        self.ask(t, "select 'in the file' as x;", "Query executed")
        self.assertIn("on the screen", self.ask(t, "select 'on the screen' as x;", "Query executed"))
        self.assertIn("in the file", (self.dir / "one").read_text())
        self.ask(t, ".mode csv", "")
        self.ask(t, f".output {self.dir}/two", "")
        self.ask(t, "select 1 as a;", "Query executed")
        self.ask(t, "select 2 as a;", "Query executed")
        self.ask(t, ".output", "")
        self.assertEqual((self.dir / "two").read_text().split(), ["a", "1", "a", "2"])
        self.ask(t, ".output /nonexistent/x", "/nonexistent/x: No such file")
        self.assertIn("here again", self.ask(t, "select 'here again' as x;", "Query executed"))

    def test_words_that_leave(self):
        for word in ("exit", "quit", "EXIT;", "quit ;"):
            t = self.start()
            t.send(word + "\r")
            self.assertEqual(t.wait(), 0)

    def test_suggestions(self):
        t = self.start()
        self.ask(t, "select * from scheds;", r"no such table: scheds\s+did you mean 'sched'\?")
        self.ask(t, "select priorty from sched;", r"no such column: priorty\s+did you mean 'priority'\?")
        self.ask(t, "select s.utd from sched s;", r"no such column: s.utd\s+did you mean 'utid'\?")
        self.ask(t, "select lengt(1);", r"did you mean 'length'\?")
        self.ask(t, "include perfetto module sched.runnabl;", r"did you mean 'sched.runnable'\?")
        self.assertNotIn("did you mean", self.ask(t, "select * from entirely_different;", "no such table: entirely"))

    def test_colours(self):
        t = self.start(TERM="xterm", PAGER="")
        t.send("select nope;\r")
        t.expect("\x1b\\[1;31mno such column: nope")
        t = self.start(TERM="xterm", PAGER="", NO_COLOR="1")
        t.send("select nope;\r")
        t.expect("[^m]no such column: nope")

    def test_pager(self):
        """Long answers go through it, whole; one that is left early ends nothing else."""
        t = self.start(TERM="xterm", PAGER="head -2 | sed s/^/paged:/", NO_COLOR="1")
        t.send("with recursive n(v) as (select 1 union all select v + 1 from n where v < 100000) select v from n;\r")
        t.expect("paged:v[^$]*paged:-")
        t.expect("Query executed")
        t.expect("> ")
        t.send(".pager off\r")
        t.expect("> ")
        t.send("select 'still' || ' here' as x;\r")
        self.assertNotIn("paged", t.expect("still here"))

    def test_docs(self):
        t = self.start()
        self.ask(t, ".docs sched", "column utid")
        self.ask(t, ".docs counter_leading_intervals", r"INCLUDE PERFETTO MODULE counters.intervals;[^$]*argument counter_table")
        self.ask(t, ".docs nothing_at_all", "nothing matches 'nothing_at_all'")
        self.ask(t, ".docs", "usage: .docs NAME")

    def test_ctrl_c_in_exports(self):
        """A dump that is interrupted leaves no file."""
        t = self.start()
        t.send("create perfetto table many as with recursive n(v) as (select 1 union all select v + 1 from n where v < 3000000) "
               "select v, v as a, v as b, v as c from n;\r")
        t.expect("Query executed", timeout=120)
        t.expect("> $")
        t.send(f".dump {self.dir}/half.db\r")
        time.sleep(0.3)
        t.send("\x03")
        if "interrupted" in t.expect("interrupted|written"):
            self.assertFalse((self.dir / "half.db").exists())
        t.expect("> $")
        self.ask(t, "select 'still here' as x;", "still here")


class Progress(harness.Case):
    def test_a_conversion_that_takes_long(self):
        """Its reader is slow: a line a second says how far it is. Ctrl-C ends it."""
        fifo = self.dir / "slow.json"
        os.mkfifo(fifo)
        t = Terminal("convert", "json", harness.DATA / "linux-sched.pftrace", fifo, home=self.dir)
        self.addCleanup(lambda: os.path.exists(f"/proc/{t.pid}") and os.kill(t.pid, signal.SIGKILL))
        with open(fifo, "rb") as reader:
            t.expect(r"\rConverting: [1-9]\d* s, \d\.\d MB written \(Ctrl-C ends it\)\r", timeout=60)
            t.send("\x03")
            t.expect(r"\^C")
            n = len(reader.read())
        self.assertGreater(n, 1000)
        t.expect(r"\r +\r.*interrupted", timeout=60)
        self.assertEqual(t.wait(), 1)
        whole = self.run_shell("convert", "json", harness.DATA / "linux-sched.pftrace")
        self.assertGreater(len(whole.stdout), n)
        self.assertNotIn(b"Converting", whole.stderr)

    def test_queries_that_take_long(self):
        """The line goes before rows come; nothing of it without a terminal on standard error."""
        forever = "with recursive n(v) as (select 1 union all select v + 1 from n) select v from n where v < 0"
        t = Terminal("query", self.empty, forever, home=self.dir)
        self.addCleanup(lambda: os.path.exists(f"/proc/{t.pid}") and os.kill(t.pid, signal.SIGKILL))
        t.expect(r"\rRunning: [1-9]\d* s \(Ctrl-C ends it\)\r", timeout=60)
        t.send("\x03")
        self.assertEqual(t.wait(), -signal.SIGINT)

    def test_the_screen_is_the_readers_once_it_has_rows(self):
        """A pager shows what it reads on the same terminal."""
        pid, fd = pty.fork()
        if pid == 0:
            try:
                forever = "with recursive n(v) as (select 1 union all select v + 1 from n) select v from n"
                command = f"'{harness.SHELL}' query '{self.empty}' '{forever}' | {{ head -c 1 >/dev/null; sleep 2.2; echo ov''er; }}"
                os.execv("/bin/sh", ["sh", "-c", command])
            finally:
                os._exit(127)
        t = Terminal.__new__(Terminal)
        t.pid, t.fd, t.seen = pid, fd, ""
        self.assertNotIn("Running", t.expect("over", timeout=60))
        t.wait()


class PipedTrace(harness.Case):
    def test_trace_from_a_pipe_and_questions_from_the_terminal(self):
        pid, fd = pty.fork()
        if pid == 0:
            try:
                os.environ.update(TERM="dumb", HOME=str(self.dir), XDG_CONFIG_HOME="")
                trace = harness.DATA / "linux-deflate.pftrace"
                os.execv("/bin/sh", ["sh", "-c", f"cat '{trace}' | '{harness.SHELL}' -"])
            finally:
                os._exit(127)
        t = Terminal.__new__(Terminal)
        t.pid, t.fd, t.seen = pid, fd, ""
        t.expect("> ")
        t.send("select count(*) > 100 as many from sched;\r")
        t.expect("many[^$]* 1 [^$]*Query executed")
        t.expect("> $")
        t.send(".quit\r")
        self.assertEqual(t.wait(), 0)


class Pipe(harness.Case):
    def test_script(self):
        p = self.run_shell("interactive", self.empty, stdin=b".mode csv\nselect 1 as a;\nselect 2\n as b;\n.timer off\nselect 3 as c")
        self.assertEqual(p.stdout, b"a\n1\nb\n2\nc\n3\n")

    def test_errors_go_on(self):
        p = self.run_shell("interactive", self.empty, stdin=b".mode csv\nselect nope;\nselect 1 as a;\n", code=1)
        self.assertEqual(p.stdout, b"a\n1\n")
        self.assertIn(b"no such column: nope", p.stderr)

    def test_any_failure_is_told_by_the_status(self):
        for line in ("select abs(-9223372036854775807 - 1);", ".nosuch", ".read missing.sql", ".mode nosuch", ".output missing/x",
                     ".output /dev/full\nselect 1;", ".dump missing/x", ".width 0"):
            p = self.run_shell("interactive", self.empty, stdin=f"{line}\n.output\nselect 2;\n".encode(), code=1)
            self.assertIn(b"some of what standard input asked failed", p.stderr, line)

    def test_no_pages(self):
        p = self.run_shell("interactive", self.empty, stdin=b"with recursive n(v) as (select 1 union all select v + 1 "
                           b"from n where v < 70) select v from n;\n")
        self.assertIn(b" 70 \n", p.stdout)
        self.assertEqual(p.stdout.count(b"-----"), p.stdout.count(b"--------------------") * 4)


if __name__ == "__main__":
    harness.main()
