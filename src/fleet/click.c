/* Asks a ClickHouse server over HTTP. */
#include "fleet/click.h"
#include "fleet/separated.h"

#include "base/clock.h"
#include "rpc/link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_PORT = 8123 };

const struct click_limits click_usual_limits = {
    .silence_ms = 300 * 1000, .total_ms = 1800 * 1000, .bytes = 256 << 20, .rows = 4 << 20};

struct click_server click_patient(const struct click_server *s)
{
    struct click_server patient = *s;
    patient.limits.patient = true;
    return patient;
}

struct click_server click_for_users(const struct click_server *s)
{
    struct click_server users = click_patient(s);
    users.limits.by_row = true;
    return users;
}

/* Addresses come from servers, too, and stand in requests to others. */
static bool is_host(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f || strchr("'\"`\\@", text[i]))
            return false;
    return n > 0 && n <= 128;
}

int click_parse(struct click_server *s, const char *address, struct error *err)
{
    static const char scheme[] = "http://";
    const char *host = strncmp(address, scheme, sizeof scheme - 1) == 0 ? address + sizeof scheme - 1 : address;
    size_t n = strcspn(host, "/?# ");
    if (strncmp(address, "https://", 8) == 0)
        return error_set(err, -MRD_EUNSUPPORTED,
                         "%s: https is not supported; forward a port: ssh -L 8123:localhost:8123 HOST", address);
    if (!is_host(host, n) || (host[n] && strcmp(host + n, "/") != 0))
        return error_set(err, -MRD_EINVALID, "invalid server '%.150s': use http://HOST:PORT", address);
    const char *colon = memrchr(host, ':', n), *bracket = memrchr(host, ']', n);
    bool has_port = colon && (!bracket || colon > bracket);
    if (has_port)
        snprintf(s->url, sizeof s->url, "http://%.*s", (int)n, host);
    else
        snprintf(s->url, sizeof s->url, "http://%.*s:%d", (int)n, host, DEFAULT_PORT);
    return 0;
}

/* ---- texts ---- */

static void put_bytes(struct click_text *t, const char *p, size_t n)
{
    if (t->bad || !vec_reserve(&t->bytes, t->bytes.n + n + 1)) {
        t->bad = true;
        return;
    }
    if (n)
        memcpy(t->bytes.p + t->bytes.n, p, n);
    t->bytes.n += n;
    t->bytes.p[t->bytes.n] = '\0';
}

void click_put(struct click_text *t, const char *text)
{
    put_bytes(t, text, strlen(text));
}

void click_putf(struct click_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (t->bad || n < 0 || !vec_reserve(&t->bytes, t->bytes.n + (size_t)n + 1)) {
        t->bad = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(t->bytes.p + t->bytes.n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->bytes.n += (size_t)n;
}

void click_put_quoted(struct click_text *t, const char *text, size_t n)
{
    put_bytes(t, "'", 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'' || text[i] == '\\')
            put_bytes(t, "\\", 1);
        put_bytes(t, text + i, 1);
    }
    put_bytes(t, "'", 1);
}

void click_put_encoded(struct click_text *t, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-')
            put_bytes(t, text, 1);
        else
            click_putf(t, "%%%02X", c);
    }
}

const char *click_string(const struct click_text *t)
{
    return t->bad || !t->bytes.p ? "" : t->bytes.p;
}

void click_text_free(struct click_text *t)
{
    vec_free(&t->bytes);
}

/* ---- requests ---- */

/* Header values are lines: what would end one is left out. */
static void put_header(struct click_text *t, const char *name, const char *value)
{
    click_putf(t, "%s: ", name);
    for (; *value; value++)
        if ((unsigned char)*value >= 0x20)
            put_bytes(t, value, 1);
    click_put(t, "\r\n");
}

static void put_head(struct click_text *t, const struct click_server *s, const char *sql, const char *settings,
                     bool in_address)
{
    click_put(t, "POST /?wait_end_of_query=1&buffer_size=4194304"); /* in memory: its disk may be full */
    click_put(t, settings ? settings : "");
    if (s->limits.patient && s->limits.user_ms) /* so that the server ends it, too */
        click_putf(t, "&max_execution_time=%u", (s->limits.user_ms + 999) / 1000);
    if (in_address) {
        click_put(t, "&query=");
        click_put_encoded(t, sql);
    }
    click_put(t, " HTTP/1.1\r\nConnection: close\r\n");
    if (s->user)
        put_header(t, "X-ClickHouse-User", s->user);
    if (s->password)
        put_header(t, "X-ClickHouse-Key", s->password);
}

