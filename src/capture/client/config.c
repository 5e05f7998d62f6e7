/* Where the trace config comes from: a file in binary or text form, or a few words on the command line. */
#include "base/alloc.h"
#include "base/file.h"
#include "capture/client/perfetto.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/text_format.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONFIG_BYTES (16u << 20)

static const char test_config[] =
    "buffers { size_kb: 1024 fill_policy: RING_BUFFER }\n"
    "duration_ms: 5000\n"
    "data_sources { config { name: \"linux.ftrace\" ftrace_config {\n"
    "  ftrace_events: \"sched/sched_switch\" ftrace_events: \"sched/sched_waking\" } } }\n"
    "data_sources { config { name: \"linux.process_stats\" } }\n";

/* A number with a unit of the table. */
struct unit {
    const char *name;
    uint64_t factor;
};

static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    unsigned long long v = strtoull(text, &end, 10);
    for (; units->name; units++) {
        if (strcasecmp(end, units->name) == 0 && v <= UINT64_MAX / units->factor) {
            *out = v * units->factor;
            return true;
        }
    }
    return v == 0 && !*end && (*out = 0, true);
}

static bool parse_time_ms(const char *text, uint64_t *ms)
{
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {0}};
    return parse_with_unit(text, units, ms);
}

static bool parse_size(const char *text, uint64_t *bytes)
{
    static const struct unit units[] = {
        {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {0}};
    return parse_with_unit(text, units, bytes);
}

static void put_source(struct pb_writer *w, const char *name, struct slice extra)
{
    size_t ds = pb_begin(w, TRACE_CONFIG_DATA_SOURCES), config = pb_begin(w, TRACE_CONFIG_DATA_SOURCE_CONFIG);
    pb_put_str(w, DATA_SOURCE_CONFIG_NAME, name);
    pb_put_varint(w, DATA_SOURCE_CONFIG_TARGET_BUFFER, 0);
    pb_put_raw(w, extra.p, extra.len);
    pb_end(w, config);
    pb_end(w, ds);
}

/* The linux.ftrace source: words with a '/' are events, the rest atrace categories. */
static void put_ftrace(const struct perfetto_options *o, struct pb_writer *w, bool hypervisor)
{
    struct pb_writer x = {0};
    size_t m = pb_begin(&x, DATA_SOURCE_CONFIG_FTRACE_CONFIG);
    unsigned n = 0;
    for (size_t i = 0; i < o->categories.n; i++) {
        const char *c = o->categories.p[i];
        bool hyp = strcmp(c, "hyp") == 0 || strcmp(c, "hypervisor") == 0;
        if (hyp != hypervisor)
            continue;
        n++;
        if (!hyp)
            pb_put_str(&x, strchr(c, '/') ? FTRACE_CONFIG_FTRACE_EVENTS : FTRACE_CONFIG_ATRACE_CATEGORIES, c);
        else
            pb_put_str(&x, FTRACE_CONFIG_FTRACE_EVENTS, "hyp/*");
    }
    for (size_t i = 0; i < o->apps.n && !hypervisor; i++, n++)
        pb_put_str(&x, FTRACE_CONFIG_ATRACE_APPS, o->apps.p[i]);
    pb_put_varint(&x, FTRACE_CONFIG_SYMBOLIZE_KSYMS, 1);
    if (o->full_switches) {
        size_t compact = pb_begin(&x, FTRACE_CONFIG_COMPACT_SCHED);
        pb_put_varint(&x, FTRACE_CONFIG_COMPACT_SCHED_CONFIG_ENABLED, 0);
        pb_end(&x, compact);
    }
    if (hypervisor)
        pb_put_str(&x, FTRACE_CONFIG_INSTANCE_NAME, "hyp");
    pb_end(&x, m);
    if (n)
        put_source(w, "linux.ftrace", pb_written(&x));
    w->failed |= x.failed;
    pb_writer_free(&x);
}

int perfetto_light_config(const struct perfetto_options *o, struct pb_writer *w, struct error *err)
{
    uint64_t ms = 10000, buffer = 32u << 20, size = 0;
    if (o->time && (!parse_time_ms(o->time, &ms) || ms > UINT32_MAX))
        return error_set(err, -MRD_EINVALID, "--time %s: expected a number with ms, s, m or h", o->time);
    if (o->buffer && (!parse_size(o->buffer, &buffer) || buffer < 1024 || buffer >> 10 > UINT32_MAX))
        return error_set(err, -MRD_EINVALID, "--buffer %s: expected a number with kb, mb or gb", o->buffer);
    if (o->size && !parse_size(o->size, &size))
        return error_set(err, -MRD_EINVALID, "--size %s: expected a number with kb, mb or gb", o->size);
    size_t b = pb_begin(w, TRACE_CONFIG_BUFFERS);
    pb_put_varint(w, TRACE_CONFIG_BUFFER_CONFIG_SIZE_KB, buffer >> 10);
    pb_end(w, b);
    pb_put_varint(w, TRACE_CONFIG_DURATION_MS, ms);
    pb_put_varint(w, TRACE_CONFIG_FLUSH_PERIOD_MS, 30000);
    if (size) {
        pb_put_varint(w, TRACE_CONFIG_WRITE_INTO_FILE, 1);
        pb_put_varint(w, TRACE_CONFIG_MAX_FILE_SIZE_BYTES, size);
    }
    put_ftrace(o, w, false);
    put_ftrace(o, w, true);
    if (o->standard_sources) {
        put_source(w, "linux.process_stats", slice_of(NULL, 0));
        put_source(w, "linux.system_info", slice_of(NULL, 0));
    }
    int rc = o->sources ? text_parse(&mrd__trace_config__descriptor, slice_str(o->sources), 0, w, err) : 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < o->categories.n; i++) {
        struct pb_writer x = {0};
        if (strcmp(o->categories.p[i], "disk") == 0) {
            size_t m = pb_begin(&x, DATA_SOURCE_CONFIG_SYS_STATS_CONFIG);
            pb_put_varint(&x, SYS_STATS_CONFIG_DISKSTAT_PERIOD_MS, 1000);
            pb_end(&x, m);
            put_source(w, "linux.sys_stats", pb_written(&x));
        } else if (strcmp(o->categories.p[i], "gfx") == 0) {
            put_source(w, "android.surfaceflinger.frametimeline", slice_of(NULL, 0));
        }
        w->failed |= x.failed;
        pb_writer_free(&x);
    }
    return w->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static bool looks_like_text(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)p[i]) && !isspace((unsigned char)p[i]))
            return false;
    return n > 0;
}

