/* The container that trace-cmd writes: trace.dat, versions 6 and 7, in either byte order, compressed or not.
 *
 * dat_file_open() finds everything that a reader needs: the texts that describe events, the options, and where the
 * sub-buffers of each CPU lie. Nothing of it is believed: sizes are checked against the bytes that are there, a table
 * that points elsewhere makes the file `truncated`, and what came before it stays usable.
 *
 * Version 6 is one sequence of parts; version 7 has sections that options point to. All numbers are in the byte order
 * that the file names. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_FILE_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_FILE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

#include <string.h>

enum {
    DAT_MAX_CPUS = 1024, /* as many as bundles of kernel events can be of */
    DAT_MAX_BUFFERS = 1024,
    DAT_MAX_PAGE = 1 << 20, /* the kernel counts the bytes of a sub-buffer in 20 bits */
};

/* Reads numbers in the order of bytes of a file. Beyond the end everything is 0, and `bad` is set. */
struct dat_cursor {
    const uint8_t *p, *end;
    bool big;
    bool bad;
};

static inline bool dat_take(struct dat_cursor *c, void *to, unsigned size)
{
    if ((size_t)(c->end - c->p) < size) {
        c->bad = true;
        c->p = c->end;
        return false;
    }
    memcpy(to, c->p, size);
    c->p += size;
    return true;
}

static inline uint16_t dat_u16(struct dat_cursor *c)
{
    uint16_t v;
    return !dat_take(c, &v, sizeof v) ? 0 : c->big ? __builtin_bswap16(v) : v;
}

static inline uint32_t dat_u32(struct dat_cursor *c)
{
    uint32_t v;
    return !dat_take(c, &v, sizeof v) ? 0 : c->big ? __builtin_bswap32(v) : v;
}

static inline uint64_t dat_u64(struct dat_cursor *c)
{
    uint64_t v;
    return !dat_take(c, &v, sizeof v) ? 0 : c->big ? __builtin_bswap64(v) : v;
}

struct slice dat_bytes(struct dat_cursor *c, uint64_t n);
/* A text with a NUL behind it, without the NUL. */
struct slice dat_text(struct dat_cursor *c);

/* Where the data of a CPU lie in the file; `size` is what they take there. */
struct dat_cpu {
    uint32_t cpu;
    uint64_t offset, size;
};

/* A ring buffer of the kernel: the top one, or an instance. */
struct dat_buffer {
    struct slice name;  /* empty: the top one */
    struct slice clock; /* version 7; else empty */
    uint32_t page_size;
    bool compressed; /* the data of a CPU are chunks */
    VEC(struct dat_cpu)
    cpus;
};

/* Statistics of one CPU as the kernel prints them. */
struct dat_cpustat {
    struct slice buffer; /* name, empty: the top one */
    struct slice text;
};

/* One format file of an event. */
struct dat_format {
    struct slice group;
    struct slice text;
};

enum dat_compression { DAT_PLAIN, DAT_ZLIB, DAT_ZSTD };

struct dat_file {
    struct slice bytes;
    unsigned version;
    bool big; /* the other byte order than ours: `swap` */
    uint32_t page_size;
    uint32_t n_cpus;
    enum dat_compression compression;

    /* Texts; empty when they are not there. */
    struct slice header_page, header_event, kallsyms, printk, cmdlines;
    VEC(struct dat_format)
    formats;
    VEC(struct dat_buffer)
    buffers;

    /* Options. */
    struct slice uname, clocks, writer;
    VEC(struct slice)
    hooks;
    VEC(struct dat_cpustat)
    cpustats;
    VEC(struct slice)
    guests; /* data of options GUEST */
    VEC(struct slice)
    procmaps;
    VEC(struct slice)
    last_boots; /* texts of options LAST_BOOT_INFO: NAME:text */
    struct slice time_shift;
    bool has_date, has_tsc, has_trace_id;
    int64_t date_ns, offset_ns;
    uint32_t tsc_mult, tsc_shift;
    uint64_t trace_id;

    bool latency_text; /* it holds the text of `trace` in place of events */
    uint32_t bad_sections;
    bool truncated;

    VEC(uint8_t *)
    inflated;       /* sections that were compressed */
    uint64_t plain; /* bytes of those */
    struct arena arena;
};

/* Reads the head of a file whose bytes stay where they are. -MRD_EFORMAT when it is not a trace.dat of version 6 or 7,
 * -MRD_ENOMEM. To be closed in any case. */
int dat_file_open(struct dat_file *f, struct slice bytes, struct error *err);
/* The same of the descriptions of events that perf keeps in a perf.data: formats, kernel symbols, comms, and no data.
 */
int dat_file_open_descriptions(struct dat_file *f, struct slice bytes);
void dat_file_close(struct dat_file *f);

/* The clock that the events of the file were recorded with ("mono", "local", …): the one in brackets in option
 * TRACECLOCK, "local" when the file does not say. */
struct slice dat_file_clock(const struct dat_file *f);

/* For dat_sections.c. */
struct dat_buffer *dat_add_buffer(struct dat_file *f, struct slice name);
int dat_read_head_info(struct dat_file *f, struct dat_cursor *c);
int dat_read_ftrace_formats(struct dat_file *f, struct dat_cursor *c);
int dat_read_event_formats(struct dat_file *f, struct dat_cursor *c);
int dat_read_option(struct dat_file *f, unsigned id, struct slice data);
int dat_read_sections(struct dat_file *f, uint64_t first);

#endif
