"""A fleet of two shards, one of them with two replicas: a shard that does not answer, a replica that does not, one that lost its disk,
a disk that is full. Each is told, nothing is lost and nothing is there twice. Skipped (77) where there is no ClickHouse."""
import hashlib
import os
import re
import shutil
import subprocess
import time

import clickhouse
import harness
import test_fleet_killed

SIZE = 96 << 20  # of the disk that becomes full


class Broken(test_fleet_killed.Cluster):
    def add(self, *args, code=0):
        return self.fleet("add", "--wait", "1s", "--dev-flag", "fleet-batch=5", *args, code=code).stderr.decode()

    def traces(self, server):
        return int(server.ask("SELECT count() FROM fleet_local.loads"))

    @staticmethod
    def shard_of(path):
        """0 or 1: by the beginning of the trace's name, which is that of the SHA-256."""
        digits = list(hashlib.sha256(path.read_bytes()).hexdigest()[:32])
        digits[12] = "8"
        digits[16] = "89ab"[int(digits[16], 16) % 4]
        return int("".join(digits)[:16], 16) % 2

    def test_broken(self):
        first, replica, other = self.servers
        paths = sorted(p for p in harness.DATA.glob("*.pftrace") if p.stat().st_size < 300000)
        more = self.cut_recordings(12, self.dir / "more")
        self.init("fleet")
        self.a_shard_does_not_answer(paths, first, other)
        self.a_replica_does_not_answer(paths, more[:6], first, replica, other)
        self.a_replica_lost_its_disk(paths + more[:6], first, replica)
        self.a_commit_reached_one_replica(paths + more[:6], first, replica)
        self.a_disk_is_full(paths + more[:6], more[6:], first, other)

    def a_shard_does_not_answer(self, paths, first, other):
        other.kill()
        text = self.add(*paths, code=1)
        self.assertIn(f"not added: {other.url}", text)
        there = self.traces(first)
        self.assertTrue(0 < there < len(paths))
        self.assertIn(f"{there} added", text)
        self.assertIn(f"{len(paths) - there} not added: run it again", text)
        err = self.fleet("query", "select count() from fleet_traces", code=1)
        self.assertEqual(err.stdout, b"", "a part is no answer")
        status = self.fleet("status", code=1).stdout.decode()
        self.assertIn(f"shard 2 replica 1  {other.url}  does not answer", status)
        other.start()
        self.assertIn(f"{len(paths) - there} added", self.add(*paths))
        self.check(paths)

    def a_replica_does_not_answer(self, paths, more, first, replica, other):
        before = self.traces(first), self.traces(other)
        replica.kill()
        text = self.add(*more, code=1)
        self.assertIn(f"not added: {replica.url}", text)
        self.assertEqual(self.traces(first), before[0], "what only one replica has must not count")
        self.assertEqual(self.fleet("query", "--format", "csv", "select count() from fleet_traces").stdout.decode().split()[1],
                         str(before[0] + self.traces(other)))
        replica.start()
        self.add(*more)
        self.check(paths + more)

    def a_replica_lost_its_disk(self, paths, first, replica):
        replica.kill()
        shutil.rmtree(replica.dir / "data")
        (replica.dir / "data").mkdir()
        replica.start()
        self.init("fleet")
        p = self.fleet("query", "select 1")
        self.assertIn(f"warning: {replica.url} lacks {self.traces(first)} recordings", p.stderr.decode())
        self.assertIn("are missing: run tp_shell fleet repair", self.fleet("status", code=1).stdout.decode())
        text = self.fleet("repair").stderr.decode()
        self.assertIn(f"{self.traces(first)} traces copied", text)
        self.assertNotIn("warning", self.fleet("query", "select 1").stderr.decode())
        self.check(paths)
        self.assertIn("0 traces copied, 0 commits given", self.fleet("repair").stderr.decode())

    def a_commit_reached_one_replica(self, paths, first, replica):
        load = replica.ask("SELECT min(load) FROM fleet_local.commits").strip()
        replica.ask(f"ALTER TABLE fleet_local.commits DELETE WHERE load = {load}")
        while replica.ask("SELECT count() FROM system.mutations WHERE is_done = 0").strip() != "0":
            time.sleep(0.02)
        self.assertIn("lacks 1 recordings", self.fleet("query", "select 1").stderr.decode())
        self.add(paths[0])
        self.check(paths)

    def a_disk_is_full(self, paths, more, first, other):
        """The other shard's data goes to a small disk, and something else fills it."""
        other.kill()
        data, small = other.dir / "data", other.dir / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", small], stderr=subprocess.DEVNULL).returncode:
            print("a full disk: not tested, since no file system can be mounted here")
            other.start()
            return
        try:
            shutil.copytree(data, small / "data", symlinks=True)
            data.rename(other.dir / "before")
            data.symlink_to(small / "data")
            other.start()
            with open(small / "filler", "wb") as f:
                try:
                    while True:
                        f.write(bytes(1 << 16))
                        f.flush()
                except OSError:
                    pass
            before = self.traces(other)
            text = self.add(*more, code=1)
            self.assertIn(f"{len(more) - sum(self.shard_of(p) for p in more)} added", text, "the other shard goes on")
            self.assertRegex(text, r"not added: " + re.escape(other.url) + r".*([Nn]ot enough|No space|[Cc]annot reserve|errno: 28)")
            self.assertEqual(self.traces(other), before)
            self.assertEqual(sum(self.traces(s) for s in (first, other)),
                             int(self.fleet("query", "--format", "csv", "select count() from fleet_traces").stdout.split()[1]))
            os.unlink(small / "filler")
            self.add(*more)
            self.check(paths + more)
            other.kill()
        finally:
            other.kill()
            subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    clickhouse.need()
    harness.main()
