/* What a commit says of its trace. */
#include "fleet/facts.h"
#include "fleet/made_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void take_text(char *out, size_t room, const struct storage *st, int64_t word)
{
    snprintf(out, room, "%s", strpool_cstr(&st->strings, (strid)word));
}

static void read_uuid(struct facts *f, const struct storage *st)
{
    static const char name[] = "trace_uuid";
    const strid key = strpool_find(&st->strings, name, sizeof name - 1);
    for (uint32_t row = 0; key && row < st->t[T_metadata].n_rows; row++) {
        if ((strid)ROW_GET(st, metadata, name, row) != key)
            continue;
        take_text(f->uuid, sizeof f->uuid, st, ROW_GET(st, metadata, str_value, row));
        return;
    }
}

/* What the clock said first; 0: it was not read. */
static int64_t read_realtime(const struct storage *st)
{
    static const char name[] = "REALTIME";
    const strid key = strpool_find(&st->strings, name, sizeof name - 1);
    for (uint32_t row = 0; key && row < st->t[T_clock_snapshot].n_rows; row++)
        if ((strid)ROW_GET(st, clock_snapshot, clock_name, row) == key)
            return ROW_GET(st, clock_snapshot, clock_value, row);
    return 0;
}

/* The fingerprint of Android, else the kernel's release and version. */
static void read_build(struct facts *f, const struct storage *st)
{
    size_t n = 0;
    if (st->t[T_machine].n_rows == 0)
        return;
    take_text(f->build, sizeof f->build, st, ROW_GET(st, machine, android_build_fingerprint, 0));
    if (f->build[0])
        return;
    take_text(f->build, sizeof f->build, st, ROW_GET(st, machine, release, 0));
    n = strlen(f->build);
    if (n && n + 1 < sizeof f->build)
        f->build[n++] = ' ';
    take_text(f->build + n, sizeof f->build - n, st, ROW_GET(st, machine, version, 0));
}

static bool is_date_time(int64_t s) /* does a DateTime hold it? */
{
    return s >= 0 && s <= UINT32_MAX;
}

int facts_read(struct facts *f, const struct storage *st, const struct fleet_file *file, struct error *err)
{
    struct made_losses losses;
    *f = (struct facts){0};
    if (made_losses(&losses, st, -1) < 0)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    read_uuid(f, st);
    read_build(f, st);
    const int64_t realtime_ns = read_realtime(st);
    f->recorded_s = realtime_ns > 0 ? realtime_ns / 1000000000 : file->modified_s;
    if (!is_date_time(f->recorded_s))
        f->recorded_s = is_date_time(file->modified_s) ? file->modified_s : 0;
    f->machines = st->t[T_machine].n_rows;
    f->start_ts = st->trace_start_ns;
    f->end_ts = st->trace_end_ns;
    f->lost = losses.lost;
    f->errors = losses.errors;
    return 0;
}

static struct tm day_of(const struct facts *f)
{
    time_t t = (time_t)f->recorded_s;
    struct tm tm;
    gmtime_r(&t, &tm);
    return tm;
}

int64_t facts_month(const struct facts *f)
{
    struct tm tm = day_of(f);
    return (tm.tm_year + 1900) * 100 + tm.tm_mon + 1;
}

/* ---- a line of TabSeparated ---- */

static void put_escaped(struct click_text *t, const char *text, size_t n, bool quoted)
{
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\t' || c == '\n' || c == '\r')
            click_put(t, c == '\t' ? "\\t" : c == '\n' ? "\\n" : "\\r");
        else
            click_putf(t, "%s%c", c == '\\' || (quoted && c == '\'') ? "\\" : "", c);
    }
}

void facts_put_cell(struct click_text *t, const char *text)
{
    put_escaped(t, text, strlen(text), false);
}

/* The part of each label in front of its '=', or behind it. */
static void put_labels(struct click_text *t, const struct fleet_add *what, bool names)
{
    click_put(t, "\t[");
    for (size_t i = 0; i < what->n_labels; i++) {
        const char *label = what->labels[i], *equals = strchr(label, '=');
        const char *from = names ? label : equals + 1;
        click_put(t, i ? ",'" : "'");
        put_escaped(t, from, names ? (size_t)(equals - label) : strlen(from), true);
        click_put(t, "'");
    }
    click_put(t, "]");
}

static void put_tables(struct click_text *t, const struct facts_table *tables, size_t n)
{
    click_put(t, "\t[");
    for (size_t i = 0; i < n; i++)
        click_putf(t, "%s'%s'", i ? "," : "", tables[i].name);
    click_put(t, "]\t[");
    for (size_t i = 0; i < n; i++)
        click_putf(t, "%s%" PRIu64, i ? "," : "", tables[i].rows);
    click_put(t, "]\t[");
    for (size_t i = 0; i < n; i++)
        click_putf(t, "%s%" PRIu64, i ? "," : "", tables[i].bytes);
    click_put(t, "]");
}

void facts_put_line(struct click_text *t, const struct facts *f, const struct fleet_add *what,
                    const struct fleet_file *file, const char *host, int64_t import_ms,
                    const struct facts_table *tables, size_t n_tables)
{
    const struct tm tm = day_of(f);
    const char *texts[] = {f->uuid, host, file->path, what->build ? what->build : f->build};
    facts_put_cell(t, texts[0]);
    /* Times as ten digits: a DateTime reads them as Unix time in any time zone. */
    click_putf(t, "\t%010" PRId64 "\t%010" PRId64 "\t%04d-%02d-%02d\t", (int64_t)time(NULL), f->recorded_s,
               tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    facts_put_cell(t, texts[1]);
    click_put(t, "\t");
    facts_put_cell(t, texts[2]);
    click_putf(t, "\t%" PRIu64 "\t", file->size);
    facts_put_cell(t, texts[3]);
    put_labels(t, what, true);
    put_labels(t, what, false);
    click_putf(t, "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64, f->machines,
               f->start_ts, f->end_ts, f->lost, f->errors, import_ms);
    put_tables(t, tables, n_tables);
    click_put(t, "\n");
}
