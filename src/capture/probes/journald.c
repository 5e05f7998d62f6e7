/* The data source linux.systemd_journald: new entries of the systemd journal, as they come.
 *
 * libsystemd is opened at run time, so that the recorder runs on machines without it; there the data source says so in
 * the log and records nothing. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct sd_journal sd_journal;
typedef struct {
    uint8_t bytes[16];
} boot_id;

/* The functions of libsystemd in use: name, result, arguments. */
#define JOURNAL_FUNCTIONS(X)                                                                                           \
    X(open, int, (sd_journal * *j, int flags))                                                                         \
    X(open_directory, int, (sd_journal * *j, const char *path, int flags))                                             \
    X(close, void, (sd_journal * j))                                                                                   \
    X(seek_tail, int, (sd_journal * j))                                                                                \
    X(previous, int, (sd_journal * j))                                                                                 \
    X(next, int, (sd_journal * j))                                                                                     \
    X(get_fd, int, (sd_journal * j))                                                                                   \
    X(process, int, (sd_journal * j))                                                                                  \
    X(get_data, int, (sd_journal * j, const char *field, const void **data, size_t *length))                           \
    X(get_monotonic_usec, int, (sd_journal * j, uint64_t * usec, boot_id * boot))

struct journal_api {
    void *library;
#define X(name, result, args) result(*name) args;
    JOURNAL_FUNCTIONS(X)
#undef X
};

typedef VEC(char *) text_list;

enum { LOCAL_ONLY = 1, PRIORITY_ALL = 7, BATCH = 1000, RETRY_MS = 250 };

struct journald {
    const struct probes_host *host;
    struct packet_sink sink;
    struct journal_api api;
    sd_journal *journal;
    uint32_t min_prio; /* entries of this or a more urgent (smaller) priority */
    VEC(char *)
    identifiers, units;
    uint64_t n_total, n_failed;
    uv_poll_t *poll;
    uv_timer_t *timer; /* the journal may grow without telling: looked at four times a second */
    struct pb_writer w;
};

/* ---- entries ---- */

/* The value of a field, without its "NAME=". */
static bool get(struct journald *s, const char *field, struct slice *value)
{
    const void *data;
    size_t len, skip = strlen(field) + 1;
    if (s->api.get_data(s->journal, field, &data, &len) < 0 || len < skip)
        return false;
    *value = slice_of((const uint8_t *)data + skip, len - skip);
    return true;
}

static bool get_number(struct journald *s, const char *field, uint64_t *number)
{
    struct slice v;
    char text[32], *end;
    if (!get(s, field, &v) || v.len >= sizeof text)
        return false;
    memcpy(text, v.p, v.len);
    text[v.len] = 0;
    *number = strtoull(text, &end, 10);
    return end != text;
}

static bool listed(char *const *list, size_t n, bool have, struct slice value)
{
    bool found = n == 0;
    for (size_t i = 0; i < n && have; i++)
        found |= slice_eq_str(value, list[i]);
    return found;
}

/* Journal entries carry the monotonic clock; packets carry the boot clock, which has run on while the machine slept. */
static bool timestamp_of(struct journald *s, uint64_t *timestamp)
{
    uint64_t usec;
    boot_id boot;
    if (s->api.get_monotonic_usec(s->journal, &usec, &boot) < 0)
        return false;
    int64_t ns = (int64_t)usec * 1000 + clock_now_ns(CLOCK_BOOTTIME) - clock_now_ns(CLOCK_MONOTONIC);
    *timestamp = ns > 0 ? (uint64_t)ns : 0;
    return true;
}

static void put_entry(struct journald *s)
{
    static const struct {
        uint32_t field;
        const char *name;
        bool is_number;
    } rows[] = {
        {SYSTEMD_JOURNALD_EVENT_PID, "_PID", true},
        {SYSTEMD_JOURNALD_EVENT_TID, "TID", true},
        {SYSTEMD_JOURNALD_EVENT_UID, "_UID", true},
        {SYSTEMD_JOURNALD_EVENT_GID, "_GID", true},
        {SYSTEMD_JOURNALD_EVENT_PRIO, "PRIORITY", true},
        {SYSTEMD_JOURNALD_EVENT_TAG, "SYSLOG_IDENTIFIER", false},
        {SYSTEMD_JOURNALD_EVENT_MESSAGE, "MESSAGE", false},
        {SYSTEMD_JOURNALD_EVENT_COMM, "_COMM", false},
        {SYSTEMD_JOURNALD_EVENT_EXE, "_EXE", false},
        {SYSTEMD_JOURNALD_EVENT_SYSTEMD_UNIT, "_SYSTEMD_UNIT", false},
        {SYSTEMD_JOURNALD_EVENT_HOSTNAME, "_HOSTNAME", false},
        {SYSTEMD_JOURNALD_EVENT_TRANSPORT, "_TRANSPORT", false},
    };
    struct slice identifier = {0}, unit = {0}, text;
    uint64_t timestamp, number, prio = PRIORITY_ALL;
    bool has_identifier = get(s, "SYSLOG_IDENTIFIER", &identifier);
    if (!listed(s->identifiers.p, s->identifiers.n, has_identifier, identifier))
        return;
    bool has_unit = get(s, "_SYSTEMD_UNIT", &unit);
    if (!listed(s->units.p, s->units.n, has_unit, unit))
        return;
    if (get_number(s, "PRIORITY", &prio) && prio > s->min_prio)
        return;
    s->n_total++;
    if (!timestamp_of(s, &timestamp)) {
        s->n_failed++;
        return;
    }
    pb_writer_clear(&s->w);
    s->w.failed = false;
    pb_put_varint(&s->w, TRACE_PACKET_TIMESTAMP, timestamp);
    size_t message = pb_begin(&s->w, TRACE_PACKET_JOURNALD_EVENT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_number && get_number(s, rows[i].name, &number))
            pb_put_varint(&s->w, rows[i].field, number);
        else if (!rows[i].is_number && get(s, rows[i].name, &text))
            pb_put_bytes(&s->w, rows[i].field, text.p, text.len);
    }
    pb_end(&s->w, message);
    if (s->w.failed)
        s->n_failed++;
    else
        packet_sink_write(&s->sink, pb_written(&s->w));
}

