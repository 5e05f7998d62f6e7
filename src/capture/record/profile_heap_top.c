/* Adds up what functions keep, over the dumps of a trace: only what android.heapprofd writes is looked at. */
#include "capture/record/profile_heap_top.h"

#include "base/hash.h"
#include "capture/record/profile_stacks.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdlib.h>

enum { KEPT, ALLOCATED };

/* A call stack of a process: the last that was told of it, which counts from the beginning. */
struct site {
    uint64_t stack; /* its place */
    uint64_t allocated, freed, samples;
};

struct heap_top {
    struct profile_stacks stacks;
    struct u64map site_of; /* hash of sequence, process and call stack → 1 + place */
    VEC(struct site)
    sites;
    struct u64map ended; /* pid → how many processes of that number have ended */
    struct u64map seen;  /* … and which were counted */
    uint64_t sequence;   /* of the packet */
    uint64_t ending;     /* 1 + the pid of a process whose last dump is being read; 0: none */
    struct profile_heap_counts counts;
};

static uint64_t process_of(const struct heap_top *t, uint64_t pid)
{
    const uint64_t *ended = u64map_get(&t->ended, pid);
    return hash_keyed(hash_secret(), pid, ended ? *ended : 0);
}

/* The number of a call stack means the same for a sequence's whole life, though it is told anew now and then. */
static void read_site(struct heap_top *t, uint64_t process, struct slice m)
{
    uint64_t callstack = profile_number(m, PROFILE_PACKET_HEAP_SAMPLE_CALLSTACK_ID), stack;
    if (!profile_stacks_find(&t->stacks, callstack, &stack))
        return;
    uint64_t *at =
        u64map_put(&t->site_of, hash_combine(hash_keyed(hash_secret(), t->sequence, process), callstack), NULL);
    if (at && !*at && vec_push(&t->sites, (struct site){0}))
        *at = t->sites.n;
    if (!at || !*at) {
        t->stacks.failed = true;
        return;
    }
    t->sites.p[*at - 1] = (struct site){.stack = stack,
                                        .allocated = profile_number(m, PROFILE_PACKET_HEAP_SAMPLE_SELF_ALLOCATED),
                                        .freed = profile_number(m, PROFILE_PACKET_HEAP_SAMPLE_SELF_FREED),
                                        .samples = profile_number(m, PROFILE_PACKET_HEAP_SAMPLE_ALLOC_COUNT)};
}

static void read_dump(struct heap_top *t, struct slice m)
{
    uint64_t pid = profile_number(m, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_PID), process = process_of(t, pid);
    uint64_t interval = profile_number(m, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLING_INTERVAL_BYTES);
    struct pb_field f;
    bool added = false;
    if (!interval) {
        t->counts.left_out++;
        return;
    }
    t->stacks.failed |= !u64map_put(&t->seen, process, &added);
    t->counts.processes += added;
    if (interval > t->counts.interval)
        t->counts.interval = interval;
    if (pb_find(m, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_STATS, &f))
        t->counts.lost += profile_number(pb_bytes(&f), PROFILE_PACKET_PROCESS_STATS_SAMPLES_LOST);
    if (profile_number(m, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_DISCONNECTED))
        t->ending = 1 + pid;
    for (struct pb_cursor c = pb_cursor(m); pb_next(&c, &f);)
        if (f.id == PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLES)
            read_site(t, process, pb_bytes(&f));
}

static void read_profile(struct heap_top *t, struct slice m)
{
    struct pb_field f;
    for (struct pb_cursor c = pb_cursor(m); pb_next(&c, &f);)
        if (f.id == PROFILE_PACKET_PROCESS_DUMPS)
            read_dump(t, pb_bytes(&f));
    if (!t->ending || profile_number(m, PROFILE_PACKET_CONTINUED))
        return;
    uint64_t *ended = u64map_put(&t->ended, t->ending - 1, NULL);
    t->stacks.failed |= !ended;
    if (ended)
        ++*ended;
    t->ending = 0;
}

