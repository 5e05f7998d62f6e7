"""The interactive shell on a pseudo-terminal, and from a pipe."""
import os
import pty
import re
import select
import signal
import sqlite3
import time

import harness


class Terminal:
    """tp_shell on a pseudo-terminal of 24 lines by 200 columns."""

    def __init__(self, *args, home):
        pid, self.fd = pty.fork()
        if pid == 0:
            try:
                os.environ.update(TERM="dumb", HOME=str(home), XDG_CONFIG_HOME="", COLUMNS="200", LINES="24")
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
    def start(self, *args):
        t = Terminal(*(args or ["interactive", harness.DATA / "linux-deflate.pftrace"]), home=self.dir)
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
            self.assertIn("answer               \r\n-------------------- \r\n                  42 ", got)
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
        self.assertNotIn("executed", self.ask(t, "select 1 as quiet;", "     1 \r\n"))
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
        self.ask(t, "select 'fresh line' as x;", "fresh line  ")
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
        self.assertIn("v ", got)
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
        self.assertEqual(p.stdout, b'"a"\n1\n"b"\n2\n"c"\n3\n')

    def test_errors_go_on(self):
        p = self.run_shell("interactive", self.empty, stdin=b".mode csv\nselect nope;\nselect 1 as a;\n")
        self.assertEqual(p.stdout, b'"a"\n1\n')
        self.assertIn(b"no such column: nope", p.stderr)

    def test_no_pages(self):
        p = self.run_shell("interactive", self.empty, stdin=b"with recursive n(v) as (select 1 union all select v + 1 "
                           b"from n where v < 70) select v from n;\n")
        self.assertIn(b" 70 \n", p.stdout)
        self.assertEqual(p.stdout.count(b"-----"), p.stdout.count(b"--------------------") * 4)


if __name__ == "__main__":
    harness.main()
