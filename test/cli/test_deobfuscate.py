"""tp_shell util deobfuscate: the packets of ProGuard maps, what they do to a trace, every mistake."""
import csv
import io

import harness
from pb import field


MAP = """# compiler: R8
# {"id":"com.android.tools.r8.mapping","version":"2.2"}
com.example.Zoo -> b.b:
    int lions -> z
    com.example.Zoo next -> a
    int lions -> z
    4:4:void Other.inl(int):20 -> m
    4:4:void baz(java.lang.String,int[]):30:35 -> m
    # {"id":"com.android.tools.r8.synthesized"}
    9:void one() -> n
    void plain() -> o

First -> a:\r
    void <init>() -> <init>\r
"""


class Deobfuscate(harness.Case):
    def setUp(self):
        self.map = self.write("mapping.txt", MAP)
        self.out = self.dir / "names.pb"
        self.out.unlink(missing_ok=True)

    def write(self, name, content):
        path = self.dir / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run_map(self, *args, env=None):
        self.run_shell("util", "deobfuscate", *args, "-o", self.out, env=env)
        return self.out.read_bytes()

    def text(self):
        return self.run_shell("convert", "text", self.out).stdout.decode()

    def mistake(self, content, *texts):
        bad = self.write("bad.txt", content)
        self.out.write_bytes(b"what was there")
        err = self.fails("util", "deobfuscate", "--proguard-map", f"a={self.map}", "--proguard-map", f"p={bad}", "-o", self.out)
        for text in (f"failed to parse ProGuard map {bad}", *texts):
            self.assertIn(text, err, content)
        self.assertEqual(self.out.read_bytes(), b"what was there")

    def test_the_packet(self):
        """Classes and fields by short name, methods in the order of the map with complete names and their lines."""
        self.run_map("--proguard-map", f"com.example={self.map}")
        self.assertEqual("".join(self.text().split()), "".join("""
            packet { deobfuscation_mapping { package_name: "com.example"
              obfuscated_classes { obfuscated_name: "a" deobfuscated_name: "First"
                obfuscated_methods { obfuscated_name: "<init>" deobfuscated_name: "First.<init>" } }
              obfuscated_classes { obfuscated_name: "b.b" deobfuscated_name: "com.example.Zoo"
                obfuscated_members { obfuscated_name: "a" deobfuscated_name: "next" }
                obfuscated_members { obfuscated_name: "z" deobfuscated_name: "lions" }
                obfuscated_methods { obfuscated_name: "m" deobfuscated_name: "Other.inl" obfuscated_line_start: 4
                  obfuscated_line_end: 4 source_line_start: 20 source_line_end: 20 }
                obfuscated_methods { obfuscated_name: "m" deobfuscated_name: "com.example.Zoo.baz" obfuscated_line_start: 4
                  obfuscated_line_end: 4 source_line_start: 30 source_line_end: 35 }
                obfuscated_methods { obfuscated_name: "n" deobfuscated_name: "com.example.Zoo.one" obfuscated_line_start: 9
                  obfuscated_line_end: 9 }
                obfuscated_methods { obfuscated_name: "o" deobfuscated_name: "com.example.Zoo.plain" } } } }""".split()))

    def test_a_trace_gets_its_names(self):
        """Frames of a process that runs as the user of the package; the inlined chain of a line."""
        def sample(iid, name):
            return field(1, field(13, 1) + field(10, 1) + field(8, 1000 + iid) + field(12, field(5, field(1, iid) + field(2, name)) +
                   field(19, field(1, 1) + field(5, 1)) + field(6, field(1, iid) + field(2, iid) + field(3, 1) + field(4, 16 * iid)) +
                   field(7, field(1, iid) + field(2, iid))) +
                   field(66, field(1, 0) + field(2, 5) + field(3, 5) + field(4, iid)))
        tree = field(1, field(8, 1) + field(2, field(1, field(1, 5) + field(2, 1) + field(3, "zoo") + field(5, 10001))))
        tree += field(1, field(8, 1) + field(47, field(1, field(1, "com.example") + field(2, 10001))))
        trace = tree + sample(1, "b.b.o") + sample(2, "a.<init>") + sample(3, "c.c.c")
        names = self.run_map("--proguard-map", f"com.example={self.map}")
        both = self.write("both.pftrace", trace + names)
        rows = list(csv.reader(io.StringIO(self.query("select name, deobfuscated_name from stack_profile_frame order by name",
                                                      trace=both))))[1:]
        self.assertEqual([tuple(r) for r in rows],
                         [("a.<init>", "First.<init>"), ("b.b.o", "com.example.Zoo.plain"), ("c.c.c", "[NULL]")])

    def test_maps_by_flag_and_by_environment(self):
        one = self.run_map("--proguard-map", f"p={self.map}")
        two = self.run_map("--proguard-map", self.map)
        self.assertNotEqual(one, two)
        env = {"PERFETTO_PROGUARD_MAP": f"p={self.map}:p={self.map}"}
        self.assertEqual(self.run_map(env=env), one + one)
        self.assertEqual(self.run_map("--proguard-map", self.map, env=env), two + one + one)
        # The input is not read; the output may be the second name or standard output.
        p = self.run_shell("util", "deobfuscate", self.empty, "--proguard-map", f"p={self.map}")
        self.assertEqual(p.stdout, one)
        self.run_shell("util", "deobfuscate", self.empty, self.dir / "second.pb", env={"PERFETTO_PROGUARD_MAP": f"p={self.map}"})
        self.assertEqual((self.dir / "second.pb").read_bytes(), one)

    def test_an_empty_map_is_one(self):
        self.write("none.txt", "# nothing\n\n")
        self.run_map("--proguard-map", f"p={self.dir / 'none.txt'}")
        self.assertEqual("".join(self.text().split()), 'packet{deobfuscation_mapping{package_name:"p"}}')

    def test_bad_maps(self):
        for content, *texts in (
                ("    int x -> a\n", "line 1: a member stands before the first class"),
                ("A -> a:\nB -> b:\nC -> a:\n", "line 3: the class 'a' is there in line 1 already"),
                ("A -> a:\n int x -> b\n int y -> b\n", "line 3: the field 'b' has another name in line 2"),
                ("A -> a\n", "line 1: a class is not NAME -> SHORT:"),
                ("A b -> a:\n", "line 1: a class is not"),
                ("A -> :\n", "line 1: a class is not"),
                ("A -> a:\n\tint x -> b\n", "line 2: a class is not"),
                ("A -> a:\n int x b\n", "line 2: a member is not TYPE NAME -> SHORT"),
                ("A -> a:\n int x -> b c\n", "line 2: a member is not"),
                ("A -> a:\n 1:2 x() -> b\n", "line 2: the lines in front of the type are not A:B:"),
                ("A -> a:\n 4294967296:1:void x() -> b\n", "line 2: the lines in front"),
                ("A -> a:\n void x( -> b\n", "line 2: the parameters have no ')'"),
                ("A -> a:\n void () -> b\n", "line 2: a method has no name"),
                ("A -> a:\n void x():1:2:3 -> b\n", "line 2: the lines behind the parameters are not :C:D"),
                ("A -> a:\n void x():1: -> b\n", "line 2: the lines behind"),
                ("A" * 4097 + " -> a:\n", "line 1: a name is longer than 4096 bytes"),
                (b"\x7fELF" + bytes(range(256)), "line 1"),
        ):
            self.mistake(content, *texts)

    def test_mistakes_of_the_command_line(self):
        self.fails("util", "deobfuscate", self.empty, text="no ProGuard map is given")
        self.fails("util", "deobfuscate", self.empty, env={"PERFETTO_PROGUARD_MAP": "mapping.txt"}, text="'mapping.txt' is not PACKAGE=FILE")
        self.fails("util", "deobfuscate", "--proguard-map", "p=", text="'p=' is not [PACKAGE=]FILE")
        self.fails("util", "deobfuscate", "--proguard-map", "p=/nonexistent/map", text="/nonexistent/map")
        self.fails("util", "deobfuscate", "/nonexistent/trace", "--proguard-map", self.map, text="/nonexistent/trace")
        self.fails("util", "deobfuscate", self.empty, self.out, "-o", self.out, "--proguard-map", self.map, text="one file to write")
        trace = self.write("trace.pftrace", b"a trace")
        self.fails("util", "deobfuscate", trace, trace, "--proguard-map", self.map, text="would be lost")
        self.assertEqual(trace.read_bytes(), b"a trace")

    def test_names_do_not_grow_without_bound(self):
        """Methods have complete names: a class with a long name and many methods would make gigabytes of a small map."""
        self.mistake("A" * 4090 + " -> a:\n" + " V b() -> c\n" * 70000, "more than a packet holds")


if __name__ == "__main__":
    harness.main()
