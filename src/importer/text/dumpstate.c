/* Android's dumpstate, the text in a bug report: its lines by section and service, its logs, its battery statistics. */
#include "importer/clock/file_clock.h"
#include "importer/lines/line_reader.h"
#include "importer/text/battery_stats.h"
#include "importer/text/logcat.h"
#include "importer/text/text_file.h"
#include "importer/text/text_formats.h"

enum section { SECTION_OTHER, SECTION_SERVICES, SECTION_LOG, SECTION_BLOCKS, SECTION_BATTERY };

/* What a section is told by. */
static const struct {
    const char *prefix;
    enum section section;
} sections[] = {
    {"DUMPSYS", SECTION_SERVICES}, {"SYSTEM LOG", SECTION_LOG},    {"EVENT LOG", SECTION_LOG},
    {"RADIO LOG", SECTION_LOG},    {"BLOCK STAT", SECTION_BLOCKS}, {"CHECKIN BATTERYSTATS", SECTION_BATTERY},
};

struct dumpstate {
    struct importer *im;
    struct file_clock clock;
    struct line_reader lines;
    struct logcat *log;
    struct battery_stats *battery;
    enum section section;
    strid section_name, service;
    bool is_alarm; /* the service tells the time zone */
    bool has_zone;
    int64_t zone_ns;
    int year;
    struct arena kept; /* lines of logs: the time zone comes later */
    VEC(struct slice)
    logs;
};

/* ------ TITLE ------; false when the line is none. */
static bool read_section(struct dumpstate *d, struct slice line)
{
    static const char rule[] = "------ ";
    enum { N = sizeof rule - 1 };
    if (line.len < 2 * N || !slice_starts(line, rule) || memcmp(line.p + line.len - N, " ------", N) != 0)
        return false;
    struct slice title = slice_of(line.p + N, line.len - 2 * N);
    d->section = SECTION_OTHER;
    d->section_name = d->service = 0;
    d->is_alarm = false;
    if (title.len && memmem(title.p, title.len, "was the duration of", 19)) /* the end of one */
        return true;
    d->section_name = import_slice(d->im, title);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (slice_starts(title, sections[i].prefix))
            d->section = sections[i].section;
    if (d->section == SECTION_BLOCKS) /* one a device */
        d->section_name = import_str(d->im, "BLOCK STAT");
    return true;
}

/* Lines of a section of services; false for those that only part them. */
static bool read_service(struct dumpstate *d, struct slice line)
{
    static const char end[] = "was the duration of dumpsys";
    if (slice_starts(line, "--------- ") && memmem(line.p, line.len, end, sizeof end - 1)) {
        d->service = 0;
        d->is_alarm = false;
        return false;
    }
    if (!d->service && slice_starts(line, "----------------------------------------"))
        return false;
    if (!slice_starts(line, "DUMP OF SERVICE "))
        return true;
    const uint8_t *space = memrchr(line.p, ' ', line.len);
    struct slice name = slice_from(line, (size_t)(space + 1 - line.p));
    if (name.len && name.p[name.len - 1] == ':')
        name.len--;
    d->service = import_slice(d->im, name);
    d->is_alarm = slice_eq_str(name, "alarm");
    return true;
}

/* nowRTC=MILLISECONDS=YYYY-MM-DD HH:MM:SS.mmm: the date is local time. */
static void read_zone(struct dumpstate *d, struct slice line)
{
    static const char mark[] = "nowRTC=";
    const uint8_t *at = line.len ? memmem(line.p, line.len, mark, sizeof mark - 1) : NULL;
    if (!at || d->has_zone)
        return;
    struct slice rest = slice_from(line, (size_t)(at - line.p) + sizeof mark - 1);
    const uint8_t *equals = rest.len ? memchr(rest.p, '=', rest.len) : NULL;
    int64_t ms, local;
    if (!equals || !number_decimal(slice_to(rest, (size_t)(equals - rest.p)), &ms))
        return;
    rest = slice_from(rest, (size_t)(equals - rest.p) + 1);
    enum { QUARTER_S = 900, DAY_S = 86400 };
    if (!logcat_time(rest, d->year, &local))
        return;
    int64_t seconds = local / 1000000000 - ms / 1000; /* a day at most, and a number of quarters of an hour */
    if (seconds < -DAY_S || seconds > DAY_S)
        return;
    int64_t quarters = (seconds + (seconds < 0 ? -QUARTER_S / 2 : QUARTER_S / 2)) / QUARTER_S;
    d->zone_ns = quarters * QUARTER_S * 1000000000;
    d->has_zone = true;
}

/* == dumpstate: YYYY-MM-DD HH:MM:SS */
static void read_head(struct dumpstate *d, struct slice line)
{
    static const char mark[] = "== dumpstate: ";
    int64_t year;
    if (slice_starts(line, mark) && line.len >= sizeof mark + 3 &&
        number_decimal(slice_of(line.p + sizeof mark - 1, 4), &year))
        d->year = (int)year;
}

static void keep_log(struct dumpstate *d, struct slice line)
{
    const char *copy = arena_strndup(&d->kept, line.p, line.len);
    if (!copy || !vec_push(&d->logs, slice_of(copy, line.len)))
        d->im->failed = true;
}

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    struct dumpstate *d = ctx;
    (void)end;
    (void)in_place;
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    if (read_section(d, line) || (d->section == SECTION_SERVICES && !read_service(d, line)))
        return true;
    if (d->is_alarm)
        read_zone(d, line);
    if (!d->section_name && battery_stats_begins(line)) /* a file of these alone */
        d->section = SECTION_BATTERY;
    else if (!d->section_name)
        read_head(d, line);
    if (d->section == SECTION_LOG)
        keep_log(d, line);
    else if (d->section == SECTION_BATTERY)
        battery_stats_line(d->battery, line);
    android_dumpstate_insert(d->im->st, &(struct android_dumpstate_row){.section = d->section_name,
                                                                        .service = d->service,
                                                                        .line = import_slice(d->im, line)});
    return !d->im->failed;
}

static void close_file(void *self)
{
    struct dumpstate *d = self;
    logcat_close(d->log);
    battery_stats_close(d->battery);
    line_reader_free(&d->lines);
    vec_free(&d->logs);
    arena_free(&d->kept);
    mem_free(d);
}

static void *open_file(struct importer *im)
{
    struct dumpstate *d = mem_zalloc(sizeof *d);
    if (!d)
        return NULL;
    *d = (struct dumpstate){.im = im, .lines = {.each = each_line, .ctx = d}, .year = LOGCAT_FIRST_YEAR};
    if (im->bugreport_year)
        d->year = im->bugreport_year;
    file_clock_open(&d->clock, im, CLOCK_ID_REALTIME);
    d->log = logcat_open(im, &d->clock);
    d->battery = d->log ? battery_stats_open(im, &d->clock) : NULL;
    if (d->battery)
        return d;
    close_file(d);
    return NULL;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct dumpstate *d = self;
    if (!line_reader_feed(&d->lines, bytes) || d->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

static int end_file(void *self, struct error *err)
{
    struct dumpstate *d = self;
    text_read_end(d->im, &d->lines);
    if (d->im->bugreport_year)
        d->im->log_zone_ns = d->zone_ns;
    logcat_zone(d->log, d->zone_ns);
    for (size_t i = 0; i < d->logs.n; i++)
        logcat_line(d->log, d->logs.p[i], d->year);
    return d->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

const struct format_reader dumpstate_format_reader = {
    .format = FORMAT_DUMPSTATE, .open = open_file, .write = write_file, .end = end_file, .close = close_file};
