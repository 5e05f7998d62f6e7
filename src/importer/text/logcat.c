/* Reads Android's log: files of logcat. */
#include "importer/text/logcat.h"

#include "importer/clock/clock_graph.h"
#include "importer/lines/line_reader.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/text/text_formats.h"
#include "importer/track/process_tracker.h"

enum { SHORTEST = 30 };

struct log_entry {
    int64_t pid, tid;
    uint32_t prio;
    strid tag, msg;
};

struct logcat {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock *clock;
    int64_t zone_ns;
    bool repeats;   /* what other logs have told, too */
    bool is_logcat; /* a line of it had the form of an entry */
    uint32_t queue;
    VEC(struct log_entry)
    entries;
};

/* Whether a log before this one has told of an entry already: `own` of `events` up to `i` have its time and text. */
static bool is_repeated(const struct logcat *l, const struct sort_event *events, size_t i, uint32_t utid)
{
    enum { LOOK = 256 /* entries of one millisecond */ };
    const struct storage *st = l->im->st;
    const struct log_entry *e = &l->entries.p[events[i].a];
    size_t own = 1, told = 0;
    for (size_t k = i; k-- > 0 && i - k < LOOK && events[k].ts == events[i].ts;) {
        const struct log_entry *before = &l->entries.p[events[k].a];
        own += before->tid == e->tid && before->prio == e->prio && before->tag == e->tag && before->msg == e->msg;
    }
    uint32_t rows = st->t[T_logs].n_rows;
    for (uint32_t row = rows; row-- > 0 && rows - row < LOOK && ROW_GET(st, logs, ts, row) == events[i].ts;)
        told += ROW_GET(st, logs, utid, row) == utid && ROW_GET(st, logs, prio, row) == e->prio &&
                ROW_GET(st, logs, tag, row) == e->tag && ROW_GET(st, logs, msg, row) == e->msg;
    return told >= own;
}

static void parse_entries(void *owner, const struct sort_event *events, size_t n)
{
    struct logcat *l = owner;
    strid source = import_str(l->im, "android_logcat");
    for (size_t i = 0; i < n; i++) {
        const struct log_entry *e = &l->entries.p[events[i].a];
        process_tracker_process(l->m->processes, e->pid);
        uint32_t utid = process_tracker_update_thread(l->m->processes, e->tid, e->pid);
        if (l->repeats && is_repeated(l, events, i, utid))
            continue;
        logs_insert(
            l->im->st,
            &(struct logs_row){
                .ts = events[i].ts, .utid = utid, .prio = e->prio, .log_source = source, .tag = e->tag, .msg = e->msg});
    }
}

struct logcat *logcat_open(struct importer *im, struct file_clock *clock)
{
    struct logcat *l = mem_zalloc(sizeof *l);
    if (!l)
        return NULL;
    *l = (struct logcat){.im = im, .m = text_machine(im), .clock = clock, .repeats = im->bugreport_year != 0};
    l->queue = sorter_add_queue(im->sorter, parse_entries, l);
    return l;
}

void logcat_close(struct logcat *l)
{
    if (!l)
        return;
    vec_free(&l->entries);
    mem_free(l);
}

/* Days since 1970 of a date of the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool read_digits(struct slice *s, size_t n, char end, int64_t *value)
{
    if (s->len < n || !number_decimal(slice_to(*s, n), value) || *value < 0)
        return false;
    *s = slice_from(*s, n);
    if (!end)
        return true;
    if (!s->len || s->p[0] != (uint8_t)end)
        return false;
    *s = slice_from(*s, 1);
    return true;
}

/* [YYYY-]MM-DD and HH:MM:SS.fraction. */
static bool read_when(struct slice date, struct slice time, int year, int64_t *ns)
{
    int64_t y = year, month, day, hour, minute, second, scale = 100000000, fraction = 0;
    if (date.len == 10 && !read_digits(&date, 4, '-', &y))
        return false;
    if (!read_digits(&date, 2, '-', &month) || !read_digits(&date, 2, 0, &day) || date.len || month < 1 || month > 12 ||
        day < 1 || day > 31)
        return false;
    if (!read_digits(&time, 2, ':', &hour) || !read_digits(&time, 2, ':', &minute) ||
        !read_digits(&time, 2, '.', &second) || !time.len)
        return false;
    for (size_t i = 0; i < time.len; i++, scale /= 10) {
        if (!is_digit(time.p[i]))
            return false;
        fraction += (time.p[i] - '0') * scale;
    }
    if (y < LOGCAT_FIRST_YEAR || y > 2200)
        return false;
    *ns = ((days_of(y, month, day) * 24 + hour) * 60 + minute) * 60 * 1000000000 + second * 1000000000 + fraction;
    return true;
}