/* "Code: 60, e.displayText() = DB::Exception: Table x does not exist., e.what() = DB::Exception": the middle of it. */
static int refused(const struct click_server *s, struct link *l, struct error *err)
{
    struct click_text text = {0};
    struct slice piece;
    struct error why = {0};
    int more = 1;
    while (text.bytes.n < 4096 && (more = link_read(l, &piece, &why)) == 1)
        put_bytes(&text, (const char *)piece.p, piece.len);
    const char *whole = click_string(&text), *at = strstr(whole, "DB::Exception: ");
    at = at ? at + strlen("DB::Exception: ") : whole;
    const char *end = strstr(at, ", e.what()");
    size_t n = end ? (size_t)(end - at) : strcspn(at, "\n");
    int rc = n ? error_set(err, -MRD_ESQL, "%s: %.*s", s->url, (int)(n < 400 ? n : 400), at)
             : more == -MRD_ETIMEOUT /* it ends the statement at the same time */
                 ? error_set(err, more, "%s: %s", s->url, why.text)
                 : error_set(err, -MRD_ESQL, "%s: %s", s->url, l->reason);
    click_text_free(&text);
    return rc;
}

static int64_t from_now(unsigned ms)
{
    return clock_now_ns(CLOCK_MONOTONIC) + ms * INT64_C(1000000);
}

/* Until the answer begins. */
static int64_t first_deadline(const struct click_limits *limits)
{
    return !limits->patient ? from_now(limits->total_ms) : limits->user_ms ? from_now(limits->user_ms) : 0;
}

/* What the rest of it, or the next row, may take; `first`: the deadline that it began with. */
static int64_t next_deadline(const struct click_limits *limits, int64_t first)
{
    const int64_t next = from_now(limits->total_ms);
    return first && first < next ? first : next;
}

/* Sends the statement; the answer's body is to be read when it went well. `l` has the deadline of the answer's
 * beginning. */
static int request(struct link *l, const struct click_server *s, const char *sql, const char *settings,
                   const struct slice *data, size_t n, struct error *err)
{
    struct click_text head = {0};
    const struct slice text = slice_str(sql);
    l->timeout_ms = s->limits.silence_ms;
    l->patient = s->limits.patient;
    put_head(&head, s, sql, settings, n > 0);
    int rc = head.bad ? error_set(err, -MRD_ENOMEM, "out of memory") : link_open(l, s->url, err);
    if (rc < 0 && !head.bad)
        rc = error_prefix(err, "no ClickHouse server answers there (--server names another)");
    if (rc == 0)
        rc = link_request_pieces(l, click_string(&head), n ? data : &text, n ? n : 1, err);
    click_text_free(&head);
    if (rc < 0)
        return error_prefix(err, "%s", s->url);
    l->deadline_ns = next_deadline(&s->limits, l->deadline_ns);
    return l->status == 200 ? 0 : refused(s, l, err);
}

/* Whoever reads the answer puts the server's address in front. */
static int too_long(const struct click_limits *limits, struct error *err)
{
    return error_set(err, -MRD_ELIMIT, "%s is longer than %" PRIu64 " MiB", limits->by_row ? "a row" : "an answer",
                     limits->bytes >> 20);
}

/* The answer goes to `out`, or nowhere. */
static int exchange(const struct click_server *s, const char *sql, const char *settings, const struct slice *data,
                    size_t n, struct click_text *out, struct error *err)
{
    struct link *l = mem_zalloc(sizeof *l);
    if (!l)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    l->fd = -1;
    l->deadline_ns = first_deadline(&s->limits);
    int rc = request(l, s, sql, settings, data, n, err), more = 1;
    struct slice piece;
    uint64_t bytes = 0;
    while (rc == 0 && more == 1) {
        more = link_read(l, &piece, err);
        bytes += piece.len;
        if (bytes > s->limits.bytes)
            more = too_long(&s->limits, err);
        else if (out)
            put_bytes(out, (const char *)piece.p, piece.len);
    }
    if (rc == 0 && more < 0)
        rc = error_prefix(err, "%s", s->url);
    if (rc == 0 && out && out->bad)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    link_close(l);
    mem_free(l);
    return rc;
}

int click_run(const struct click_server *s, const char *sql, const char *settings, struct slice data, struct error *err)
{
    return exchange(s, sql, settings, &data, data.p != NULL, NULL, err);
}

int click_insert(const struct click_server *s, const char *sql, const struct slice *pieces, size_t n, struct error *err)
{
    return exchange(s, sql, NULL, pieces, n, NULL, err);
}

int click_fetch(const struct click_server *s, const char *sql, struct click_text *out, struct error *err)
{
    return exchange(s, sql, NULL, NULL, 0, out, err);
}

/* ---- rows ---- */

struct click_rows {
    char url[sizeof((struct click_server *)NULL)->url]; /* the caller's server may be gone before the last row */
    struct link link;
    struct separated rows;
    struct click_limits limits;
    int64_t first_ns;  /* the deadline that it began with; 0: none */
    uint64_t bytes, n; /* of the answer so far, or of the row at hand (limits.by_row) */
};

