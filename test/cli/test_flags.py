"""Every flag of the tables is read by the program, explained by --help and the man page, and completed by shells."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

TRACEBOX = os.environ.get("TRACEBOX", "build/release/tracebox")
PAGES = pathlib.Path(os.environ.get("MERIDIAN_PAGES", "build/release/pages"))
PROGRAMS = {"tp_shell": harness.SHELL, "tracebox": TRACEBOX}
BOOL, TEXT, OPTIONAL, LIST, COUNT, NUMBER = range(6)  # enum flag_kind

Flag = collections.namedtuple("Flag", "program command name letter value kind when")


def flags():
    """{(program, command): [Flag]}; command "" is tp_shell's form without one."""
    out = {}
    for program in PROGRAMS:
        for line in (PAGES / f"{program}.flags").read_text().splitlines():
            f = Flag(*line.split("\t"))._replace(kind=int(line.split("\t")[5]))
            out.setdefault((program, f.command), []).append(f)
    return out


def run(*args):
    return subprocess.run(list(map(str, args)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60)


class Flags(unittest.TestCase):
    def help_of(self, program, command):
        args = [command, "--help"] if command else ["--help-classic"]
        p = run(PROGRAMS[program], *args)
        self.assertEqual(p.returncode, 0)
        return p.stdout.decode()

    def test_the_tables_have_all_commands(self):
        shell = {c for p, c in flags() if p == "tp_shell"}
        self.assertGreater(shell, {"query", "check", "server", "util", ""})
        self.assertGreaterEqual({c for p, c in flags() if p == "tracebox"},
                                {"heapprofd", "perfetto", "profile", "record", "relay-keys", "traced", "traced_perf", "traced_probes", "traced_relay"})
        self.assertGreater(sum(map(len, flags().values())), 300)

    def test_the_parser_knows_each(self):
        for (program, command), all_flags in flags().items():
            for spelt in ("long", "letter"):
                line = []
                for f in all_flags:
                    if f.name in ("help", "version", "help-classic"):
                        continue
                    if f.when == "later":
                        if spelt == "long":
                            p = run(PROGRAMS[program], command, f"--{f.name}", "1", "x") if command else None
                            self.assertNotIn(b"unknown", p.stdout if p else b"")
                        continue
                    if spelt == "letter" and f.letter == "-":
                        continue
                    value = "1" if f.kind in (COUNT, NUMBER) else "a=b"
                    if spelt == "long":
                        line += [f"--{f.name}"] if f.kind == BOOL else [f"--{f.name}=a"] if f.kind == OPTIONAL else [f"--{f.name}", value]
                    else:
                        line += [f"-{f.letter}"] if f.kind == BOOL else [f"-{f.letter}{value}"]
                last = "--help" if command else "--help-classic"
                p = run(PROGRAMS[program], *([command] if command else []), *line, last)
                self.assertEqual(p.stdout.decode(), self.help_of(program, command), line)

    def test_unknown_ones_are_refused(self):
        for (program, command), all_flags in flags().items():
            name = next(f.name for f in all_flags if len(f.name) > 5)
            for bad, says in (("--nonsense-flag", "unknown flag '--nonsense-flag'"), ("-Y", "unknown flag '-Y'"),
                              (f"--{name[1]}{name[0]}{name[2:]}", f"did you mean '--{name}'")):
                args = [command, bad] if command else [bad]
                p = run(PROGRAMS[program], *args, "x")
                if command != "metrics":  # not available, whatever the flags
                    self.assertIn(says, p.stdout.decode())
                self.assertEqual(p.returncode, 2 if command in ("diff", "gate") else 1)  # their 1 is a finding
        self.assertIn(b"no applet is called 'prefetto' (did you mean 'perfetto'?)", run(TRACEBOX, "prefetto").stdout)

    def test_applets_without_arguments_refuse_some(self):
        for applet in ("heapprofd", "traced", "traced_perf", "traced_probes", "traced_relay"):
            p = run(TRACEBOX, applet, "surplus")
            self.assertEqual((p.returncode, b"unexpected argument 'surplus'" in p.stdout), (1, True), p.stdout)
        for args, says in ((["perfetto", "--alert-id", "x"], b"--alert-id: 'x' is not a number"),
                           (["relay-keys", "--days", "0", "d"], b"--days: use a number from 1"),
                           (["relay-keys"], b"one directory"), (["record", "-t", "1s"], b"--out is needed"),
                           (["record", "-o", "x", "-m", "-oProxyCommand=x", "a/b"], b"is empty or begins with '-'"),
                           (["traced_probes", "--ring", "x"], b"--ring: use read or map"),
                           (["traced_probes", "--max-memory", "-1"], b"number of megabytes")):
            p = run(TRACEBOX, *args)
            self.assertEqual((p.returncode, says in p.stdout), (1, True), p.stdout)

    def test_help_tells_of_each(self):
        for (program, command), all_flags in flags().items():
            text = self.help_of(program, command)
            for f in all_flags:
                head = f"--{f.name}" + ("" if f.value == "-" else f" {f.value}")
                letter = "  " if f.letter == "-" else f"-{f.letter}"
                self.assertRegex(text, rf"(?m)^  {letter}[ ,] {re.escape(head)}(  | \S|\n)", (program, command))
            self.assertIn("Examples:\n  ", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 120, (program, command))
        for program in PROGRAMS:
            overview = run(PROGRAMS[program], "--help").stdout.decode()
            for p, command in flags():
                self.assertTrue(p != program or f"\n  {command}" in overview, command)

    # What a command line can begin with: each command, and the modes below it; `""`: the program alone.
    MODES = {"tp_shell": ["", "help", "util merge", "util text_to_binary", "util decompress_packets", "util symbolize", "util deobfuscate", "server http",
                          "server unix", "server stdio", "server kill", "convert json", "convert profile", "export sqlite"],
             "tracebox": [""]}

    def test_help_and_version_of_every_command_exit_with_0(self):
        """On standard output, with an example; also under the names that links give the programs."""
        commands = {program: modes + sorted(c for p, c in flags() if p == program and c) for program, modes in self.MODES.items()}
        self.assertGreater(sum(map(len, commands.values())), 25)
        lines = [(program, PROGRAMS[program], words.split()) for program, all_words in commands.items() for words in all_words]
        with tempfile.TemporaryDirectory() as links:
            for program, name in [("tp_shell", "traceconv")] + [("tracebox", c) for c in commands["tracebox"] if c]:
                os.symlink(os.path.abspath(PROGRAMS[program]), os.path.join(links, name))
                lines.append((name if program == "tp_shell" else program, os.path.join(links, name), []))
            for program, path, words in lines:
                for asked in (["--help", "-h"] if words != ["help"] else ["", "--help", "-h"]) + ["--version"]:
                    with self.subTest(program=program, words=words, asked=asked):
                        p = subprocess.run([path, *words, *filter(None, [asked])], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                           timeout=60)
                        self.assertEqual((p.returncode, p.stderr), (0, ""))
                        if asked == "--version":
                            self.assertRegex(p.stdout, r"^Meridian v\d+\.\d+")
                        else:
                            self.assertRegex(p.stdout, r"(?m)^  (PERFETTO_\w+=\S+ )?(tp_shell|tracebox|\\$)")

    def test_man_pages_tell_of_each(self):
        for program in PROGRAMS:
            page = (PAGES / f"{program}.1").read_text().replace("\\-", "-")
            sections = dict(re.findall(r'(?ms)^\.S[SH] "?(.*?)"?\n(.*?)(?=^\.S[SH]|\Z)', page))
            shared = sections.get("FLAGS OF EVERY COMMAND", "")
            for (p, command), all_flags in flags().items():
                if p != program:
                    continue
                head = f"{program} {command} [flags]" if command else f"{program} [flags]"
                (own,) = (text for name, text in sections.items() if name.startswith(head))
                self.assertIn("Examples:", own)
                for f in all_flags:
                    self.assertIn(f"\\fB--{f.name}\\fR", own + shared, (program, command))

    def test_man_pages_have_no_errors(self):
        tools = [(t, a) for t, a in (("mandoc", ["-Tlint", "-Wwarning"]), ("groff", ["-man", "-ww", "-z", "-K", "utf8"]))
                 if shutil.which(t)]
        if not tools:
            self.skipTest("neither mandoc nor groff is installed")
        for tool, args in tools:
            for program in PROGRAMS:
                p = run(tool, *args, PAGES / f"{program}.1")
                said = [x for x in p.stdout.decode().splitlines() if "missing date" not in x]  # builds are reproducible
                self.assertEqual(said, [], tool)


class Completions(unittest.TestCase):
    def bash(self, program, *words):
        """What bash offers for the last of `words`."""
        script = (f'source "{PAGES / program}.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{program}; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        p = subprocess.run(["bash", "--norc", "-c", script, "bash", program, *words], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(p.returncode, 0, p.stdout)
        return set(p.stdout.decode().split())

    def test_bash(self):
        if not shutil.which("bash"):
            self.skipTest("bash is not installed")
        for (program, command), all_flags in flags().items():
            offered = self.bash(program, *([command] if command else []), "--")
            self.assertEqual(offered, {f"--{f.name}" for f in all_flags}, (program, command))
        self.assertEqual(self.bash("tp_shell", "qu"), {"query"})
        self.assertEqual(self.bash("tracebox", "tr"), {"traced", "traced_perf", "traced_probes", "traced_relay"})
        self.assertEqual(self.bash("tp_shell", "query", "--clock-model", ""), {"auto", "compatible", "linear"})
        self.assertEqual(self.bash("tp_shell", "server", "u"), {"unix"})
        self.assertEqual(self.bash("tp_shell", "server", "--idle-timeout", ""), {"auto"})
        self.assertEqual(self.bash("tp_shell", "query", "-f", ""), set())  # files

    def test_zsh(self):
        for program in PROGRAMS:
            text = (PAGES / f"_{program}").read_text()
            for (p, command), all_flags in flags().items():
                if p != program:
                    continue
                (own,) = re.findall(rf"(?ms)^        {re.escape(command) or '[*]'}\)\n(.*?);;", text)
                for f in all_flags:
                    self.assertRegex(own, rf"--{f.name}(=|\[|\}})", (program, command))
            if shutil.which("zsh"):
                self.assertEqual(run("zsh", "-n", PAGES / f"_{program}").stdout, b"")

    def test_fish(self):
        for program in PROGRAMS:
            lines = (PAGES / f"{program}.fish").read_text().splitlines()
            for (p, command), all_flags in flags().items():
                seen = f"'__fish_seen_subcommand_from {command}'" if command else "'not __fish_seen"
                for f in all_flags if p == program else []:
                    letter = "" if f.letter == "-" else f" -s {f.letter}"
                    self.assertTrue(any(seen in x and f" -l {f.name}{letter} " in x for x in lines), (command, f.name))
            if shutil.which("fish"):
                self.assertEqual(run("fish", "--no-execute", PAGES / f"{program}.fish").stdout, b"")
        if shutil.which("fish"):
            for line, words in (("tp_shell qu", {"query"}), ("tp_shell query --clock-model ", {"auto", "compatible", "linear"}),
                                ("tp_shell query --full-s", {"--full-sort"}), ("tp_shell --full-s", {"--full-sort"}),
                                ("tp_shell server u", {"unix"}), ("tracebox traced_p", {"traced_perf", "traced_probes"}),
                                ("tracebox traced_probes --ring ", {"read", "map"})):
                p = run("fish", "--no-config", "-c", f"source {PAGES}/{line.split()[0]}.fish; complete -C '{line}'")
                self.assertEqual({x.split("\t")[0] for x in p.stdout.decode().splitlines()}, words, line)


if __name__ == "__main__":
    harness.main()
