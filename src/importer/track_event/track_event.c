/* The table of packets about track events, and the state of a machine. */
#include "importer/track_event/track_event_internal.h"

#include "base/hash.h"
#include "importer/proto/content_analysis.h"
#include "wire/fields.h"

#include <zlib.h>

static enum tokenize_result tokenize_range_of_interest(struct packet *p);
static enum tokenize_result tokenize_extension_descriptor(struct packet *p);

const struct packet_handler track_event_packet_handlers[] = {
    {TRACE_PACKET_TRACK_EVENT, "track_event", track_event_tokenize_event, NULL},
    {TRACE_PACKET_PROCESS_DESCRIPTOR, "process_descriptor", NULL, track_event_parse_process_descriptor},
    {TRACE_PACKET_THREAD_DESCRIPTOR, "thread_descriptor", track_event_tokenize_thread_descriptor,
     track_event_parse_thread_descriptor},
    {TRACE_PACKET_STREAMING_PROFILE_PACKET, "streaming_profile_packet", track_event_tokenize_streaming_profile, NULL},
    {TRACE_PACKET_TRACK_DESCRIPTOR, "track_descriptor", track_event_tokenize_descriptor, track_event_parse_descriptor},
    {TRACE_PACKET_MODULE_SYMBOLS, "module_symbols", track_event_tokenize_module_symbols, NULL},
    {TRACE_PACKET_DEOBFUSCATION_MAPPING, "deobfuscation_mapping", track_event_tokenize_deobfuscation, NULL},
    {TRACE_PACKET_TRANSLATION_TABLE, "translation_table", track_event_tokenize_translation, NULL},
    {TRACE_PACKET_TRACK_EVENT_RANGE_OF_INTEREST, "track_event_range_of_interest", tokenize_range_of_interest, NULL},
    {TRACE_PACKET_CHROME_TRIGGER, "chrome_trigger", NULL, track_event_parse_chrome_trigger},
    {0, NULL, NULL, NULL},
};

const struct packet_handler track_event_early_handlers[] = {
    {TRACE_PACKET_EXTENSION_DESCRIPTOR, "extension_descriptor", tokenize_extension_descriptor, NULL},
    {0, NULL, NULL, NULL},
};

/* Fields of messages inside TrackEvent, for the analysis of a trace's bytes. */
static bool content_extension(struct importer *im, strid message, uint32_t number, struct content_field *out)
{
    static const char *const types[] = {
        [SCHEMA_DOUBLE] = "double",     [SCHEMA_FLOAT] = "float",     [SCHEMA_INT64] = "int64",
        [SCHEMA_UINT64] = "uint64",     [SCHEMA_INT32] = "int32",     [SCHEMA_FIXED64] = "fixed64",
        [SCHEMA_FIXED32] = "fixed32",   [SCHEMA_BOOL] = "bool",       [SCHEMA_STRING] = "string",
        [SCHEMA_GROUP] = "group",       [SCHEMA_MESSAGE] = "message", [SCHEMA_BYTES] = "bytes",
        [SCHEMA_UINT32] = "uint32",     [SCHEMA_ENUM] = "enum",       [SCHEMA_SFIXED32] = "sfixed32",
        [SCHEMA_SFIXED64] = "sfixed64", [SCHEMA_SINT32] = "sint32",   [SCHEMA_SINT64] = "sint64",
    };
    struct strpool *strings = &im->st->strings;
    const struct schema_field *f = schema_field(track_event_schema(im), message, number);
    if (!f || f->type >= sizeof types / sizeof *types || !types[f->type])
        return false;
    out->name = f->name;
    if (f->type != SCHEMA_MESSAGE) {
        out->type = import_str(im, types[f->type]);
        return true;
    }
    struct slice full = strpool_view(strings, f->type_name);
    size_t last = full.len;
    while (last && full.p[last - 1] != '.')
        last--;
    out->type = strpool_intern(strings, full.p + last, full.len - last);
    out->message = f->type_name;
    return true;
}

