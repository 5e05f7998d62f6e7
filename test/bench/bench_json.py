"""What reading JSON traces costs: bench_json.py BUILD [MEGABYTES]. Writes a trace as Chrome and one as PyTorch writes them
(json_trace), loads each three times, and says the best: text a second of processor time, events a second, peak memory beside
the size of the file. Python's json module parses a piece of the same text for comparison."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

BAR_MB_S, BAR_MEMORY = 400, 0.5


def load(shell, path):
    """(CPU seconds, peak bytes, rows of slice)"""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execv(shell, [shell, "query", path, "select count(*) from slice"])
    os.close(write)
    with os.fdopen(read) as f:
        rows = int(f.read().split()[1])
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{path}: the load failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, rows


def python_mb_s(path):
    """Parses some whole lines of the file's events."""
    with open(path) as f:
        text = f.read(32 << 20)
    first = text.index("[", text.index("traceEvents"))
    text = text[first:text.rindex("},\n") + 1] + "]"
    start = time.process_time()
    json.loads(text)
    return len(text) / 1e6 / (time.process_time() - start)


def main():
    build, megabytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    missed = []
    with tempfile.TemporaryDirectory() as there:
        for kind in "chrome", "pytorch":
            path = os.path.join(there, kind + ".json")
            subprocess.run([os.path.join(build, "json_trace"), kind, str(megabytes), path], check=True)
            size = os.path.getsize(path)
            cpu, peak, rows = min(load(os.path.join(build, "tp_shell"), path) for _ in range(3))
            rate = size / 1e6 / cpu
            print(f"{kind:8} {size / 1e6:.0f} MB, {rows / 1e6:.2f} M events: {cpu:.2f} s of CPU, {rate:.0f} MB/s, "
                  f"{rows / 1e6 / cpu:.2f} M events/s, peak {peak / 1e6:.0f} MB = {peak / size:.2f} of the file; "
                  f"Python's json {python_mb_s(path):.0f} MB/s")
            if rate < BAR_MB_S:
                missed.append(f"{kind}: {rate:.0f} MB/s of CPU, {BAR_MB_S} are wanted")
            if peak > BAR_MEMORY * size:
                missed.append(f"{kind}: peak memory {peak / size:.2f} of the file, {BAR_MEMORY} is the most")
            os.unlink(path)
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
