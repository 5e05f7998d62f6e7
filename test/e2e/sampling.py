"""Whether this machine lets a test sample."""
import ctypes
import os
import platform
import struct


def can_sample():
    """Opens cpu-clock for all tasks of cpu 0, as traced_perf does."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
    attr = bytearray(112)
    struct.pack_into("<IIQQ", attr, 0, 1, len(attr), 0, 10000000)  # software, cpu-clock
    fd = libc.syscall(number, (ctypes.c_char * len(attr)).from_buffer(attr), -1, 0, -1, 0) if number else -1
    if fd >= 0:
        os.close(fd)
    return fd >= 0
