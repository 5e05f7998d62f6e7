"""A relay over vsock: where the kernel has the loopback transport; elsewhere it says why not."""
import os
import re
import signal
import socket
import subprocess
import sys
import time

from harness import PRODUCER, TRACEBOX, Case, main, wait_for

ANY, LOOPBACK, PORT = 0xffffffff, 1, 20001


def why_not():
    """None, or why vsock does not work here."""
    subprocess.run(["modprobe", "vsock_loopback"], stderr=subprocess.DEVNULL) if os.path.exists("/sbin/modprobe") else None
    try:
        with socket.socket(socket.AF_VSOCK) as listener, socket.socket(socket.AF_VSOCK) as s:
            listener.bind((ANY, PORT))
            listener.listen()
            s.settimeout(2)
            s.connect((LOOPBACK, PORT))
    except OSError as e:
        transports = [t for t in ("/dev/vsock", "/dev/vhost-vsock") if os.path.exists(t)]
        return f"no vsock loopback here: {e.strerror or e} (devices: {', '.join(transports) or 'none'})"
    return None


class Vsock(Case):
    def test_relay(self):
        self.start_traced("--enable-relay-endpoint", producers=f"{self.dir}/producer,vsock://{ANY}:{PORT}")
        env = {**self.env, "PERFETTO_PRODUCER_SOCK_NAME": str(self.dir / "relay"), "PERFETTO_MACHINE_NAME": "guest"}
        self.procs.append(subprocess.Popen([TRACEBOX, "traced_relay"], stderr=subprocess.DEVNULL,
                                           env={**env, "PERFETTO_RELAY_SOCK_NAME": f"vsock://{LOOPBACK}:{PORT}"}))
        wait_for(lambda: re.search('relay of machine .*"guest" connected: vsock', self.log()), what="the relay")
        self.procs.append(subprocess.Popen([PRODUCER, "--packets", "100000", "--pause-us", "500"], env=env,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        p = self.perfetto("--txt", "-c", self.config('buffers { size_kb: 4096 } trace_all_machines: true\n'
                                                     'data_sources { config { name: "e2e.source" } }'), "-o", self.dir / "trace")
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        self.finish(p)
        self.assertEqual(len(self.query(self.dir / "trace", "SELECT id FROM machine WHERE raw_id != 0")), 1)
        self.assertGreater((self.dir / "trace").stat().st_size, 10000)


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    main()