static void read_new(struct journald *s)
{
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    s->api.process(s->journal);
    for (int i = 0; i < BATCH && s->api.next(s->journal) > 0; i++)
        put_entry(s);
    metatrace_end(s->host->metatrace, span, "journald");
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    read_new(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    read_new(timer->data);
}

/* ---- life ---- */

static bool load_api(struct journal_api *api)
{
    api->library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!api->library)
        return false;
    bool ok = true;
    /* POSIX gives functions through a void pointer; copying the bytes is the way that C allows */
#define X(name, result, args)                                                                                          \
    do {                                                                                                               \
        void *symbol = dlsym(api->library, "sd_journal_" #name);                                                       \
        memcpy(&api->name, &symbol, sizeof symbol);                                                                    \
        ok &= symbol != NULL;                                                                                          \
    } while (0);
    JOURNAL_FUNCTIONS(X)
#undef X
    return ok;
}

static void add_text(void *list, const struct pb_field *f)
{
    VEC(char *)
    *texts = list;
    struct slice v = pb_bytes(f);
    char *text = mem_strndup(v.p ? (const char *)v.p : "", v.len);
    if (text && !vec_push(texts, text))
        mem_free(text);
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct pb_cursor c = pb_cursor(config->specific);
    struct pb_field f;
    struct journald *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for journald");
    s->host = host;
    s->sink = *sink;
    s->min_prio = PRIORITY_ALL;
    while (pb_next(&c, &f)) {
        if (f.id == SYSTEMD_JOURNALD_CONFIG_MIN_PRIO)
            s->min_prio = pb_u32(&f);
        else if (f.id == SYSTEMD_JOURNALD_CONFIG_FILTER_IDENTIFIERS)
            add_text(&s->identifiers, &f);
        else if (f.id == SYSTEMD_JOURNALD_CONFIG_FILTER_UNITS)
            add_text(&s->units, &f);
    }
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct journald *s = state;
    const char *directory = getenv("MERIDIAN_JOURNAL_DIRECTORY"); /* another journal than this machine's */
    if (!load_api(&s->api))
        return error_set(err, -MRD_EUNSUPPORTED, "libsystemd.so.0 is not on this machine");
    int rc = directory ? s->api.open_directory(&s->journal, directory, 0) : s->api.open(&s->journal, LOCAL_ONLY);
    if (rc < 0)
        return error_set_errno(err, -rc, "opening the journal");
    s->api.seek_tail(s->journal);
    s->api.previous(s->journal); /* the position is between entries only after a step; what is there is not new */
    s->timer = probes_timer_new(s->host->loop, s);
    if (!s->timer)
        return error_set(err, -MRD_ENOMEM, "out of memory for journald");
    uv_timer_start(s->timer, on_timer, RETRY_MS, RETRY_MS);
    int fd = s->api.get_fd(s->journal);
    s->poll = fd < 0 ? NULL : mem_zalloc(sizeof *s->poll);
    if (!s->poll || uv_poll_init(s->host->loop, s->poll, fd)) {
        mem_free(s->poll); /* the timer does it alone */
        s->poll = NULL;
        return 0;
    }
    s->poll->data = s;
    uv_poll_start(s->poll, UV_READABLE, on_poll);
    return 0;
}

static void flush(void *state)
{
    struct journald *s = state;
    if (!s->timer)
        return;
    read_new(s);
    pb_writer_clear(&s->w);
    s->w.failed = false;
    pb_put_varint(&s->w, TRACE_PACKET_TIMESTAMP, probes_boot_ns());
    size_t message = pb_begin(&s->w, TRACE_PACKET_JOURNALD_EVENT);
    pb_put_varint(&s->w, SYSTEMD_JOURNALD_EVENT_NUM_TOTAL, s->n_total);
    pb_put_varint(&s->w, SYSTEMD_JOURNALD_EVENT_NUM_FAILED, s->n_failed);
    pb_end(&s->w, message);
    if (!s->w.failed)
        packet_sink_write(&s->sink, pb_written(&s->w));
}

static void stop(void *state)
{
    struct journald *s = state;
    flush(s);
    if (s->poll)
        uv_poll_stop(s->poll);
    if (s->timer)
        uv_timer_stop(s->timer);
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

static void free_list(void *list)
{
    VEC(char *)
    *texts = list;
    for (size_t i = 0; i < texts->n; i++)
        mem_free(texts->p[i]);
    vec_free(texts);
}

static void free_state(void *state)
{
    struct journald *s = state;
    if (s->poll)
        uv_close((uv_handle_t *)s->poll, free_handle);
    probes_timer_free(s->timer);
    if (s->journal)
        s->api.close(s->journal);
    if (s->api.library)
        dlclose(s->api.library);
    free_list(&s->identifiers);
    free_list(&s->units);
    pb_writer_free(&s->w);
    mem_free(s);
}

const struct data_source_type journald_data_source = {
    .name = "linux.systemd_journald",
    .config_field = 141,
    .setup = setup,
    .start = start,
    .flush = flush,
    .stop = stop,
    .free = free_state,
};
