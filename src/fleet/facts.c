/* What a commit says of its trace. */
#include "fleet/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char question[] =
    "SELECT (SELECT str_value FROM metadata WHERE name = 'trace_uuid' LIMIT 1), "
    "(SELECT clock_value FROM __intrinsic_clock_snapshot WHERE clock_name = 'REALTIME' ORDER BY id LIMIT 1), "
    "(SELECT count(*) FROM __intrinsic_machine), start_ts, end_ts, lost, errors, "
    "(SELECT ifnull(android_build_fingerprint, ifnull(release || ' ', '') || ifnull(version, '')) FROM "
    "__intrinsic_machine ORDER BY id LIMIT 1) FROM _trace_bounds, "
    "(SELECT ifnull(sum(iif(severity = 'data_loss', value, 0)), 0) AS lost, ifnull(sum(iif(severity = 'error', value, "
    "0)), 0) AS errors FROM stats)";

int facts_read(struct facts *f, struct tp *tp, const struct fleet_file *file, struct error *err)
{
    struct tp_result *r;
    *f = (struct facts){0};
    int rc = tp_query(tp, question, &r);
    if (rc == 0)
        rc = tp_step(r);
    if (rc == 1) {
        const char *uuid = tp_text(r, 0, NULL), *build = tp_text(r, 7, NULL);
        int64_t realtime_ns = tp_int64(r, 1);
        snprintf(f->uuid, sizeof f->uuid, "%s", uuid ? uuid : "");
        snprintf(f->build, sizeof f->build, "%s", build ? build : "");
        f->recorded_s = realtime_ns > 0 ? realtime_ns / 1000000000 : file->modified_s;
        f->machines = tp_int64(r, 2);
        f->start_ts = tp_int64(r, 3);
        f->end_ts = tp_int64(r, 4);
        f->lost = tp_int64(r, 5);
        f->errors = tp_int64(r, 6);
    }
    if (rc < 0)
        rc = error_set(err, -MRD_ESQL, "%s", tp_error(tp));
    tp_result_close(r);
    if (f->recorded_s < 0 || f->recorded_s > UINT32_MAX) /* beyond what a DateTime holds */
        f->recorded_s = file->modified_s < 0 || file->modified_s > UINT32_MAX ? 0 : file->modified_s;
    return rc < 0 ? rc : 0;
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
