/* Tests the clock graph against a slow search over the plain list of snapshots, and on hostile snapshots. */
#include "importer/clock/clock_graph_private.h"

#include <check.h>
#include <stdlib.h>

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

enum { CLOCKS = 7, MAX_SNAPSHOTS = 200, MAX_HOPS = 4 };

/* The list of snapshots as they were given, and the rules applied to it literally. */
struct slow {
    struct {
        int n;
        int clock[CLOCKS];
        int64_t value[CLOCKS];
        int type; /* age of its list of clocks */
    } s[MAX_SNAPSHOTS];
    int n;
    bool broken[CLOCKS]; /* went backwards: no source any more */
};

static void slow_add(struct slow *m, const int *clocks, const int64_t *values, int n)
{
    int type = 0, newest = 0;
    for (int i = 0; i < m->n; i++) {
        newest = m->s[i].type > newest ? m->s[i].type : newest;
        if (m->s[i].n == n && memcmp(m->s[i].clock, clocks, (size_t)n * sizeof *clocks) == 0)
            type = m->s[i].type;
    }
    if (!type)
        type = newest + 1;
    for (int i = 0; i < n; i++) {
        for (int k = m->n - 1; k >= 0; k--) {
            if (m->s[k].type != type)
                continue;
            m->broken[clocks[i]] |= values[i] < m->s[k].value[i];
            break;
        }
        m->s[m->n].clock[i] = clocks[i];
        m->s[m->n].value[i] = values[i];
    }
    m->s[m->n].n = n;
    m->s[m->n++].type = type;
}

static int slot_of(const struct slow *m, int snapshot, int clock)
{
    for (int i = 0; i < m->s[snapshot].n; i++)
        if (m->s[snapshot].clock[i] == clock)
            return i;
    return -1;
}

/* The oldest type of snapshot that leads from a to b, 0 when none does. */
static int slow_edge(const struct slow *m, int a, int b)
{
    int best = 0;
    for (int i = 0; i < m->n && !m->broken[a]; i++)
        if (slot_of(m, i, a) >= 0 && slot_of(m, i, b) >= 0 && a != b && (!best || m->s[i].type < best))
            best = m->s[i].type;
    return best;
}

static int64_t slow_hop(const struct slow *m, int a, int b, int type, int64_t v)
{
    int use = -1;
    for (int i = 0; i < m->n; i++)
        if (m->s[i].type == type && (use < 0 || m->s[i].value[slot_of(m, i, a)] <= v))
            use = i;
    return v + m->s[use].value[slot_of(m, use, b)] - m->s[use].value[slot_of(m, use, a)];
}

static bool slow_convert(const struct slow *m, int from, int to, int64_t v, int64_t *out)
{
    int queue[CLOCKS] = {from}, parent[CLOCKS], depth[CLOCKS] = {0}, n = 1;
    bool seen[CLOCKS] = {false};
    seen[from] = true;
    parent[from] = -1;
    for (int i = 0; i < n && depth[queue[i]] < MAX_HOPS; i++)
        for (int next = 0; next < CLOCKS; next++)
            if (!seen[next] && slow_edge(m, queue[i], next)) {
                seen[next] = true;
                parent[next] = queue[i];
                depth[next] = depth[queue[i]] + 1;
                queue[n++] = next;
            }
    if (!seen[to])
        return false;
    int way[CLOCKS], hops = 0;
    for (int c = to; c >= 0; c = parent[c])
        way[hops++] = c;
    for (int i = hops - 1; i > 0; i--)
        v = slow_hop(m, way[i], way[i - 1], slow_edge(m, way[i], way[i - 1]), v);
    *out = v;
    return true;
}

static struct clock_id clock_of(int i)
{
    return (struct clock_id){.id = 128 + (uint32_t)i};
}

