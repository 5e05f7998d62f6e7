/* FtraceStats: what the kernel's buffers held and lost at the start and the end. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

/* A field of FtraceCpuStats and its three stats. */
static const struct cpu_stat {
    uint8_t field;
    bool seconds; /* a double, kept as ns */
    bool has_delta;
    uint16_t begin, end, delta;
} cpu_stats[] = {
#define ROW(field, seconds, name)                                                                                      \
    {                                                                                                                  \
        field, seconds, true, STAT_ftrace_cpu_##name##_begin, STAT_ftrace_cpu_##name##_end,                            \
            STAT_ftrace_cpu_##name##_delta                                                                             \
    }
    ROW(FTRACE_CPU_STATS_ENTRIES, false, entries),
    ROW(FTRACE_CPU_STATS_OVERRUN, false, overrun),
    ROW(FTRACE_CPU_STATS_COMMIT_OVERRUN, false, commit_overrun),
    ROW(FTRACE_CPU_STATS_BYTES_READ, false, bytes),
    ROW(FTRACE_CPU_STATS_DROPPED_EVENTS, false, dropped_events),
    ROW(FTRACE_CPU_STATS_READ_EVENTS, false, read_events),
#undef ROW
    {FTRACE_CPU_STATS_OLDEST_EVENT_TS, true, false, STAT_ftrace_cpu_oldest_event_ts_begin,
     STAT_ftrace_cpu_oldest_event_ts_end, 0},
    {FTRACE_CPU_STATS_NOW_TS, true, false, STAT_ftrace_cpu_now_ts_begin, STAT_ftrace_cpu_now_ts_end, 0},
};

/* Readings may be any double, also beyond what fits. */
static int64_t ns_of_seconds(uint64_t bits)
{
    double s;
    memcpy(&s, &bits, sizeof s);
    double ns = s * 1e9;
    if (!(ns < 9223372036854775808.0))
        return INT64_MAX;
    return ns <= -9223372036854775808.0 ? INT64_MIN : (int64_t)ns;
}

static void one_cpu(struct packet *p, struct slice message, bool end)
{
    struct fields f;
    struct stats *stats = &p->m->st->stats;
    fields_read(message, &f);
    int32_t cpu = field_i32(&f, FTRACE_CPU_STATS_CPU);
    for (size_t i = 0; i < sizeof cpu_stats / sizeof *cpu_stats; i++) {
        const struct cpu_stat *c = &cpu_stats[i];
        int64_t v = c->seconds ? ns_of_seconds(field_u64(&f, c->field)) : field_i64(&f, c->field);
        stats_set_idx(stats, p->m->id, end ? c->end : c->begin, cpu, v);
        const int64_t *begin = end && c->has_delta ? stats_get_idx(stats, p->m->id, c->begin, cpu) : NULL;
        if (begin)
            stats_set_idx(stats, p->m->id, c->delta, cpu, (int64_t)((uint64_t)v - (uint64_t)*begin));
    }
}

static void kprobes(struct packet *p, struct slice message, bool end)
{
    struct fields f;
    struct stats *stats = &p->m->st->stats;
    fields_read(message, &f);
    int64_t hits = field_i64(&f, FTRACE_KPROBE_STATS_HITS), misses = field_i64(&f, FTRACE_KPROBE_STATS_MISSES);
    stats_set(stats, p->m->id, end ? STAT_ftrace_kprobe_hits_end : STAT_ftrace_kprobe_hits_begin, hits);
    stats_set(stats, p->m->id, end ? STAT_ftrace_kprobe_misses_end : STAT_ftrace_kprobe_misses_begin, misses);
    if (!end)
        return;
    int64_t hits_begin = stats_get(stats, p->m->id, STAT_ftrace_kprobe_hits_begin);
    int64_t misses_begin = stats_get(stats, p->m->id, STAT_ftrace_kprobe_misses_begin);
    if (hits_begin)
        stats_set(stats, p->m->id, STAT_ftrace_kprobe_hits_delta, (int64_t)((uint64_t)hits - (uint64_t)hits_begin));
    if (misses_begin)
        stats_set(stats, p->m->id, STAT_ftrace_kprobe_misses_delta,
                  (int64_t)((uint64_t)misses - (uint64_t)misses_begin));
}