static int more_of_link(void *ctx, struct slice *piece, struct error *err)
{
    struct click_rows *r = ctx;
    int rc = link_read(&r->link, piece, err);
    r->bytes += rc == 1 ? piece->len : 0;
    return r->bytes <= r->limits.bytes ? rc : too_long(&r->limits, err);
}

int click_query(const struct click_server *s, const char *sql, const char *settings, struct click_rows **out,
                struct error *err)
{
    struct click_text with = {0};
    struct click_rows *r = *out = mem_zalloc(sizeof *r);
    click_put(&with, "&default_format=TabSeparatedWithNamesAndTypes");
    click_put(&with, settings ? settings : "");
    if (r)
        r->link.fd = -1;
    int rc = r && !with.bad ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0) {
        r->rows = (struct separated){.more = more_of_link, .ctx = r, .from = r->url};
        memcpy(r->url, s->url, sizeof r->url);
        r->limits = s->limits;
        r->link.deadline_ns = r->first_ns = first_deadline(&s->limits);
        rc = request(&r->link, s, sql, click_string(&with), NULL, 0, err);
    }
    if (rc == 0)
        rc = separated_begin(&r->rows, err);
    click_text_free(&with);
    if (rc < 0) {
        click_close(r);
        *out = NULL;
    }
    return rc;
}

int click_step(struct click_rows *r, struct error *err)
{
    if (r->limits.by_row) {
        r->bytes = 0;
        r->link.deadline_ns = next_deadline(&r->limits, r->first_ns);
    } else if (r->n++ > r->limits.rows) {
        return error_set(err, -MRD_ELIMIT, "%s: an answer has more than %" PRIu64 " rows", r->rows.from,
                         r->limits.rows);
    }
    return separated_next(&r->rows, err);
}

int click_step_whole(struct click_rows *r, int cells, struct error *err)
{
    int rc = click_step(r, err);
    for (int i = 0; rc == 1 && i < cells; i++)
        if (i >= click_columns(r) || !click_cell(r, i))
            rc = error_set(err, -MRD_EFORMAT, "%s: an answer lacks its cell %d; is this a ClickHouse server?",
                           r->rows.from, i + 1);
    return rc;
}

int click_columns(const struct click_rows *r)
{
    return (int)r->rows.names.n;
}

const char *click_cell(const struct click_rows *r, int column)
{
    return separated_cell(&r->rows, column);
}

uint64_t click_u64(const struct click_rows *r, int column)
{
    const char *text = click_cell(r, column);
    return text ? strtoull(text, NULL, 10) : 0;
}

void click_close(struct click_rows *r)
{
    if (!r)
        return;
    link_close(&r->link);
    separated_free(&r->rows);
    mem_free(r);
}

int click_one(const struct click_server *s, const char *sql, char *out, size_t room, struct error *err)
{
    struct click_rows *r;
    out[0] = '\0';
    int rc = click_query(s, sql, NULL, &r, err);
    if (rc == 0 && (rc = click_step(r, err)) == 1) {
        const char *cell = click_cell(r, 0);
        snprintf(out, room, "%s", cell ? cell : "");
    }
    click_close(r);
    return rc < 0 ? rc : 0;
}

/* ---- as a result of the public API ---- */

static int source_columns(const void *rows)
{
    return click_columns(rows);
}

static const char *source_name(const void *rows, int column)
{
    return ((const struct click_rows *)rows)->rows.names.p[column];
}

static int source_step(void *rows, struct error *err)
{
    return click_step(rows, err);
}

/* Numbers of UInt64 that no int64 holds stay texts. */
static bool is_integer(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return *text && !*end && errno == 0;
}

static enum tp_type source_type(const void *rows, int column)
{
    const struct click_rows *r = rows;
    const char *text = click_cell(r, column);
    int64_t v;
    if (!text)
        return TP_NULL;
    if (r->rows.kinds.p[column] == CELL_INTEGER)
        return is_integer(text, &v) ? TP_INT64 : TP_TEXT;
    return r->rows.kinds.p[column] == CELL_DOUBLE ? TP_DOUBLE : TP_TEXT;
}

static int64_t source_int64(const void *rows, int column)
{
    const char *text = click_cell(rows, column);
    int64_t v = 0;
    return text && is_integer(text, &v) ? v : 0;
}

static double source_double(const void *rows, int column)
{
    const char *text = click_cell(rows, column);
    return text ? strtod(text, NULL) : 0;
}

static const char *source_bytes(void *rows, int column, size_t *len)
{
    const struct click_rows *r = rows;
    const char *text = click_cell(r, column);
    if (len)
        *len = text ? r->rows.sizes.p[column] : 0;
    return text;
}

static void source_close(void *rows)
{
    click_close(rows);
}

const struct row_source click_source = {source_columns, source_name,   source_step,  source_type,
                                        source_int64,   source_double, source_bytes, source_close};