static int read_packet(void *ctx, struct slice field)
{
    struct heap_top *t = ctx;
    struct slice m;
    struct pb_field f;
    if (profile_stacks_packet(&t->stacks, field, &m) && profile_stacks_take_interned(&t->stacks, m) &&
        pb_find(m, TRACE_PACKET_PROFILE_PACKET, &f)) {
        t->sequence = profile_number(m, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID);
        read_profile(t, pb_bytes(&f));
    }
    return t->stacks.failed || t->stacks.strings.failed ? -MRD_ENOMEM : 0;
}

/* ---- the table ---- */

/* C++'s operators allocate for whoever uses them. */
static uint64_t allocators(struct heap_top *t, uint64_t stack)
{
    static const char operator[] = "operator new";
    uint64_t depth = 0;
    strid text;
    while ((text = profile_stacks_function(&t->stacks, stack, depth)) != 0 &&
           strncmp(strpool_cstr(&t->stacks.strings, text), operator, sizeof operator- 1) == 0)
        depth++;
    return profile_stacks_function(&t->stacks, stack, depth) ? depth : 0;
}

static void count_sites(struct heap_top *t)
{
    for (size_t i = 0; i < t->sites.n; i++) {
        const struct site *s = &t->sites.p[i];
        const uint64_t weights[PROFILE_WEIGHTS] = {
            [KEPT] = s->allocated > s->freed ? s->allocated - s->freed : 0, [ALLOCATED] = s->allocated};
        t->counts.kept += weights[KEPT];
        t->counts.allocated += weights[ALLOCATED];
        t->counts.samples += s->samples;
        profile_stacks_count(&t->stacks, s->stack, allocators(t, s->stack), weights, s->samples);
    }
}

static int by_kept(const void *a, const void *b)
{
    const struct profile_function *x = a, *y = b;
    const uint64_t keys[][2] = {{x->self[KEPT], y->self[KEPT]},
                                {x->self[ALLOCATED], y->self[ALLOCATED]},
                                {x->total[KEPT], y->total[KEPT]},
                                {y->text, x->text}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return 0;
}

void profile_print_bytes(char *text, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 999.95 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    snprintf(text, size, "%.*f %s", unit ? 1 : 0, value, units[unit]);
}

static void print(struct heap_top *t, unsigned rows, bool callers, FILE *to)
{
    struct profile_function *list = t->stacks.functions.p;
    size_t n = t->stacks.functions.n;
    if (n)
        qsort(list, n, sizeof *list, by_kept);
    if (n)
        fprintf(to, "%11s%s%11s  %7s  function\n", "not freed", callers ? "  with calls" : "", "allocated", "samples");
    for (size_t i = 0; i < n && i < rows && (callers || list[i].self[ALLOCATED]); i++) {
        char text[3][16];
        profile_print_bytes(text[0], sizeof text[0], list[i].self[KEPT]);
        profile_print_bytes(text[1], sizeof text[1], list[i].total[KEPT]);
        profile_print_bytes(text[2], sizeof text[2], list[i].self[ALLOCATED]);
        fprintf(to, "%11s", text[0]);
        if (callers)
            fprintf(to, " %11s", text[1]);
        fprintf(to, "%11s  %7llu  ", text[2], (unsigned long long)list[i].samples);
        profile_print_function(&t->stacks, &list[i], to);
    }
}

int profile_heap_top(const char *path, unsigned rows, bool callers, FILE *to, struct profile_heap_counts *counts,
                     struct error *err)
{
    struct heap_top t = {0};
    int rc = profile_stacks_read(path, read_packet, &t, err);
    if (!rc)
        count_sites(&t);
    if (!rc && t.stacks.failed)
        rc = error_set(err, -MRD_ENOMEM, "%s: out of memory", path);
    if (!rc) {
        print(&t, rows, callers, to);
        *counts = t.counts;
    }
    u64map_free(&t.site_of);
    u64map_free(&t.ended);
    u64map_free(&t.seen);
    vec_free(&t.sites);
    profile_stacks_free(&t.stacks);
    return rc;
}
