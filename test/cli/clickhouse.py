"""ClickHouse servers on loopback for tests: their configuration, their lives and deaths, questions by HTTP."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

BINARY = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")


def need():
    """Ends the test as skipped where there is no server to be had."""
    if not BINARY:
        print("skipped: clickhouse-server is not installed (Debian 12 has it; Ubuntu does not)")
        sys.exit(77)
    # Each insert makes dozens of small files: on a busy disk that is most of a test's time.
    memory = pathlib.Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30:
        tempfile.tempdir = str(memory)


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{dir}/log</log><errorlog>{dir}/err</errorlog><size>10M</size><count>2</count></logger>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
  <listen_host>127.0.0.1</listen_host>
  <max_connections>256</max_connections><max_concurrent_queries>100</max_concurrent_queries>
  <uncompressed_cache_size>0</uncompressed_cache_size><mark_cache_size>67108864</mark_cache_size>
  <path>{dir}/data/</path><tmp_path>{dir}/data/tmp/</tmp_path><user_files_path>{dir}/data/user_files/</user_files_path>
  <users_config>{dir}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database><timezone>UTC</timezone>
  <mlock_executable>false</mlock_executable>
  <remote_servers>{clusters}</remote_servers>
  <max_table_size_to_drop>0</max_table_size_to_drop>
</yandex>
"""

USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default><max_memory_usage>4000000000</max_memory_usage><max_threads>2</max_threads><fsync_metadata>0</fsync_metadata></default></profiles>
  <users><default><password>{password}</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users>
  <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
    <read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""


class Server:
    """One server; `http` and `tcp` are its ports."""

    def __init__(self, folder, password=""):
        self.dir = pathlib.Path(folder)
        self.http, self.tcp, self.inter = free_ports(3)
        self.password = password
        self.process = None
        self.inside = []  # a command that runs it
        self.url = f"http://127.0.0.1:{self.http}"

    def configure(self, clusters):
        """`clusters`: {name: [[server, …] a shard]}."""
        text = ""
        for name, shards in clusters.items():
            rows = "".join("<shard><internal_replication>false</internal_replication>" + "".join(
                f"<replica><host>127.0.0.1</host><port>{s.tcp}</port></replica>" for s in shard) + "</shard>" for shard in shards)
            text += f"<{name}>{rows}</{name}>"
        (self.dir / "data").mkdir(parents=True, exist_ok=True)
        (self.dir / "config.xml").write_text(CONFIG.format(dir=self.dir, http=self.http, tcp=self.tcp, inter=self.inter, clusters=text))
        (self.dir / "users.xml").write_text(USERS.format(password=self.password))

    def start(self, seconds=60):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ASAN", "LSAN", "UBSAN", "TSAN"))}
        with open(self.dir / "out", "ab") as out:
            self.process = subprocess.Popen([*self.inside, BINARY, f"--config-file={self.dir}/config.xml"], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, cwd=self.dir, env=env)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.ask("SELECT 1")
                return self
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise RuntimeError(f"clickhouse-server does not start: {(self.dir / 'out').read_text(errors='replace')[-2000:]}")

    def kill(self):
        """As kill -9."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    stop = kill

    def ask(self, sql, body=None, **settings):
        """The answer's text; urllib.error.HTTPError with the server's text when it fails."""
        if self.password:
            settings["password"] = self.password
        url = self.url + "/?" + urllib.parse.urlencode({"query": sql, **settings} if body is not None else settings)
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=sql.encode() if body is None else body), timeout=120) as r:
                return r.read().decode(errors="replace")
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{sql[:200]}: {e.read().decode(errors='replace')}") from None

    def rows(self, sql, **settings):
        return [line.split("\t") for line in self.ask(sql, **settings).splitlines()]


def cluster(folder, shards, name="fleet", password=""):
    """[[Server, …] a shard], started; `shards` has the number of replicas of each."""
    made = [[Server(pathlib.Path(folder) / f"s{i}r{k}", password) for k in range(n)] for i, n in enumerate(shards)]
    for shard in made:
        for server in shard:
            server.configure({name: made})
            server.start()
    return made