bool logcat_time(struct slice text, int year, int64_t *ns)
{
    struct slice date = next_word(&text);
    return read_when(date, next_word(&text), year, ns);
}

void logcat_zone(struct logcat *l, int64_t ns)
{
    l->zone_ns = ns;
}

static uint32_t priority_of(uint8_t letter)
{
    static const char letters[] = "VDIWEF";
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? (uint32_t)(at - letters) + 2 : 0;
}

/* TAG: MESSAGE; without ": " all is the message. */
static void read_message(struct logcat *l, struct slice rest, struct log_entry *e)
{
    if (rest.len && rest.p[0] == ' ')
        rest = slice_from(rest, 1);
    const uint8_t *colon = rest.len ? memmem(rest.p, rest.len, ": ", 2) : NULL;
    if (colon) {
        struct slice tag = slice_of(rest.p, (size_t)(colon - rest.p));
        while (tag.len && tag.p[tag.len - 1] == ' ')
            tag.len--;
        e->tag = import_slice(l->im, tag);
        rest = slice_from(rest, (size_t)(colon - rest.p) + 2);
    }
    e->msg = import_slice(l->im, rest);
}

void logcat_line(struct logcat *l, struct slice line, int year)
{
    struct log_entry e = {0};
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    if (line.len < SHORTEST || slice_starts(line, "---"))
        return;
    struct slice rest = line, date = next_word(&rest), time = next_word(&rest);
    int64_t ns, ids[3];
    size_t n = 0;
    struct slice word = next_word(&rest);
    while (n < 3 && number_decimal(word, &ids[n])) {
        n++;
        word = next_word(&rest);
    }
    if (n < 2 && word.len && n < 3) { /* the uid may be a name */
        n = 0;
        while (n < 2 && number_decimal(word = next_word(&rest), &ids[n]))
            n++;
        word = next_word(&rest);
    }
    if (n < 2 || word.len != 1 || !read_when(date, time, year, &ns)) {
        enum stat_key stat = l->is_logcat ? STAT_android_log_num_failed : STAT_android_log_format_invalid;
        stats_add(&l->im->st->stats, l->m->id, stat, 1);
        return;
    }
    l->is_logcat = true;
    e.pid = ids[n - 2];
    e.tid = ids[n - 1];
    e.prio = priority_of(word.p[0]);
    read_message(l, rest, &e);
    int64_t ts;
    if (!file_clock_to_trace_time(l->clock, ns - l->zone_ns, -1, &ts))
        return;
    if (vec_push(&l->entries, e))
        sorter_push(l->im->sorter, l->queue, (struct sort_event){.ts = ts, .a = l->entries.n - 1});
    else
        l->im->failed = true;
}

/* The year of the latest time that any trace has had so far, by the time of day where it is known. */
static int year_so_far(struct importer *im)
{
    const int64_t ns_per_day = INT64_C(86400) * 1000000000;
    struct clock_graph *g = im->clocks;
    struct clock_id real = {.id = CLOCK_ID_REALTIME, .machine = im->input.base_machine, .file = im->input.clock_file};
    int64_t latest = sorter_max_ts(im->sorter), there;
    if (latest > 0 && clock_graph_convert(g, clock_graph_trace_clock(g), latest, real, &there) == 0)
        latest = there;
    int64_t days = latest > 0 ? latest / ns_per_day : 0, year = LOGCAT_FIRST_YEAR + days / 366;
    while (days_of(year + 1, 1, 1) <= days)
        year++;
    return (int)year;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

struct logcat_file {
    struct importer *im;
    struct logcat *log;
    int year;
    struct file_clock clock;
    struct line_reader lines;
};

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    struct logcat_file *f = ctx;
    (void)end;
    (void)in_place;
    logcat_line(f->log, line, f->year);
    return true;
}

static void close_file(void *self)
{
    struct logcat_file *f = self;
    logcat_close(f->log);
    line_reader_free(&f->lines);
    mem_free(f);
}

static void *open_file(struct importer *im)
{
    struct logcat_file *f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    f->im = im;
    f->lines = (struct line_reader){.each = each_line, .ctx = f};
    file_clock_open(&f->clock, im, CLOCK_ID_REALTIME);
    f->year = im->bugreport_year ? im->bugreport_year : year_so_far(im);
    f->log = logcat_open(im, &f->clock);
    if (f->log) {
        logcat_zone(f->log, im->log_zone_ns);
        return f;
    }
    close_file(f);
    return NULL;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct logcat_file *f = self;
    if (!line_reader_feed(&f->lines, bytes) || f->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

static int end_file(void *self, struct error *err)
{
    struct logcat_file *f = self;
    (void)err;
    text_read_end(f->im, &f->lines);
    return 0;
}

const struct format_reader logcat_format_reader = {
    .format = FORMAT_LOGCAT, .open = open_file, .write = write_file, .end = end_file, .close = close_file};