struct track_event_machine *track_event_machine_open(struct machine_ctx *m)
{
    struct track_event_machine *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->m = m;
    t->secret = hash_secret();
    t->queue = UINT32_MAX;
    t->message = strpool_intern_str(&m->st->strings, "perfetto.protos.TrackEvent");
    if (m->id == 0) {
        t->schema = schema_open(&m->st->strings);
        t->translations = track_event_translations_open();
        if (!t->schema || !t->translations) {
            track_event_machine_close(t);
            return NULL;
        }
        slice_tracker_translate(m->im->slices, &t->translations->slice_names);
        track_event_args_open(m->im);
        if (content_analysis_of(m->im))
            content_analysis_extensions(m->im->content, content_extension);
    }
    return t;
}

void track_event_machine_finish(struct track_event_machine *t)
{
    track_event_processes_finish(t); /* slices that are open stay so: their end was not recorded */
}

void track_event_machine_close(struct track_event_machine *t)
{
    if (!t)
        return;
    arena_free(&t->arena);
    u64map_free(&t->tracks);
    u64map_free(&t->running);
    u64map_free(&t->uuid_of_utid);
    u64map_free(&t->uuid_of_upid);
    u64map_free(&t->legacy_async);
    u64map_free(&t->legacy_names);
    schema_close(t->schema);
    track_event_translations_close(t->translations);
    arg_list_free(&t->args);
    track_event_processes_close(t->chrome_processes);
    u64map_free(&t->android_processes);
    mem_free(t);
}

struct schema *track_event_schema(const struct importer *im)
{
    struct schema *s = im->machines.p[0]->track_event->schema;
    schema_load(s, SCHEMA_TRACK_EVENT); /* without memory it stays empty, and the strings tell */
    return s;
}

/* Adds gzipped descriptors; a descriptor set is some 100 KB, so more than 64 MB is damage. */
static bool add_gzipped(struct schema *s, struct slice gz)
{
    enum { MAX_SIZE = 64 << 20 };
    z_stream z = {0};
    bool ok = false;
    if (gz.len > UINT32_MAX || inflateInit2(&z, 15 + 32) != Z_OK)
        return false;
    VEC(uint8_t)
    out = {0};
    z.next_in = (Bytef *)(uintptr_t)gz.p;
    z.avail_in = (uInt)gz.len;
    int r = Z_OK;
    while (r == Z_OK && out.n < MAX_SIZE && vec_reserve(&out, out.n + 65536)) {
        z.next_out = out.p + out.n;
        z.avail_out = 65536;
        r = inflate(&z, Z_NO_FLUSH);
        out.n += 65536 - z.avail_out;
        if (r == Z_OK && z.avail_out == 65536)
            break; /* no progress: the input ends early */
    }
    if (r == Z_STREAM_END)
        ok = schema_add(s, slice_of(out.p, out.n));
    inflateEnd(&z);
    vec_free(&out);
    return ok;
}

/* Message descriptors that the trace brings along. */
static enum tokenize_result tokenize_extension_descriptor(struct packet *p)
{
    struct schema *s = track_event_schema(p->m->im);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        bool ok = true;
        if (f.id == EXTENSION_DESCRIPTOR_EXTENSION_SET)
            ok = schema_add(s, pb_bytes(&f));
        else if (f.id == EXTENSION_DESCRIPTOR_EXTENSION_SET_GZIP)
            ok = add_gzipped(s, pb_bytes(&f));
        if (!ok)
            stats_add(&p->m->st->stats, p->m->id, STAT_extra_parsing_descriptors_error, 1);
    }
    return TOKENIZE_DONE;
}

static enum tokenize_result tokenize_range_of_interest(struct packet *p)
{
    struct pb_field f;
    if (!pb_find(p->field, TRACK_EVENT_RANGE_OF_INTEREST_START_US, &f)) {
        packet_log(p, STAT_track_event_range_of_interest_missing_start_us, NULL, 0);
        return TOKENIZE_DONE;
    }
    int64_t ns;
    if (__builtin_mul_overflow(pb_i64(&f), 1000, &ns))
        return TOKENIZE_DONE;
    p->m->track_event->range_start = track_event_monotonic(p, ns);
    p->m->track_event->has_range = true;
    metadata_int(p->m->im, p->m, METADATA_range_of_interest_start_us, pb_i64(&f));
    return TOKENIZE_DONE;
}
