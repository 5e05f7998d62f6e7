"""Makes perf.data: files of one event or several, whose records and features the caller writes."""
import struct

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK, REGS_USER, STACK_USER = (1 << b for b in range(14))
DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR, AUX, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT = (1 << b for b in range(15, 25))
KERNEL, USER = 1, 2  # misc: the mode
KERNEL_MARK, USER_MARK, DEFERRED_MARK = 2**64 - 128, 2**64 - 512, 2**64 - 640
FREQ, SAMPLE_ID_ALL, USE_CLOCKID = 1 << 10, 1 << 18, 1 << 25


order = "<"  # of what is written; ">": the other one


def pack(fmt, *values):
    return struct.pack(order + fmt.lstrip("<"), *values)


def magic():
    return b"PERFILE2" if order == "<" else b"2ELIFREP"


def flag_bits(flags):
    """Bit fields begin at the other end of a big-endian word."""
    return flags if order == "<" else int(f"{flags:064b}"[::-1], 2)


def u64(*values):
    return pack(f"<{len(values)}Q", *values)


def padded(text):
    return text + bytes(8 - len(text) % 8)


def text_feature(text):
    return pack("<I", 64) + text.encode().ljust(64, b"\0")


def record(kind, misc, body):
    return pack("<IHH", kind, misc, len(body) + 8) + body


def trailer(time, pid=7, tid=8, cpu=1):
    """Of an event with TID, TIME and CPU."""
    return pack("<IIQII", pid, tid, time, cpu, 0)


def sample(time, ip, chain, rest=b"", misc=USER, tid=8):
    """Of an event with IP, TID, TIME, CPU, PERIOD and CALLCHAIN."""
    return record(9, misc, u64(ip) + pack("<IIQIIQQ", 7, tid, time, 1, 0, 500, len(chain)) + u64(*chain) + rest)


def attr(sample_type, kind=1, config=0, period=1000, read_format=0, flags=SAMPLE_ID_ALL, branch_type=0, regs=0, regs_intr=0, size=112):
    """kind, config: cpu-clock."""
    whole = pack("<IIQQQQQIIQQQQIiQ", kind, size, config, period, sample_type, read_format, flag_bits(flags), 0, 0, 0, 0, branch_type, regs, 0, 0, regs_intr)
    return whole.ljust(size, b"\0")[:size]


def write_events(path, attrs, records, features={}, died=False):
    """attrs: [(attr, ids)], all of one size; features: {bit: bytes}; died: the recorder did, before it wrote how much there is."""
    size = len(attrs[0][0]) + 16
    ids_at, table, ids = 104 + size * len(attrs), b"", b""
    for a, own in attrs:
        table += a + u64(ids_at + len(ids), 8 * len(own))
        ids += u64(*own)
    data_at, records = ids_at + len(ids), b"".join(records)
    bits, sections, behind = u64(*(sum(1 << b % 64 for b in features if b // 64 == i) for i in range(4))), b"", b""
    for _, part in sorted(features.items()):
        sections += u64(data_at + len(records) + 16 * len(features) + len(behind), len(part))
        behind += part
    with open(path, "wb") as f:
        f.write(magic() + u64(104, size, 104, size * len(attrs), data_at, 0 if died else len(records), 0, 0) + bits + table + ids + records)
        f.write(b"" if died else sections + behind)


def write_perf(path, sample_type, records, regs=0, features={}):
    """One event (cpu-clock), whose records have the trailer TID, TIME, CPU."""
    write_events(path, [(attr(sample_type, regs=regs), [])], records, features)
