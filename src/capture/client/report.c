/* Puts the reports of the service into words for the terminal. */
#include "capture/client/report.h"

#include "base/hash.h"
#include "wire/pb_cursor.h"
#include "wire/recording_problem.h"

#include <stdio.h>
#include <string.h>

/* ---- what did not start ---- */

static uint64_t hash_text(struct slice s)
{
    return hash_bytes(s.p, s.len);
}

static uint64_t hash_name(const char *name)
{
    return hash_bytes(name, strlen(name));
}

/* In the short form these two come along with what was asked for. */
static bool is_extra(const struct report *r, const char *name)
{
    return r->short_form && (strcmp(name, "linux.process_stats") == 0 || strcmp(name, "linux.system_info") == 0);
}

static const char *source_name(const struct report *r, size_t i)
{
    const Mrd__DataSourceConfig *c =
        r->config && i < r->config->n_data_sources ? r->config->data_sources[i]->config : NULL;
    return c && c->name ? c->name : "";
}

void report_take(struct report *r, struct slice message)
{
    pb_writer_clear(&r->latest);
    pb_put_raw(&r->latest, message.p, message.len);
    r->has_report = !r->latest.failed;
}

void report_instance(struct report *r, const Mrd__ObservableEvents__DataSourceInstanceStateChange *change)
{
    if (change->data_source_name &&
        change->state == MRD__OBSERVABLE_EVENTS__DATA_SOURCE_INSTANCE_STATE__DATA_SOURCE_INSTANCE_STATE_STARTED)
        u64map_set(&r->started, hash_name(change->data_source_name), 1);
}

static void on_state(void *ctx, bool success, bool has_more, struct slice reply)
{
    enum { SERVICE_STATE = 1, DATA_SOURCES = 2, VERSION = 5, DESCRIPTOR = 1, NAME = 1 };
    struct report *r = ctx;
    struct pb_field state, f, descriptor, name;
    if (!success || !pb_find(reply, SERVICE_STATE, &state))
        return;
    for (struct pb_cursor c = pb_sub(&state); pb_next(&c, &f);) {
        if (f.id == VERSION)
            r->is_foreign = pb_bytes(&f).len < 8 || memcmp(f.p, "Meridian", 8) != 0;
        else if (f.id == DATA_SOURCES && pb_find(pb_bytes(&f), DESCRIPTOR, &descriptor) &&
                 pb_find(pb_bytes(&descriptor), NAME, &name))
            u64map_set(&r->offered, hash_text(pb_bytes(&name)), 1);
    }
    if (!has_more && r->is_foreign)
        report_print(r);
}

void report_ask(struct report *r, struct ipc_client *client)
{
    ipc_client_invoke(client, CONSUMER_QUERY_SERVICE_STATE, slice_of(NULL, 0), -1, on_state, r);
}

static void print_problem(struct report *r, const struct recording_problem *p)
{
    char text[1800];
    recording_problem_text(p, text, sizeof text);
    uint64_t hash = hash_name(text);
    if (u64map_get(&r->printed, hash))
        return;
    u64map_set(&r->printed, hash, 1);
    fprintf(stderr, "perfetto: %s; %s\n", text, recording_problem_cure(p->kind));
}

void report_print(struct report *r)
{
    struct pb_cursor c = pb_cursor(pb_written(&r->latest));
    struct pb_field f;
    struct recording_problem p;
    while (pb_next(&c, &f)) {
        if (f.id != RECORDING_REPORT_PROBLEM)
            continue;
        recording_problem_read(&p, pb_bytes(&f));
        if (p.source.len || p.kind == RECORDING_SILENT || p.kind == RECORDING_EMPTY)
            print_problem(r, &p);
    }
    for (size_t i = 0; r->is_foreign && !r->has_report && r->config && i < r->config->n_data_sources; i++) {
        const char *name = source_name(r, i);
        if (!*name || u64map_get(&r->offered, hash_name(name)) || u64map_get(&r->started, hash_name(name)))
            continue;
        p = (struct recording_problem){.kind = RECORDING_NOT_OFFERED, .source = slice_str(name)};
        print_problem(r, &p);
    }
}

bool report_nothing_started(const struct report *r)
{
    struct pb_cursor c = pb_cursor(pb_written(&r->latest));
    struct pb_field f;
    uint64_t asked = 0, started = 0;
    if (!r->has_report && !r->is_foreign)
        return false;
    for (size_t i = 0; r->config && i < r->config->n_data_sources; i++) {
        const char *name = source_name(r, i);
        bool counts = *name && !is_extra(r, name);
        asked += counts;
        started += counts && !r->has_report && u64map_get(&r->started, hash_name(name));
    }
    while (r->has_report && pb_next(&c, &f)) {
        if (f.id == RECORDING_REPORT_ASKED && !r->config)
            asked = pb_u64(&f);
        if (f.id == RECORDING_REPORT_STARTED && !(r->config && is_extra(r, source_name(r, pb_u32(&f)))))
            started++;
    }
    return asked && !started;
}

/* ---- what was lost ---- */

static const struct {
    uint32_t field;
    const char *text, *cure, *cure_of_file;
} losses[] = {
#define LOSS(field, text, cure, cure_of_file) {field, text, cure, cure_of_file},
#include "capture/client/losses.def"
#undef LOSS
};

struct loss {
    unsigned buffer;
    uint64_t count, missing, size;
};

static void print_filled(const char *text, const struct loss *l)
{
    while (*text) {
        int n = (int)strcspn(text, "{");
        fprintf(stderr, "%.*s", n, text);
        text += n;
        if (strncmp(text, "{buffer}", 8) == 0)
            fprintf(stderr, "%u", l->buffer);
        else if (strncmp(text, "{count}", 7) == 0)
            fprintf(stderr, "%llu", (unsigned long long)l->count);
        else if (strncmp(text, "{missing}", 9) == 0)
            fprintf(stderr, l->missing < 1u << 20 ? "%.1f KB" : "%.1f MB",
                    (double)l->missing / (l->missing < 1u << 20 ? 1024 : 1 << 20));
        else if (strncmp(text, "{size}", 6) == 0)
            fprintf(stderr, "%llu", (unsigned long long)(l->size + l->missing + 1023) / 1024);
        text += strcspn(text, "}");
        text += *text == '}';
    }
}

/* The number of a field of a message; 0 when it is absent. */
static uint64_t number(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_u64(&f) : 0;
}

void report_losses(struct slice trace_stats, bool into_file)
{
    enum { BUFFER_STATS = 1, BUFFER_SIZE = 12, BYTES_OVERWRITTEN = 13 };
    struct pb_cursor c = pb_cursor(trace_stats);
    struct pb_field f;
    unsigned buffer = 0;
    while (pb_next(&c, &f)) {
        if (f.id != BUFFER_STATS)
            continue;
        struct slice stats = pb_bytes(&f);
        struct loss l = {
            .buffer = buffer++, .missing = number(stats, BYTES_OVERWRITTEN), .size = number(stats, BUFFER_SIZE)};
        for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
            l.count = number(stats, losses[i].field);
            if (!l.count)
                continue;
            fprintf(stderr, "perfetto: ");
            print_filled(losses[i].text, &l);
            fprintf(stderr, "; ");
            print_filled(into_file ? losses[i].cure_of_file : losses[i].cure, &l);
            fprintf(stderr, "\n");
        }
    }
}

void report_free(struct report *r)
{
    pb_writer_free(&r->latest);
    u64map_free(&r->offered);
    u64map_free(&r->started);
    u64map_free(&r->printed);
}
