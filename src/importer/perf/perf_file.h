/* What perf writes: perf.data as a file or a stream, of machines of both byte orders, compressed or not.
 *
 * perf_file_open() reads the head: the events that were recorded (attrs), what the features say of machine and files,
 * and where the records lie. perf_records_next() then yields the records, those out of compressed ones last. Nothing
 * of it is believed: records and sections that reach beyond the bytes are counted and end the reading. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_FILE_H
#define MERIDIAN_IMPORTER_PERF_PERF_FILE_H

#include "base/u64map.h"
#include "importer/trace_dat/dat_file.h"

/* Bits of perf_event_attr.sample_type. */
enum {
    PERF_IP = 0x1,
    PERF_TID = 0x2,
    PERF_TIME = 0x4,
    PERF_ADDR = 0x8,
    PERF_READ = 0x10,
    PERF_CALLCHAIN = 0x20,
    PERF_ID = 0x40,
    PERF_CPU = 0x80,
    PERF_PERIOD = 0x100,
    PERF_STREAM_ID = 0x200,
    PERF_RAW = 0x400,
    PERF_BRANCH_STACK = 0x800,
    PERF_REGS_USER = 0x1000,
    PERF_STACK_USER = 0x2000,
    PERF_WEIGHT = 0x4000,
    PERF_DATA_SRC = 0x8000,
    PERF_IDENTIFIER = 0x10000,
    PERF_TRANSACTION = 0x20000,
    PERF_REGS_INTR = 0x40000,
    PERF_PHYS_ADDR = 0x80000,
    PERF_AUX = 0x100000,
    PERF_CGROUP = 0x200000,
    PERF_WEIGHT_STRUCT = 0x1000000,
};
/* Bits of perf_event_attr.read_format. */
enum { PERF_READ_ENABLED = 1, PERF_READ_RUNNING = 2, PERF_READ_ID = 4, PERF_READ_GROUP = 8, PERF_READ_LOST = 16 };
/* Bits of the attr's flags. */
enum { PERF_FLAG_FREQ = 10, PERF_FLAG_SAMPLE_ID_ALL = 18, PERF_FLAG_USE_CLOCKID = 25 };
/* perf_event_attr.type. */
enum { PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT };

enum perf_record_type {
    PERF_RECORD_MMAP = 1,
    PERF_RECORD_LOST = 2,
    PERF_RECORD_COMM = 3,
    PERF_RECORD_EXIT = 4,
    PERF_RECORD_THROTTLE = 5,
    PERF_RECORD_UNTHROTTLE = 6,
    PERF_RECORD_FORK = 7,
    PERF_RECORD_SAMPLE = 9,
    PERF_RECORD_MMAP2 = 10,
    PERF_RECORD_ITRACE_START = 12,
    PERF_RECORD_LOST_SAMPLES = 13,
    PERF_RECORD_SWITCH = 14,
    PERF_RECORD_AUX = 11,
    PERF_RECORD_SWITCH_CPU_WIDE = 15,
    PERF_RECORD_NAMESPACES = 16,
    PERF_RECORD_KSYMBOL = 17,
    PERF_RECORD_BPF_EVENT = 18,
    PERF_RECORD_CGROUP = 19,
    PERF_RECORD_TEXT_POKE = 20,
    PERF_RECORD_AUX_OUTPUT_HW_ID = 21,
    PERF_RECORD_CALLCHAIN_DEFERRED = 22,
    PERF_RECORD_LAST_KERNEL = 63,
    PERF_RECORD_HEADER_ATTR = 64,
    PERF_RECORD_HEADER_EVENT_TYPE = 65,
    PERF_RECORD_HEADER_TRACING_DATA = 66,
    PERF_RECORD_HEADER_BUILD_ID = 67,
    PERF_RECORD_FINISHED_ROUND = 68,
    PERF_RECORD_ID_INDEX = 69,
    PERF_RECORD_AUXTRACE_INFO = 70,
    PERF_RECORD_AUXTRACE = 71,
    PERF_RECORD_AUXTRACE_ERROR = 72,
    PERF_RECORD_THREAD_MAP = 73,
    PERF_RECORD_CPU_MAP = 74,
    PERF_RECORD_EVENT_UPDATE = 78,
    PERF_RECORD_TIME_CONV = 79,
    PERF_RECORD_HEADER_FEATURE = 80,
    PERF_RECORD_COMPRESSED = 81,
    PERF_RECORD_FINISHED_INIT = 82,
    PERF_RECORD_COMPRESSED2 = 83,
    PERF_RECORD_BPF_METADATA = 84,
    PERF_RECORD_SCHEDSTAT_CPU = 85,
    PERF_RECORD_SCHEDSTAT_DOMAIN = 86,
};