START_TEST(conversions_are_those_of_a_slow_search)
{
    uint64_t seed = (uint64_t)_i * 2654435761 + 11;
    struct storage st;
    storage_init(&st);
    struct clock_graph *g = clock_graph_open(&st);
    struct slow *m = calloc(1, sizeof *m);
    int64_t base[CLOCKS];
    for (int i = 0; i < CLOCKS; i++)
        base[i] = (int64_t)(next_random(&seed) >> 14);
    ck_assert_int_eq(clock_graph_set_trace_clock(g, clock_of(0)), 0);
    int64_t now = 0;
    for (int round = 0; round < MAX_SNAPSHOTS; round++) {
        now += (int64_t)(next_random(&seed) % 1000);
        int clocks[CLOCKS], n = 0;
        int64_t values[CLOCKS];
        struct clock_reading readings[CLOCKS];
        uint64_t set = next_random(&seed) % 6 ? (uint64_t)3 << next_random(&seed) % (CLOCKS - 1) : next_random(&seed);
        for (int c = 0; c < CLOCKS; c++) {
            if (!(set >> c & 1))
                continue;
            bool back = c && _i % 3 == 0 && next_random(&seed) % 50 == 0;
            clocks[n] = c;
            values[n] = base[c] + now - (back ? 500 : 0) + (c ? (int64_t)(next_random(&seed) % 20) : 0);
            readings[n] = (struct clock_reading){.clock = clock_of(c), .value = values[n]};
            n++;
        }
        slow_add(m, clocks, values, n);
        ck_assert_uint_eq(clock_graph_add_snapshot(g, readings, (size_t)n), (uint32_t)round);
        for (int k = 0; k < 12; k++) {
            int a = (int)(next_random(&seed) % CLOCKS), b = (int)(next_random(&seed) % CLOCKS);
            int64_t v = base[a] + (int64_t)(next_random(&seed) % (uint64_t)(now + 2000)) - 1000, got = 0, want = 0;
            bool there = slow_convert(m, a, b, v, &want);
            ck_assert_int_eq(clock_graph_convert(g, clock_of(a), v, clock_of(b), &got) == 0, there);
            if (there)
                ck_assert_int_eq(got, want);
            there = slow_convert(m, a, 0, v, &want);
            if (a == 0 || there) { /* twice: the second time out of the cache */
                for (int twice = 0; twice < 2; twice++) {
                    ck_assert_int_eq(clock_graph_to_trace_time(g, clock_of(a), v, &got), 0);
                    ck_assert_int_eq(got, a ? want : v);
                }
            }
        }
    }
    ck_assert(!clock_graph_failed(g));
    clock_graph_close(g);
    storage_free(&st);
    free(m);
}
END_TEST

static const struct clock_id boot = {.id = CLOCK_ID_BOOTTIME}, real = {.id = CLOCK_ID_REALTIME};

