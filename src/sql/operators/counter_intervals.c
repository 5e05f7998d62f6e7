/* __intrinsic_counter_per_track_agg(id, ts, track_id, value) and __intrinsic_counter_intervals('leading', end, tracks):
 * samples of counters to the spans in which each value held.
 *
 * Of a run of equal values the first two and the last are kept, the last only where another value follows: what lies
 * between adds no knowledge. The last span of a track lasts to `end`. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

struct sample {
    int64_t id, ts;
    double value;
};

struct track {
    int64_t id;
    struct {
        struct sample *p;
        size_t n, cap;
    } samples;
};

struct tracks {
    struct u64map index;
    VEC(struct track)
    list;
};

struct tracks_state {
    struct tracks *t;
};

static void tracks_free(void *p)
{
    struct tracks *t = p;
    if (!t)
        return;
    for (size_t i = 0; i < t->list.n; i++)
        vec_free(&t->list.p[i].samples);
    vec_free(&t->list);
    u64map_free(&t->index);
    mem_free(t);
}

static void step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct tracks_state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    bool added;
    (void)argc;
    if (!s || (!s->t && !(s->t = mem_zalloc(sizeof *s->t)))) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (int i = 0; i < 3; i++)
        if (sqlite3_value_type(argv[i]) != SQLITE_INTEGER) {
            function_error(ctx, "COUNTER_PER_TRACK_AGG: id, ts and track_id must be integers");
            return;
        }
    if (function_is_null(argv[3]))
        return;
    int64_t track = sqlite3_value_int64(argv[2]);
    uint64_t *slot = u64map_put(&s->t->index, (uint64_t)track, &added);
    struct track *t = NULL;
    if (slot && added) {
        *slot = s->t->list.n;
        t = vec_add(&s->t->list);
        if (t)
            t->id = track;
    } else if (slot) {
        t = &s->t->list.p[*slot];
    }
    struct sample v = {sqlite3_value_int64(argv[0]), sqlite3_value_int64(argv[1]), sqlite3_value_double(argv[3])};
    if (t && t->samples.n && t->samples.p[t->samples.n - 1].ts > v.ts)
        function_error(ctx, "COUNTER_PER_TRACK_AGG: the samples must be ordered by ts");
    else if (!t || !vec_push(&t->samples, v))
        sqlite3_result_error_nomem(ctx);
}

static void final(sqlite3_context *ctx)
{
    struct tracks_state *s = sqlite3_aggregate_context(ctx, 0);
    if (s && s->t)
        sqlite3_result_pointer(ctx, s->t, "COUNTER_TRACK_PARTITIONS", tracks_free);
    if (s)
        s->t = NULL;
}

/* `end` comes from SQL and may be anything. */
static int64_t span_length(int64_t ts, int64_t end)
{
    int64_t dur;
    return __builtin_sub_overflow(end, ts, &dur) ? INT64_MAX : dur;
}

static int emit(struct table_builder *b, const struct track *t, const struct sample *at, const struct sample *next,
                const struct sample *before, int64_t end, struct error *err)
{
    int rc = table_builder_int(b, 0, at->id, err);
    if (rc == 0)
        rc = table_builder_int(b, 1, at->ts, err);
    if (rc == 0)
        rc = table_builder_int(b, 2, span_length(at->ts, next ? next->ts : end), err);
    if (rc == 0)
        rc = table_builder_int(b, 3, t->id, err);
    if (rc == 0)
        rc = table_builder_double(b, 4, at->value, err);
    if (rc == 0 && next)
        rc = table_builder_double(b, 5, next->value, err);
    if (rc == 0 && before)
        rc = table_builder_double(b, 6, at->value - before->value, err);
    return rc ? rc : table_builder_commit(b, err);
}

/* The sample that is kept after the kept sample k; n when there is none. */
static size_t next_kept(const struct sample *p, size_t k, size_t n)
{
    size_t next = k + 1;
    if (next >= n || p[next].value != p[k].value || k == 0 || p[k - 1].value != p[k].value)
        return next; /* another value, or the second of a run */
    while (next < n && p[next].value == p[k].value)
        next++;
    return next == n || next - 1 == k ? next : next - 1;
}

static void intervals(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char *const names[] = {"id", "ts", "dur", "track_id", "value", "next_value", "delta_value"};
    static const uint8_t types[] = {RUNTIME_LONG,   RUNTIME_LONG,   RUNTIME_LONG,  RUNTIME_LONG,
                                    RUNTIME_DOUBLE, RUNTIME_DOUBLE, RUNTIME_DOUBLE};
    struct tracks *t = sqlite3_value_pointer(argv[2], "COUNTER_TRACK_PARTITIONS");
    const char *kind = (const char *)sqlite3_value_text(argv[0]);
    int64_t end = sqlite3_value_int64(argv[1]);
    struct table_builder b;
    struct error err = {0};
    int rc = 0;
    (void)argc;
    if (!kind || sqlite3_stricmp(kind, "leading") != 0) {
        function_error(ctx, "COUNTER_INTERVALS: the only kind is 'leading'");
        return;
    }
    if (!t)
        return;
    if (!value_builder(ctx, &b, 7, names, types))
        return;
    for (size_t i = 0; i < t->list.n && rc == 0; i++) {
        const struct track *track = &t->list.p[i];
        const struct sample *p = track->samples.p, *before = NULL;
        for (size_t k = 0, n = track->samples.n; k < n && rc == 0;) {
            size_t next = next_kept(p, k, n);
            rc = emit(&b, track, &p[k], next < n ? &p[next] : NULL, before, end, &err);
            before = &p[k];
            k = next;
        }
    }
    value_builder_result(ctx, &b, rc, &err);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_counter_per_track_agg", .n_args = 4, .step = step, .final = final},
    {.name = "__intrinsic_counter_intervals", .n_args = 3, .takes = "tvp", .scalar = intervals},
};

FUNCTION_ROWS(counter_intervals, rows);