/* Where the parts of a sample and of a trailer lie that take 8 bytes each: in bytes from the record's begin, in a
 * trailer from the record's end. 0: it is not there. */
struct perf_layout {
    struct {
        uint16_t id, ip, tid, time, cpu, period;
        uint16_t size;  /* where the parts of other lengths begin, header included */
        uint16_t fixed; /* what all samples hold at least, with the length of RAW; 0: parts of PERF_ANY_MORE follow */
    } sample;
    enum perf_more { PERF_NOTHING_MORE, PERF_RAW_MORE, PERF_ANY_MORE } more; /* what those are */
    struct {
        uint16_t id, tid, time, cpu;
        uint16_t size;
    } trailer; /* size 0: records have none */
};

/* What is to be done about a sample's kernel event when the file is walked; otherwise it waits for the sample's turn.
 */
enum perf_kernel_event { PERF_EVENT_WAITS, PERF_EVENT_IN_PACKETS, PERF_EVENT_SWITCH };

struct perf_attr {
    uint32_t type;
    uint64_t config, period, sample_type, read_format, flags;
    uint64_t branch_type, regs_user, regs_intr;
    int32_t clockid;
    struct slice name; /* empty: nothing says */
    bool has_ids;
    uint8_t kernel_event; /* enum perf_kernel_event */
    struct perf_layout layout;
};

/* What perf knew of the file at a path: feature BUILD_ID. */
struct perf_build_id {
    int32_t pid; /* -1: any */
    struct slice name, id;
};

enum { PERF_KNOWN_IDS = 256 };

struct perf_record {
    struct slice bytes; /* with the header */
    uint16_t misc;
    uint32_t type;
};

struct perf_file {
    struct slice bytes;
    bool big;
    bool stream; /* written to a pipe: attrs and features are records */
    struct slice data;
    bool truncated;

    VEC(struct perf_attr)
    attrs;
    struct u64map ids; /* event id -> attr */
    struct {
        uint64_t id;
        const struct perf_attr *attr; /* NULL: none yet */
    } known_ids[PERF_KNOWN_IDS];      /* those looked up lately, by their low bits */
    struct slice features[256];
    bool has_feature[256];
    struct slice tracing_data; /* formats of tracepoints; empty: none */
    VEC(struct perf_build_id)
    build_ids;
    struct u64map build_id_of; /* hash of pid and name -> the first of `build_ids` with them */

    /* Reading on. */
    struct dat_cursor at;
    struct slice rest;         /* what is still to come of the records, as they stand */
    struct inflater *inflater; /* of the compressed records, one stream for all */
    VEC(uint8_t)
    plain; /* what came out of them */
    bool in_plain;
    bool again;                /* perf_records_rewind() */
    uint64_t packed;           /* bytes that went in */
    const struct slice *parts; /* files of bare records beside this one; they stay, too */
    size_t n_parts, part;      /* the next to be read, or the next piece of `plain` */
    VEC(size_t)
    plain_ends; /* where what came out of each part ends */
};

