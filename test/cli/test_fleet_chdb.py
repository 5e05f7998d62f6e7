"""A fleet on a current ClickHouse: chDB, which is one as a library, behind a server of its own. What init makes, what add sends, the
queries of docs/fleet.md and of the bench, drop: all answer as on the old server of Debian 12.

chDB is large and comes from npm: without MERIDIAN_LONG it must lie in the folder that MERIDIAN_NPM names. Skipped (77) else, and where
npm cannot be reached."""
import os
import pathlib
import subprocess
import sys

import clickhouse
import harness
import npm
import test_fleet_views

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))
import bench_fleet  # noqa: E402


class Server(clickhouse.Server):
    def __init__(self, folder):
        super().__init__(folder)
        self.dir.mkdir()
        with open(self.dir / "err", "wb") as err:
            self.process = subprocess.Popen(["node", HERE / "chdb_server.mjs", FOLDER, self.dir / "data"], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=err)
        port = self.process.stdout.readline().decode().strip()
        if not port:
            raise RuntimeError((self.dir / "err").read_text(errors="replace")[-2000:])
        self.url = f"http://127.0.0.1:{port}"

    def stop(self):
        self.process.stdout.close()
        super().stop()


class Current(test_fleet_views.Views):
    @classmethod
    def start_server(cls):
        return Server(cls.dir / "server")

    def test_it_is_current(self):
        self.assertGreater(int(self.server.ask("SELECT version()").split(".")[0]), 25)

    def test_bench(self):
        for what, sql in bench_fleet.QUERIES:
            with self.subTest(what=what):
                self.assertGreater(len(self.dicts(sql)), 0)


if __name__ == "__main__":
    if not os.environ.get("MERIDIAN_LONG") and not os.environ.get("MERIDIAN_NPM"):
        npm.skip("chDB has 500 MB: set MERIDIAN_LONG, or MERIDIAN_NPM to a folder that has it")
    FOLDER = npm.install([npm.CHDB])
    if not (pathlib.Path(FOLDER) / "node_modules" / "chdb").is_dir():
        npm.skip(f"{FOLDER} has no chdb")
    harness.main()
