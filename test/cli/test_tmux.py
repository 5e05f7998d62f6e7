"""The prompt in tmux, a terminal that people have: what the screen shows after they paste, complete, look back, and press Ctrl-C."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import unicodedata

import harness

if not shutil.which("tmux"):
    print("skipped: tmux is not installed")
    sys.exit(77)

TRACE = harness.DATA / "linux-deflate.pftrace"

# Twenty lines as people paste them: tabs, empty lines, a comment with a quote, a semicolon in a string.
PASTED = """\t-- who ran longest; it's only a comment

with
\truns as (

\t\tselect utid, dur,
\t\t\t'a;b' as mark
\t\tfrom sched

\t\twhere dur > 0
\t),

\tsums as (select utid, sum(dur) / 1000 as us, count(*) as n, mark
\t         from runs group by utid)

select 'total' as pasted, sum(n) > 0 as some,
\tcount(*) > 0 as threads, max(mark) as mark

from sums
limit 3;
"""


def cells(line):
    """Columns that a line takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Screen:
    """tp_shell in a tmux of its own. The typescript has every byte that it wrote."""

    def __init__(self, home, columns, lines=40, program=None):
        self.home, self.name = home, f"mrd{os.getpid()}-{time.monotonic_ns()}"
        self.typescript = home / f"{self.name}.typescript"
        env = dict(HOME=home, XDG_CONFIG_HOME="", PAGER="", NO_COLOR="1", LC_ALL="C.UTF-8",
                   LSAN_OPTIONS=os.environ.get("LSAN_OPTIONS", ""))
        words = ["env", *(f"{k}={v}" for k, v in env.items()), *(program or [harness.SHELL, "interactive", str(TRACE)])]
        shell = f"cat {shlex.quote(str(home / 'go'))} >/dev/null; exec " + " ".join(map(shlex.quote, map(str, words)))
        os.mkfifo(home / "go")
        self.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", str(columns), "-y", str(lines), shell)
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.tmux("pipe-pane", f"cat >{shlex.quote(str(self.typescript))}")
        with open(home / "go", "w"):  # it starts when the typescript does
            pass
        (home / "go").unlink()

    def tmux(self, *args, text=None):
        env = {**os.environ, "LC_ALL": "C.UTF-8", "TMUX": ""}
        return subprocess.run(["tmux", "-L", self.name, *args], input=text, env=env, check=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True).stdout

    def close(self):
        try:
            self.tmux("kill-server")
        except subprocess.CalledProcessError:
            pass

    def type(self, text, *keys):
        if text:
            self.tmux("send-keys", "-l", re.sub(";$", r"\;", text))  # a last semicolon would end tmux's command
        if keys:
            self.tmux("send-keys", *keys)

    def paste(self, text):
        """With the brackets that tell it from typing, as tmux does where the program asks for them."""
        self.tmux("load-buffer", "-", text=text)
        self.tmux("paste-buffer", "-p")

    def shown(self):
        return self.tmux("capture-pane", "-p").rstrip("\n")

    def until(self, pattern, timeout=float(os.environ.get("TMUX_WAIT", "60"))):
        """Waits until the screen shows it; the screen."""
        end = time.monotonic() + timeout
        while not re.search(pattern, screen := self.shown(), re.M):
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} on the screen:\n{screen}\ntypescript:\n{self.typescript.read_text(errors='replace')[-3000:]!r}")
            time.sleep(0.03)
        return screen

    def until_it_ends(self, timeout=60):
        """Asks tmux, whose own line about it comes late or not at all on a busy machine."""
        end = time.monotonic() + timeout
        while self.tmux("display-message", "-p", "#{pane_dead}").strip() != "1":
            if time.monotonic() > end:
                raise AssertionError(f"it still runs:\n{self.shown()}")
            time.sleep(0.03)

    def clear(self):
        self.type("", "C-l")
        self.until(r"\A> *\Z")