enum perf_feature {
    PERF_FEATURE_TRACING_DATA = 1,
    PERF_FEATURE_BUILD_ID = 2,
    PERF_FEATURE_HOSTNAME = 3,
    PERF_FEATURE_OSRELEASE = 4,
    PERF_FEATURE_VERSION = 5,
    PERF_FEATURE_ARCH = 6,
    PERF_FEATURE_NRCPUS = 7,
    PERF_FEATURE_CPUDESC = 8,
    PERF_FEATURE_TOTAL_MEM = 10,
    PERF_FEATURE_CMDLINE = 11,
    PERF_FEATURE_EVENT_DESC = 12,
    PERF_FEATURE_CLOCK_DATA = 29,
    PERF_FEATURE_SIMPLEPERF_META = 129, /* of Android's recorder */
};

/* The bytes stay where they are. -MRD_EFORMAT when it is not a perf.data that can be read, -MRD_ENOMEM. To be closed in
 * any case. */
int perf_file_open(struct perf_file *f, struct slice bytes, struct error *err);
void perf_file_close(struct perf_file *f);

/* The next record. 0: none is left; 1: there is one; -MRD_ENOMEM. What describes the recording in a stream is taken in
 * on the way and not yielded. The bytes of records stay until perf_file_close(): those of compressed ones are yielded
 * when all of them have been plain before. */
static inline int perf_records_next(struct perf_file *f, struct perf_record *r);
/* Begins again with the first, once there are no more: what is taken in, and plain, is so already. */
void perf_records_rewind(struct perf_file *f);

/* Numbers in the byte order of the file; the caller knows that they are there. */
static inline uint16_t perf_quarter_word(const uint8_t *p, bool big)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return big ? __builtin_bswap16(v) : v;
}

static inline uint32_t perf_half_word(const uint8_t *p, bool big)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return big ? __builtin_bswap32(v) : v;
}

static inline uint64_t perf_word(const uint8_t *p, bool big)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return big ? __builtin_bswap64(v) : v;
}

static inline uint16_t perf_load16(const struct perf_file *f, const uint8_t *p)
{
    return perf_quarter_word(p, f->big);
}

static inline uint32_t perf_load32(const struct perf_file *f, const uint8_t *p)
{
    return perf_half_word(p, f->big);
}

static inline uint64_t perf_load64(const struct perf_file *f, const uint8_t *p)
{
    return perf_word(p, f->big);
}

int perf_records_other(struct perf_file *f, struct perf_record *r); /* also at the end of a part */

static inline int perf_records_next(struct perf_file *f, struct perf_record *r)
{
    enum { HEADER = 8 };
    const uint8_t *p = f->rest.p;
    if (f->rest.len < HEADER || perf_load32(f, p) != PERF_RECORD_SAMPLE)
        return perf_records_other(f, r);
    size_t size = perf_load16(f, p + 6);
    if (size < HEADER || size > f->rest.len)
        return perf_records_other(f, r);
    *r = (struct perf_record){slice_of(p, size), perf_load16(f, p + 4), PERF_RECORD_SAMPLE};
    f->rest = slice_of(p + size, f->rest.len - size);
    return 1;
}

static inline struct dat_cursor perf_cursor(const struct perf_file *f, struct slice bytes)
{
    static const uint8_t nothing[1];
    const uint8_t *p = bytes.p ? bytes.p : nothing;
    return (struct dat_cursor){p, p + bytes.len, f->big, false};
}
/* A cursor over the body of a record. */
struct dat_cursor perf_body(const struct perf_file *f, const struct perf_record *r);

static inline bool perf_flag(const struct perf_attr *a, unsigned bit)
{
    return a->flags >> bit & 1;
}

/* A text of a feature: HOSTNAME, OSRELEASE … Empty when it is not there. */
struct slice perf_feature_text(const struct perf_file *f, enum perf_feature feature);

/* The build id of a file that a process has mapped; empty when nothing says it. */
struct slice perf_find_build_id(const struct perf_file *f, uint32_t pid, struct slice name);

/* For perf_head.c and perf_features.c. */
int perf_add_attr(struct perf_file *f, struct slice attr, struct slice ids);
int perf_read_feature(struct perf_file *f, unsigned bit, struct slice bytes);
struct slice perf_text(struct dat_cursor *c);
void perf_layout_of(struct perf_attr *a); /* perf_decode.c */

#endif
