"""A fleet of two shards, one of them with two replicas, whose servers and whose `fleet add` are killed: nothing is lost, nothing
counts twice. Skipped (77) where there is no ClickHouse."""
import concurrent.futures
import gzip
import os
import random
import subprocess
import time

import clickhouse
import fleet_oracle
import harness

RECORDINGS = 200
VARIANTS = 4  # of each piece: the same events behind a padding of their own, so that the piece is cut and asked once for all
SOURCES = ["linux-sched.pftrace", "linux-mono.pftrace", "linux-deflate.pftrace", "linux-zstd.pftrace", "linux-discarded.pftrace",
           "apart-a.pftrace", "apart-b.pftrace", "mm-guest-only.pftrace", "linux-syscalls.pftrace.gz", "mm-two-machines.pftrace.gz"]


class Cluster(harness.Case):
    """Two shards; the first has two replicas."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shards = clickhouse.cluster(cls.dir, [2, 1])
        cls.servers = [s for shard in cls.shards for s in shard]
        cls.answers = {}  # of each trace asked alone
        cls.piece_of = {}  # of a variant: the recording that it is made of

    @classmethod
    def tearDownClass(cls):
        for s in cls.servers:
            s.stop()
        super().tearDownClass()

    def env(self):
        return {**os.environ, "MERIDIAN_FLEET": ",".join(s.url for s in self.servers), "HOME": str(self.dir)}

    def fleet(self, action, *args, code=0, database="fleet"):
        return self.run_shell("fleet", action, "--database", database, *args, code=code, env=self.env())

    def init(self, database):
        self.fleet("init", "--cluster", "fleet", *[s.url for s in self.servers], database=database)

    def cut_recordings(self, n, folder):
        """`n` pieces of the sources, of different times: no two have the same bytes."""
        folder.mkdir()
        sources = []
        for name in SOURCES:
            path = harness.DATA / name
            if path.suffix == ".gz":
                whole = self.dir / path.stem
                whole.write_bytes(gzip.decompress(path.read_bytes()))
                path = whole
            begin, end = map(int, self.query("select start_ts, end_ts from trace_bounds", trace=path).splitlines()[1].split(","))
            sources.append((path, begin, end))

        def cut(i):
            path, begin, end = sources[i % len(sources)]
            step = (end - begin) // (2 + n // len(sources))
            at = begin + step * (i // len(sources))
            self.run_shell("cut", "--from", at, "--to", at + 2 * step, "-o", folder / f"{i:04}.pftrace", path)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(cut, range(n)))
        self.assertEqual(len({p.read_bytes() for p in folder.iterdir()}), n)
        return sorted(folder.iterdir())

    def cut_variants(self, n, folder):
        """`n` recordings with bytes of their own, VARIANTS of each piece."""
        pieces = self.cut_recordings(-(-n // VARIANTS), folder)
        for piece in pieces:
            data = piece.read_bytes()
            for k in range(VARIANTS): # the piece, too: all are of one size
                padding = bytes([0x82, 0x7d, 8]) + f"{k:08}".encode()  # field 2000 of a packet is nobody's
                variant = piece.with_name(f"{piece.stem}-{k}.pftrace") if k else piece
                variant.write_bytes(data + bytes([0x0a, len(padding)]) + padding)
                self.piece_of[str(variant)] = piece
        paths = sorted(folder.iterdir())
        for path in paths[n:]:
            path.unlink()
        return paths[:n]

    def check(self, paths, database="fleet"):
        """Each trace, of each table, as the trace asked alone; on each replica the same."""
        oracle = fleet_oracle.Oracle(fleet_oracle.columns_of(self.servers[0], database + "_local"))
        pieces = {p: self.piece_of.get(str(p), p) for p in paths}
        new = [p for p in dict.fromkeys(pieces.values()) if str(p) not in self.answers]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            self.answers.update(zip(map(str, new), pool.map(oracle.of_trace, new)))
        wanted = {str(p): self.answers[str(pieces[p])] for p in paths}
        found = oracle.of_fleet(self.servers[-1], database)
        traces = dict(line for line in self.servers[0].rows(f"SELECT path, trace FROM {database}.fleet_traces"))
        self.assertEqual(set(traces), set(wanted))
        self.assertEqual(int(self.servers[0].ask(f"SELECT count() FROM {database}.fleet_traces")), len(paths))
        self.assertEqual(len(found), len(paths))
        for path, tables in wanted.items():
            self.assertEqual(fleet_oracle.differences(found[traces[path]], tables), [], path)
        for table in oracle.columns: # the replicas of the first shard
            sql = f"SELECT count(), sum(cityHash64(*)) FROM {database}_local.`{table}`"
            self.assertEqual(self.servers[0].ask(sql), self.servers[1].ask(sql), table)

    def rows_without_commit(self, database="fleet"):
        """How many rows there are that do not count, of all servers."""
        n = 0
        for s in self.servers:
            for (table,) in s.rows(f"SELECT name FROM system.tables WHERE database = '{database}_local' AND name LIKE '%_rows'"):
                n += int(s.ask(f"SELECT count() FROM {database}_local.`{table}` WHERE load NOT IN (SELECT load FROM {database}_local.loads)"))
        return n


class Killed(Cluster):
    def start_add(self, folder, *flags):
        return subprocess.Popen([harness.SHELL, "fleet", "add", folder, "--jobs", "2", "--wait", "100s", "--dev-flag", "fleet-batch=12", *flags],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env())

    def count(self):
        for s in self.servers:
            try:
                return int(s.ask("SELECT count() FROM fleet.fleet_traces"))
            except (OSError, RuntimeError):
                continue
        return 0

    def wait_for(self, n, process):
        """Until `n` traces count, or the process has ended."""
        end = time.monotonic() + 120
        while self.count() < n and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)

    def test_killed(self):
        random.seed(21)
        folder = self.dir / "recordings"
        paths = self.cut_variants(RECORDINGS, folder)
        self.init("fleet")
        killed = []
        for i in range(5): # fleet add, at any point of its work
            process = self.start_add(folder)
            self.wait_for(self.count() + 6, process)
            time.sleep(random.random())
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            process.kill()
            process.communicate()
            killed.append(self.count())
        self.assertLess(killed[-1], RECORDINGS, "it was killed before it had all")
        process = self.start_add(folder)
        victims = [self.servers[2], self.servers[1], self.servers[0]]
        for victim in victims: # the other shard, then each replica of the first
            self.wait_for(self.count() + 8, process)
            victim.kill()
            time.sleep(1 + random.random())
            victim.start()
        _, err = process.communicate(timeout=400)
        self.assertEqual(process.returncode, 0, err.decode())
        self.fleet("add", folder)
        self.check(paths)
        print("killed at", killed, "traces;", self.rows_without_commit(), "rows were left without a commit")
        self.fleet("repair", "--older-than", "0s")
        self.assertEqual(self.rows_without_commit(), 0)
        self.check(paths)
        for s in self.servers:
            self.assertEqual(s.ask("SELECT count() FROM fleet_local.begun WHERE load NOT IN (SELECT load FROM fleet_local.commits)").strip(), "0")


if __name__ == "__main__":
    clickhouse.need()
    harness.main()