static void setup_error(struct packet *p, const char *what, struct slice text)
{
    struct importer *im = p->m->im;
    struct arg_list args = {0};
    strid message = strpool_printf(&im->st->strings, "%s%.*s", what, (int)(text.len > 4096 ? 4096 : text.len),
                                   text.p ? (const char *)text.p : "");
    arg_list_str(&im->st->args, &args, "message", message);
    import_log(p->m, STAT_ftrace_setup_errors, COL_NULL, -1, args_intern(&im->st->args, args.p, args.n));
    arg_list_free(&args);
}

/* What could not be set up, told once a sequence. */
static void setup_errors(struct packet *p)
{
    static const struct {
        uint32_t field;
        const char *what;
    } kinds[] = {
        {FTRACE_STATS_FAILED_FTRACE_EVENTS, "Ftrace event failed: "},
        {FTRACE_STATS_UNKNOWN_FTRACE_EVENTS, "Ftrace event unknown: "},
        {FTRACE_STATS_ATRACE_ERRORS, "Atrace failures: "},
        {FTRACE_STATS_EXCLUSIVE_FEATURE_ERROR, "Ftrace exclusive feature error: "},
    };
    struct ftrace_machine *m = p->m->ftrace;
    uint32_t sequence = p->gen->seq->id;
    bool any = false;
    if (u64map_get(&m->setup_errors_seen, sequence))
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pb_cursor c = pb_cursor(p->field);
        struct pb_field f;
        bool one_of_many =
            kinds[i].field == FTRACE_STATS_FAILED_FTRACE_EVENTS || kinds[i].field == FTRACE_STATS_UNKNOWN_FTRACE_EVENTS;
        while (pb_next(&c, &f)) {
            if (f.id != kinds[i].field || f.wire != PB_BYTES || (!one_of_many && f.u == 0))
                continue;
            setup_error(p, kinds[i].what, pb_bytes(&f));
            any = true;
        }
    }
    if (any && !u64map_set(&m->setup_errors_seen, sequence, 1))
        p->m->im->failed = true;
}

/* The recorder met data that it could not read: what it wrote may be wrong, so the import as a whole fails. */
static void parse_error(struct packet *p, uint64_t code)
{
    if (code == FTRACE_PARSE_STATUS_FTRACE_STATUS_ABI_ZERO_DATA_LENGTH) {
        stats_add(&p->m->st->stats, p->m->id, STAT_ftrace_abi_errors_skipped_zero_data_length, 1);
        return;
    }
    importer_fail(p->m->im, -MRD_EFORMAT,
                  "the recorder could not read some of the kernel's buffers (FtraceParseStatus %llu); pass --dev "
                  "--dev-flag ignore-ftrace-parse-errors=true to load the trace all the same (ERR:ftrace_parse)",
                  (unsigned long long)code);
}

enum tokenize_result ftrace_tokenize_stats(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t phase = 0;
    struct slice kprobe = {0};
    while (pb_next(&c, &f))
        if (f.id == FTRACE_STATS_PHASE)
            phase = pb_u64(&f);
        else if (f.id == FTRACE_STATS_KPROBE_STATS)
            kprobe = pb_bytes(&f);
    if (phase != FTRACE_STATS_PHASE_START_OF_TRACE && phase != FTRACE_STATS_PHASE_END_OF_TRACE)
        return TOKENIZE_DONE;
    kprobes(p, kprobe, phase == FTRACE_STATS_PHASE_END_OF_TRACE);
    c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        uint64_t code;
        switch (f.id) {
        case FTRACE_STATS_CPU_STATS:
            one_cpu(p, pb_bytes(&f), phase == FTRACE_STATS_PHASE_END_OF_TRACE);
            break;
        case FTRACE_STATS_PRESERVE_FTRACE_BUFFER:
            p->m->ftrace->preserve_buffer |= phase == FTRACE_STATS_PHASE_START_OF_TRACE && pb_bool(&f);
            break;
        case FTRACE_STATS_FTRACE_PARSE_ERRORS:
            if (p->m->im->opt.ignore_ftrace_parse_errors)
                break;
            if (f.wire == PB_BYTES) {
                struct pb_cursor packed = pb_sub(&f);
                while (pb_next_packed(&packed, &code))
                    parse_error(p, code);
            } else {
                parse_error(p, pb_u64(&f));
            }
            break;
        }
    }
    if (phase == FTRACE_STATS_PHASE_START_OF_TRACE)
        setup_errors(p);
    return TOKENIZE_DONE;
}
