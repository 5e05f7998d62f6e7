/* PerfettoSQL over single recordings of a fleet: the servers beside the files are asked by ClickHouse. */
#include "fleet/per_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    MAX_ADDRESS = 12 << 10,    /* of bytes; the servers take 16 KiB with the rest of the request */
    MAX_TRACES = 32,           /* of one request */
    MAX_BYTES = 256 << 20,     /* of their files */
    MAX_REQUESTS = 8,          /* of one statement */
    PATIENCE_MS = 3600 * 1000, /* that many recordings are imported before an answer comes; --timeout has its place */
};

int perfetto_run(struct perfetto *p, const char *sql, struct slice data, struct error *err)
{
    struct click_server entry = p->f->nodes.p[p->f->entry].server;
    const unsigned ms = entry.limits.user_ms ? entry.limits.user_ms : PATIENCE_MS;
    entry.limits.silence_ms = ms;
    entry.limits.total_ms = ms;
    return click_run(&entry, sql, p->session, data, err);
}

/* ---- which recordings ---- */

static int take_trace(struct perfetto *p, const struct click_rows *rows, struct error *err)
{
    const char *trace = click_cell(rows, 0), *path = click_cell(rows, 2);
    struct place *place = places_at(&p->places, click_cell(rows, 1));
    struct asked *a = place ? vec_add(&p->asked) : NULL;
    if (!a || !(a->path = mem_strdup(path)))
        return fleet_no_memory(err);
    if (strlen(trace) >= sizeof a->trace)
        return error_set(err, -MRD_EFORMAT, "fleet_traces has a trace '%.60s'", trace);
    memcpy(a->trace, trace, strlen(trace) + 1);
    a->size = click_u64(rows, 3);
    a->place = (size_t)(place - p->places.list.p);
    return 0;
}

static int read_traces(struct perfetto *p, struct error *err)
{
    struct click_text sql = {0};
    struct click_rows *rows = NULL;
    click_put(&sql, "SELECT trace, host, path, size FROM fleet_traces");
    if (p->what->condition)
        click_putf(&sql, " WHERE (%s)", p->what->condition);
    click_put(&sql, " ORDER BY host, trace");
    const struct click_server entry = click_patient(&p->f->nodes.p[p->f->entry].server); /* the condition is a user's */
    int rc = sql.bad ? fleet_no_memory(err) : click_query(&entry, click_string(&sql), p->f->settings, &rows, err);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 4, err)) == 1)
        if ((rc = take_trace(p, rows, err)) < 0)
            break;
    click_close(rows);
    click_text_free(&sql);
    if (rc == 0)
        rc = perfetto_index(p, err);
    if (rc == 0 && p->asked.n == 0)
        rc = error_set(err, -MRD_ENOTFOUND, "no recording of the fleet is meant: fleet_traces has none%s",
                       p->what->condition ? " for which --where holds" : "");
    return rc;
}

/* ---- the requests ---- */

/* The rest of an address that asks for recordings from *at on, as many as one request takes; *at moves behind them. */
static int put_request(struct perfetto *p, const char *sql, size_t *at, struct click_text *out)
{
    const size_t place = p->asked.p[*at].place, first = *at;
    uint64_t bytes = 0;
    click_put(out, sql);
    while (*at < p->asked.n && p->asked.p[*at].place == place && *at - first < MAX_TRACES) {
        const struct asked *a = &p->asked.p[*at];
        const size_t before = out->bytes.n;
        click_put(out, "&trace=");
        click_put_encoded(out, a->trace); /* what stands in the fleet anybody may have written */
        click_put(out, "&path=");
        click_put_encoded(out, a->path);
        bytes += a->size;
        if (*at > first && (out->bytes.n > MAX_ADDRESS || bytes > MAX_BYTES)) {
            out->bytes.n = before;
            out->bytes.p[before] = '\0';
            break;
        }
        ++*at;
    }
    return out->bad ? -MRD_ENOMEM : 0;
}

/* Where the recordings of each place begin that have not been asked yet. */
struct cursor {
    size_t at, end;
};

static int put_requests(struct perfetto *p, const char *sql, struct cursor *cursors, struct click_text *out)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->places.list.n; i++) {
        const struct place *place = &p->places.list.p[i];
        for (size_t k = 0; rc == 0 && k < place->sources.n && n < MAX_REQUESTS && cursors[i].at < cursors[i].end; k++) {
            struct click_text rest = {0};
            rc = put_request(p, sql, &cursors[i].at, &rest);
            click_put(out, n++ ? " UNION ALL SELECT * FROM " : "INSERT INTO perfetto_arrived SELECT * FROM ");
            source_put_table(out, p->f, &place->sources.p[k], click_string(&rest));
            click_text_free(&rest);
        }
    }
    return rc < 0 || out->bad ? -MRD_ENOMEM : (int)n;
}

