/* One recording as values by line and block of time.
 *
 * A line is a measure of a process, of its threads of one name, or of something with a name of its own. The time of a
 * recording is cut into fine blocks of a power of two of nanoseconds, so that recordings of different lengths can be
 * brought to blocks of one length. */
#ifndef MERIDIAN_COMPARE_RUN_H
#define MERIDIAN_COMPARE_RUN_H

#include "base/arena.h"
#include "base/error.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "compare/measures.h"
#include "meridian/tp.h"

#include <stdint.h>

/* What a line got of one recording. */
struct run_series {
    uint32_t run;
    uint64_t count;     /* rows */
    double *sums;       /* [n_blocks] ns covered, rows, values, or value times ns */
    double *weights;    /* [n_blocks] rows or ns that the sums are of; NULL for shares, rates and growth */
    VEC(double) values; /* of durations: each row's, in microseconds */
};

struct run_line {
    const struct measure *measure;
    const struct measure_source *source;
    const char *machine, *process, *thread, *name; /* "": none, or all */
    uint32_t process_line;                         /* of a line of threads: the one of their process; else its own */
    uint32_t thread_lines;                         /* of a process: how many there are */
    uint64_t key;
    VEC(struct run_series) series;
};

/* One recording. */
struct run {
    const char *path;
    int side;
    int64_t start_ns, dur_ns;
    int64_t block_ns; /* a power of two */
    size_t n_blocks;  /* whole ones */
    const char *lost; /* what was lost that measures may miss; NULL: nothing known */
    double clock_error_us;
    uint32_t sources;            /* bit i: measure_sources[i] had rows */
    const char *clock;           /* of the timeline */
    VEC(const char *) processes; /* names, sorted, each once */
};

struct run_set {
    struct arena arena;
    bool by_cgroup; /* set before the first recording: what stands for a process's name is the control group's path */
    struct u64map by_key; /* hash -> line */
    VEC(struct run_line) lines;
    VEC(struct run) runs;
};

/* Reads what `tp` has loaded as one more recording of `side`. `lost` (may be NULL) is copied, as is `path`. Fails when
 * the recording has no duration. */
int run_set_add(struct run_set *set, struct tp *tp, const char *path, int side, const char *lost, struct error *err);
void run_set_free(struct run_set *set);

/* The values of a line in blocks of `block_ns` (a multiple of the run's by a power of two), into `out` with room for
 * dur_ns / block_ns; blocks without a value are left out. Returns how many there are. */
size_t run_blocks(const struct run *run, const struct run_line *line, uint32_t run_index, int64_t block_ns,
                  double *out);

/* The series of a line in a run; NULL: none. */
const struct run_series *run_series_of(const struct run_line *line, uint32_t run_index);

#endif