START_TEST(rules_of_snapshots)
{
    struct storage st;
    storage_init(&st);
    struct clock_graph *g = clock_graph_open(&st);
    int64_t out;
    ck_assert_int_eq(clock_graph_set_trace_clock(g, boot), 0);
    struct clock_reading good[] = {{.clock = boot, .value = 100}, {.clock = real, .value = 5000}};
    clock_graph_add_snapshot(g, good, 2);
    ck_assert_int_eq(clock_graph_to_trace_time(g, real, 5010, &out), 0);
    ck_assert_int_eq(out, 110);
    ck_assert_int_eq(clock_graph_to_trace_time(g, real, 1, &out), 0); /* before all: by the first */
    ck_assert_int_eq(out, -4899);
    ck_assert_int_eq(clock_graph_set_trace_clock(g, real), -MRD_EINVALID); /* too late */

    struct clock_reading bad[][2] = {
        {{.clock = boot, .value = 50}, {.clock = real, .value = 6000}},                      /* trace clock goes back */
        {{.clock = real, .value = 6000}, {.clock = real, .value = 6001}},                    /* twice the same */
        {{.clock = boot, .value = 200, .multiplier = 1000}, {.clock = real, .value = 7000}}, /* not in ns */
        {{.clock = real, .value = 200, .multiplier = 7}, {.clock = boot, .value = 7000}},    /* another unit */
        {{.clock = {.id = 200}, .value = 1, .incremental = true},
         {.clock = boot, .value = 8000}}, /* not a sequence's */
        {{.clock = {.id = 201}, .value = INT64_MAX, .multiplier = 2}, {.clock = boot, .value = 9000}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clock_graph_add_snapshot(g, bad[i], 2);
        ck_assert_int_eq(stats_get(&st.stats, 0, STAT_invalid_clock_snapshots), (int64_t)i + 1);
    }
    ck_assert_int_eq(clock_graph_to_trace_time(g, real, 5010, &out), 0);
    ck_assert_int_eq(out, 110);

    /* A clock that goes backwards is no source any more, but still a target. */
    struct clock_id odd = {.id = 130};
    struct clock_reading up[] = {{.clock = boot, .value = 300}, {.clock = odd, .value = 50}};
    struct clock_reading down[] = {{.clock = boot, .value = 400}, {.clock = odd, .value = 20}};
    clock_graph_add_snapshot(g, up, 2);
    ck_assert_int_eq(clock_graph_to_trace_time(g, odd, 60, &out), 0);
    ck_assert_int_eq(out, 310);
    clock_graph_add_snapshot(g, down, 2);
    ck_assert_int_eq(clock_graph_to_trace_time(g, odd, 60, &out), -MRD_ENOTFOUND);
    ck_assert_int_eq(clock_graph_convert(g, boot, 410, odd, &out), 0);
    ck_assert_int_eq(out, 30);

    /* Incremental and multiplied: microseconds since the last one. */
    struct clock_id delta = {.id = 64, .sequence = 7};
    struct clock_reading inc[] = {{.clock = delta, .value = 5, .multiplier = 1000, .incremental = true},
                                  {.clock = boot, .value = 1000000}};
    clock_graph_add_snapshot(g, inc, 2);
    ck_assert_int_eq(clock_graph_to_trace_time(g, delta, 1, &out), 0);
    ck_assert_int_eq(out, 1001000);
    ck_assert_int_eq(clock_graph_to_trace_time(g, delta, 2, &out), 0);
    ck_assert_int_eq(out, 1003000);

    clock_graph_record_failure(g, (struct clock_id){.id = 99, .sequence = 3}, 5, -1);
    ck_assert_int_eq(stats_get(&st.stats, 0, STAT_clock_sync_failure_unknown_source_clock), 1);
    ck_assert_uint_eq(st.t[T_trace_import_logs].n_rows, 1);
    clock_graph_close(g);
    storage_free(&st);
}
END_TEST

/* Snapshots that jump, contradict, loop and overflow: any answer, but no undefined behaviour and no wrap-around. */
START_TEST(hostile_snapshots_are_survived)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, 1000, INT64_MAX - 1, INT64_MAX};
    uint64_t seed = (uint64_t)_i + 1;
    struct storage st;
    storage_init(&st);
    struct clock_graph *g = clock_graph_open(&st);
    for (int i = 0; i < 400; i++) {
        struct clock_reading r[4];
        size_t n = next_random(&seed) % 5;
        for (size_t k = 0; k < n; k++)
            r[k] = (struct clock_reading){
                .clock = {.id = (uint32_t)(next_random(&seed) % 12) * 11, .machine = (uint32_t)next_random(&seed) % 2},
                .value = odd[next_random(&seed) % 8],
                .multiplier = next_random(&seed) % 5 ? 0 : odd[next_random(&seed) % 8],
                .incremental = next_random(&seed) % 7 == 0};
        clock_graph_write_rows(g, r, n, clock_graph_add_snapshot(g, r, n));
        int64_t out;
        struct clock_id c = {.id = (uint32_t)(next_random(&seed) % 12) * 11};
        if (clock_graph_to_trace_time(g, c, odd[next_random(&seed) % 8], &out) != 0)
            clock_graph_record_failure(g, c, odd[next_random(&seed) % 8], i);
        if (i % 50 == 20)
            clock_graph_set_trace_clock(g, c);
    }
    ck_assert(!clock_graph_failed(g));
    clock_graph_close(g);
    storage_free(&st);
}
END_TEST