class Tmux(harness.Case):
    def start(self, columns=100, **more):
        s = Screen(self.dir, columns, **more)
        self.addCleanup(s.close)
        s.until(r"^> *\Z")
        return s

    def test_paste_and_history(self):
        self.assertGreaterEqual(PASTED.count("\n"), 20)
        s = self.start()
        s.paste(PASTED)
        screen = s.until(r"Query executed in [\d.]+ ms, 1 row\n\n>")
        self.assertRegex(screen, r"(?m)^pasted +some +threads +mark *$")
        self.assertRegex(screen, r"(?m)^total +1 +1 +a;b *$")
        self.assertNotRegex(screen, "error|did you mean")
        s.clear()
        s.type("select 'another one' as x;", "Enter")
        s.until(r"1 row\n\n>")
        s.clear()
        s.type("", "Up", "Up")  # the whole statement is one entry, and runs again as it is
        s.until(r"limit 3;")
        s.type("", "Enter")
        s.until(r"^total +1 +1 +a;b *$")
        s.clear()
        s.type(".quit", "Enter")
        s.until_it_ends()
        saved = next(self.dir.rglob("tp_shell_history")).read_text()
        entries = [line for line in saved.splitlines() if "who\\040ran\\040longest" in line]
        self.assertEqual((len(entries), len(set(entries))), (2, 1), saved)  # whole, as it was pasted and as it was run again
        self.assertIn("limit\\0403;", entries[0])
        s.close()
        s = self.start()
        s.type("", "C-r")  # another day
        s.type("another")
        s.until("select 'another one' as x;")

    def test_completion_of_each_kind(self):
        (self.dir / "question.sql").write_text("select 'read' || ' it' as x;")
        s = self.start()
        for typed, keys, shown in (("select count(*) from thread_sta", ["Tab"], "from thread_state"),
                                   ("select end_st from sched", ["C-b"] * 11 + ["Tab"], "select end_state +from sched"),
                                   ("select * from sched where prio", ["Tab"], "where priority"),
                                   ("INCLUDE PERFETTO MODULE sched.runn", ["Tab"], r"MODULE sched\.runnable"),
                                   ("select extract_a", ["Tab"], r"extract_arg\("),
                                   ("select * from counter_leading_int", ["Tab"], r"counter_leading_intervals!\("),
                                   ("select sub", ["Tab", "Tab"], r"substr\("),
                                   (".mode mark", ["Tab"], r"\.mode markdown"), (".docs thread_sta", ["Tab"], r"\.docs thread_state"),
                                   (".sch", ["Tab"], r"\.schema"), (f".read {self.dir}/quest", ["Tab"], r"question\.sql")):
            with self.subTest(typed):
                s.type(typed, *keys)
                s.until(shown)
                s.type("", "C-e", "C-u")
                s.clear()

    def test_ctrl_c_in_each_long_command(self):
        """None of them ends by itself; each says after a second that it runs, and leaves the prompt as it was."""
        forever = "with recursive n(v) as (select 1 union all select v + 1 from n)"
        (self.dir / "forever.sql").write_text(f"{forever} select count(*) from n;")
        s = self.start()
        s.type(f"create view forever as {forever} select extract_arg(v, 'x') as x from n;", "Enter")
        s.until("Query executed")
        s.clear()
        dump, answers = self.dir / "half.db", self.dir / "answers"
        for command, says in ((f"{forever} select count(*) from n;", "Running"), ("select count(*) from forever;", "Running"),
                              (f".read {self.dir}/forever.sql", "Running"), (f".plot hist {forever} select v % 7 from n where v < 0;", "Running"),
                              (".tables", "Counting rows"), (f".dump {dump}", "Exporting")):
            with self.subTest(command):
                s.type(command, "Enter")
                s.until(rf"{says}: [1-9]\d* s[^\n]*\(Ctrl-C ends it\)")
                s.type("", "C-c")
                self.assertNotIn("Ctrl-C ends it", s.until(r"^> *\Z"))
                s.clear()
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name.startswith("half.db")], [])
        s.type(f".once {answers}", "Enter")
        s.type(f"{forever} select v from n;", "Enter")
        s.until(r"Running: [1-9]")
        s.type("", "C-c")
        s.until("Interrupted")
        self.assertTrue(answers.exists())
        s.clear()
        s.type("select 'still' || ' here' as x;", "Enter")
        s.until("still here")

    def test_widths_and_wide_characters(self):
        """Tables fit the terminal; what is cut shows it; characters of two cells keep the columns straight."""
        sql = "select 7 as id, hex(zeroblob(40)) as long_text, '日本語のテキスト' as wide, 'é' || char(0x301) as narrow, 'last' as s;"
        for columns in (60, 100, 200):
            with self.subTest(columns):
                s = self.start(columns)
                s.type(".mode box", "Enter")
                s.type(sql, "Enter")
                screen = s.until(r"1 row\n\n>")
                box = [line for line in screen.splitlines() if line[:1] in ("┌", "│", "├", "└")]
                self.assertEqual(len(box), 5, screen)
                self.assertEqual({cells(re.sub("\u0301", "", line)) for line in box}, {cells(box[0])}, screen)
                self.assertLessEqual(cells(box[0]), columns)
                self.assertEqual("…" in box[3], columns < 150, screen)
                self.assertRegex(box[3], "日本語.*last")
                self.assertIn(".mode box", screen)
                s.close()


if __name__ == "__main__":
    harness.main()
