"""Machines with kernels of their own: small guests under emulation that a test commands, pauses, cuts off and kills."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

from harness import wait_for

HERE = pathlib.Path(__file__).resolve().parent
GUEST_SH = HERE / "guest" / "guest.sh"
# A guest does what is written to its second serial port: the network may be cut.
AGENT = """stty -F /dev/ttyS1 raw -echo
while read -r line; do eval "$line" </dev/null; echo "@@done $?"; done </dev/ttyS1 >/dev/ttyS1 2>&1
"""


def shell(script, *args, **kw):
    return subprocess.run(["bash", "-c", f'. "{GUEST_SH}"; {script}', "guest.sh", *map(str, args)], **kw)


def need(cache):
    """Ends the program as skipped where no guests can be booted."""
    if os.geteuid() != 0:
        print("skipped: needs root (ftrace, namespaces)")
        sys.exit(77)
    if shell("guest_need").returncode:
        sys.exit(77)
    if shell('guest_image "$1"', cache).returncode:
        print("skipped: the guest's kernel package could not be fetched")
        sys.exit(77)


class Channel:
    """A socket of QEMU's: lines in, text out."""

    def __init__(self, path):
        def connect():
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(path))
                return s
            except OSError:
                s.close()
        self.sock = wait_for(connect, what=f"the socket {path}")
        self.text = b""

    def send(self, line):
        self.sock.sendall(line.encode() + b"\n")

    def until(self, pattern, seconds):
        """The match of `pattern`; what comes before it is dropped."""
        end = time.monotonic() + seconds
        while not (m := re.search(pattern, self.text, re.S)):
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("the guest has gone")
            self.text += data
        self.text = self.text[m.end():]
        return m

    def close(self):
        self.sock.close()


class Guest:
    """`dir`: where kernel and initrd are; `page`: what the guest shares with the host."""

    def __init__(self, dir, name, initrd, page, page_bytes):
        self.dir, self.name = pathlib.Path(dir), name
        monitor, control = (self.dir / f"{name}.{s}" for s in ("monitor", "control"))
        for path in (monitor, control):
            path.unlink(missing_ok=True)
        self.proc = subprocess.Popen(
            ["bash", "-c", f'. "{GUEST_SH}"; guest_run "$@"', "guest.sh", str(dir), name], stdin=subprocess.DEVNULL, env={
                **os.environ, "GUEST_CPUS": "1", "GUEST_INITRD": str(initrd), "GUEST_NET": "-netdev user,id=net -device virtio-net-pci,netdev=net,id=nic",
                "GUEST_MONITOR": f"unix:{monitor},server=on,wait=off",
                "GUEST_QEMU": f"-serial unix:{control},server=on,wait=off -object memory-backend-file,id=page,share=on,"
                              f"mem-path={page},size={page_bytes} -device ivshmem-plain,memdev=page"})
        self.monitor, self.control = Channel(monitor), Channel(control)
        self.monitor.until(rb"\(qemu\) ", 20)

    def wait_up(self, seconds=120):
        def answers():
            self.control.send("true")
            try:
                return self.control.until(rb"@@done 0", 1)
            except TimeoutError:
                return None
        wait_for(answers, seconds, f"the boot of {self.name}")
        time.sleep(0.2)
        self.control.text = b""  # answers to the questions of an impatient host
        self.run("echo fresh")

    def run(self, command, seconds=30):
        """What a command in the guest prints; raises when it fails."""
        self.control.send(f"echo '@@begin'; {command}")
        m = self.control.until(rb"@@begin\r?\n(.*?)@@done (\d+)", seconds)
        text = m[1].decode(errors="replace").replace("\r", "")
        if m[2] != b"0":
            raise RuntimeError(f"{self.name}: {command}: {text}")
        return text

    def start(self, name, command):
        """A daemon in the guest; its log is /tmp/NAME.log."""
        self.run(f"{command} >/tmp/{name}.log 2>&1 & echo $! >/tmp/{name}.pid")

    def log(self, name):
        try:
            return self.run(f"cat /tmp/{name}.log; true")
        except (OSError, RuntimeError) as e:
            return f"(no log of {name}: {e})"

    def console(self):
        return (self.dir / f"{self.name}.log").read_text(errors="replace")[-2000:]

    def tell(self, command):
        self.monitor.send(command)
        self.monitor.until(rb"\(qemu\) ", 20)

    def pause(self, seconds):
        """The guest stands still, as in a suspended virtual machine or a live migration: its clocks do not see it. Returns how
        long it stood at least and at most: a busy host is late."""
        asked = time.monotonic()
        self.tell("stop")
        stopped = time.monotonic()
        time.sleep(seconds)
        again = time.monotonic()
        self.tell("cont")
        return again - stopped, time.monotonic() - asked

    def link(self, up):
        self.tell(f"set_link net {'on' if up else 'off'}")

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def close(self):
        if self.proc.poll() is None:
            self.kill()
        self.monitor.close()
        self.control.close()