/* Each sequence of track events brings snapshots of its own clock and the host's; a browser has thousands. */
START_TEST(each_of_many_sequences_has_its_clock)
{
    enum { SEQUENCES = 6000 };
    struct storage st;
    int64_t ts;
    ck_assert_int_eq(storage_init(&st), 0);
    struct clock_graph *g = clock_graph_open(&st);
    clock_graph_set_trace_clock(g, (struct clock_id){.id = CLOCK_ID_BOOTTIME});
    for (uint32_t i = 1; i <= SEQUENCES; i++) {
        struct clock_reading readings[] = {{.clock = {.id = CLOCK_ID_BOOTTIME}, .value = 1000 * i},
                                           {.clock = {.id = 64, .sequence = i}, .value = 0}};
        clock_graph_add_snapshot(g, readings, 2);
    }
    for (uint32_t i = 1; i <= SEQUENCES; i++) {
        ck_assert_int_eq(clock_graph_to_trace_time(g, (struct clock_id){.id = 64, .sequence = i}, 7, &ts), 0);
        ck_assert_int_eq(ts, 1000 * i + 7);
    }
    ck_assert_int_eq(stats_get(&st.stats, 0, STAT_invalid_clock_snapshots), 0);
    clock_graph_close(g);
    storage_free(&st);
}
END_TEST

/* Files of many machines, whose REALTIME leads to that of the trace: a search makes few steps, however many there are,
 * and none at all where no way is. */
START_TEST(searches_do_not_grow_with_machines)
{
    enum { FILES = 1500 };
    struct storage st;
    int64_t ts;
    size_t most = 0;
    ck_assert_int_eq(storage_init(&st), 0);
    struct clock_graph *g = clock_graph_open(&st);
    clock_graph_set_trace_clock(g, (struct clock_id){.id = CLOCK_ID_BOOTTIME});
    for (uint32_t i = 0; i < 2 * FILES; i++) {
        uint32_t file = i / 2;
        struct clock_id source = {.id = CLOCK_ID_BOOTTIME, .file = file},
                        lost = {.id = CLOCK_ID_MONOTONIC, .machine = 1 + file, .file = file};
        struct clock_reading readings[] = {{.clock = source, .value = 1000 + file + i},
                                           {.clock = {.id = CLOCK_ID_REALTIME, .file = file}, .value = 5000 + i}};
        struct clock_reading apart[] = {{.clock = lost, .value = i},
                                        {.clock = {.id = 64, .sequence = 1 + i}, .value = i}};
        clock_graph_add_snapshot(g, readings, 2);
        clock_graph_add_snapshot(g, apart, 2);
        ck_assert_int_eq(clock_graph_to_trace_time(g, source, 1000 + file + i, &ts), 0);
        ck_assert_int_eq(ts, 1000 + i);
        most = g->steps.n > most ? g->steps.n : most;
        vec_clear(&g->steps);
        ck_assert_int_eq(clock_graph_convert(g, lost, i, source, &ts), -MRD_ENOTFOUND);
        ck_assert_uint_eq(g->steps.n, 0);
    }
    ck_assert_uint_le(most, 8);
    clock_graph_close(g);
    storage_free(&st);
}
END_TEST

Suite *clock_graph_suite(void);
Suite *clock_graph_suite(void)
{
    Suite *s = suite_create("clock_graph");
    TCase *t = tcase_create("clock_graph");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, conversions_are_those_of_a_slow_search, 0, 30);
    tcase_add_test(t, rules_of_snapshots);
    tcase_add_test(t, each_of_many_sequences_has_its_clock);
    tcase_add_test(t, searches_do_not_grow_with_machines);
    tcase_add_loop_test(t, hostile_snapshots_are_survived, 0, 40);
    suite_add_tcase(s, t);
    return s;
}