static int ask_all(struct perfetto *p, const char *sql, struct cursor *cursors, struct error *err)
{
    int n = 1, rc = 0;
    for (size_t i = 0; i < p->asked.n; i++) {
        struct cursor *c = &cursors[p->asked.p[i].place];
        c->at = c->end ? c->at : i;
        c->end = i + 1;
    }
    while (rc == 0 && n > 0) {
        struct click_text statement = {0};
        n = put_requests(p, sql, cursors, &statement);
        if (n < 0)
            rc = fleet_no_memory(err);
        else if (n > 0)
            rc = perfetto_run(p, click_string(&statement), slice_of(NULL, 0), err);
        click_text_free(&statement);
    }
    if (rc == -MRD_ESQL)
        error_prefix(err, "asking tp_shell server (http --traces DIR) where the files are");
    return rc;
}

static int ask_places(struct perfetto *p, struct error *err)
{
    struct click_text sql = {0};
    struct cursor *cursors = mem_zalloc((p->places.list.n + 1) * sizeof *cursors);
    click_put(&sql, "/recordings?sql=");
    click_put_encoded(&sql, p->what->sql);
    int rc = !cursors || sql.bad ? fleet_no_memory(err) : 0;
    if (rc == 0 && sql.bytes.n > MAX_ADDRESS - 256)
        rc = error_set(err, -MRD_ELIMIT,
                       "the PerfettoSQL is too long: it has %zu bytes in an address, and %d fit; put what is common "
                       "into modules (tp_shell server --add-sql-package)",
                       sql.bytes.n, MAX_ADDRESS - 256);
    if (rc == 0)
        rc = ask_all(p, click_string(&sql), cursors, err);
    click_text_free(&sql);
    mem_free(cursors);
    return rc;
}

/* ---- all of it ---- */

static int begin_session(struct perfetto *p, struct error *err)
{
    uint64_t number[2];
    if (getrandom(number, sizeof number, 0) != sizeof number)
        return error_set(err, -MRD_EIO, "the kernel gives no random numbers");
    snprintf(p->session, sizeof p->session, "&session_id=%016" PRIx64 "%016" PRIx64, number[0], number[1]);
    return perfetto_run(p,
                        "CREATE TEMPORARY TABLE perfetto_arrived (trace String, row UInt64, ended Nullable(String), "
                        "kinds String, cells Array(Nullable(String)))",
                        slice_of(NULL, 0), err);
}

static int ask_for_result(struct perfetto *p, struct tp *tp, struct tp_result **out, struct error *err)
{
    const char *sql = p->what->then ? p->what->then : "SELECT * FROM perfetto ORDER BY trace, row";
    struct click_text settings = {0};
    const struct click_server entry = click_for_users(&p->f->nodes.p[p->f->entry].server);
    struct click_rows *rows = NULL;
    click_putf(&settings, "%s%s", p->f->settings, p->session);
    int rc = settings.bad ? fleet_no_memory(err) : click_query(&entry, sql, click_string(&settings), &rows, err);
    click_text_free(&settings);
    if (rc == 0 && tp_result_of(tp, &click_source, rows, out) < 0) {
        click_close(rows);
        return fleet_no_memory(err);
    }
    return rc;
}

int fleet_perfetto(struct fleet *f, struct tp *tp, const struct fleet_perfetto *what, struct tp_result **out,
                   size_t *failed, struct error *err)
{
    struct perfetto p = {.f = f, .what = what};
    *out = NULL;
    int rc = read_traces(&p, err);
    if (rc == 0)
        rc = places_find(&p.places, f, what->files, what->n_files, err);
    if (rc == 0)
        rc = begin_session(&p, err);
    if (rc == 0)
        rc = ask_places(&p, err);
    if (rc == 0)
        rc = perfetto_judge(&p, err);
    if (rc == 0)
        rc = perfetto_make_table(&p, err);
    if (rc == 0)
        rc = ask_for_result(&p, tp, out, err);
    *failed = p.failed;
    for (size_t i = 0; i < p.asked.n; i++)
        mem_free(p.asked.p[i].path);
    vec_free(&p.asked);
    mem_free(p.by_trace);
    places_free(&p.places);
    mem_free(p.names);
    mem_free(p.kinds);
    return rc;
}