static int unpack(struct slice bytes, Mrd__TraceConfig **out, struct error *err)
{
    /* protobuf-c takes anything that is well-formed, so the form is looked at first */
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f))
        ;
    *out = c.bad ? NULL : mrd__trace_config__unpack(NULL, bytes.len, bytes.p);
    return *out ? 0 : error_set(err, -MRD_EFORMAT, "not a TraceConfig in binary form");
}

static int load_file(const struct perfetto_options *o, Mrd__TraceConfig **out, struct error *err)
{
    char *text = NULL;
    size_t len = 0;
    const bool builtin = strcmp(o->config_path, ":test") == 0;
    const char *name = strcmp(o->config_path, "-") == 0 ? "standard input" : o->config_path;
    struct pb_writer w = {0};
    int rc = 0;
    if (!builtin)
        rc = file_read_all(o->config_path, MAX_CONFIG_BYTES, &text, &len, err);
    if (rc)
        return rc;
    struct slice bytes = builtin ? slice_str(test_config) : slice_of(text, len);
    if (!bytes.len)
        rc = error_set(err, -MRD_EFORMAT, "%s: the config is empty", name);
    if (!rc && (o->text || o->text_lossy || builtin)) {
        rc = text_parse(&mrd__trace_config__descriptor, bytes, o->text_lossy ? TEXT_SKIP_UNKNOWN : 0, &w, err);
        if (rc)
            error_prefix(err, "%s", name);
        else
            rc = unpack(pb_written(&w), out, err);
    } else if (!rc) {
        rc = unpack(bytes, out, err);
        if (rc && looks_like_text(text, len))
            error_set(err, rc, "%s: not a TraceConfig in binary form; for the text form add --txt", name);
        else if (rc)
            error_prefix(err, "%s", name);
    }
    pb_writer_free(&w);
    mem_free(text);
    return rc;
}

int perfetto_load_config(const struct perfetto_options *o, Mrd__TraceConfig **out, struct error *err)
{
    struct pb_writer w = {0};
    if (!o->light)
        return load_file(o, out, err);
    int rc = perfetto_light_config(o, &w, err);
    if (!rc)
        rc = unpack(pb_written(&w), out, err);
    pb_writer_free(&w);
    return rc;
}
