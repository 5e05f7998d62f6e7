/* Imports what Chrome says of a recording in the older form: metadata by name, the text of other tracers as it is, and
 * what benchmark was run. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

#include <inttypes.h>

static void raw_event(struct packet *p, const char *name, const struct arg_list *list)
{
    chrome_raw_insert(p->m->st, &(struct chrome_raw_row){.ts = p->ts,
                                                         .name = import_str(p->m->im, name),
                                                         .utid = 0,
                                                         .arg_set_id = args_intern(&p->m->st->args, list->p, list->n)});
}

/* One value: a row of metadata, and an arg of the event. */
static void add_metadata(struct packet *p, uint32_t bundle, struct slice bytes, struct arg_list *list)
{
    struct importer *im = p->m->im;
    struct args *args = &p->m->st->args;
    struct slice name = {0};
    struct pb_field f, value = {0};
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        if (f.id == CHROME_METADATA_NAME)
            name = pb_bytes(&f);
        else
            value = f;
    }
    int len = (int)(name.len & INT32_MAX);
    strid arg = import_slice(im, name),
          key = bundle == 1
                    ? strpool_printf(&p->m->st->strings, "cr-%.*s", len, (const char *)name.p)
                    : strpool_printf(&p->m->st->strings, "cr-%" PRIu32 "-%.*s", bundle, len, (const char *)name.p);
    if (value.id == CHROME_METADATA_STRING_VALUE || value.id == CHROME_METADATA_JSON_VALUE) {
        strid text = import_slice(im, pb_bytes(&value));
        metadata_dynamic(im, NULL, key, COL_NULL, text);
        arg_list_add(args, list, arg, arg, value.id == CHROME_METADATA_JSON_VALUE ? ARG_JSON : ARG_STRING, text);
    } else if (value.id == CHROME_METADATA_BOOL_VALUE) {
        metadata_dynamic(im, NULL, key, pb_bool(&value), 0);
        arg_list_add(args, list, arg, arg, ARG_BOOL, pb_bool(&value));
    } else if (value.id == CHROME_METADATA_INT_VALUE) {
        metadata_dynamic(im, NULL, key, pb_i64(&value), 0);
        arg_list_add(args, list, arg, arg, ARG_INT, pb_i64(&value));
    }
}

/* The pieces of the system's trace, as one text. */
static void add_system_trace(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    VEC(uint8_t) text = {0};
    while (pb_next(&c, &f)) {
        if (f.id != CHROME_EVENT_BUNDLE_LEGACY_FTRACE_OUTPUT)
            continue;
        struct slice s = pb_bytes(&f);
        for (size_t i = 0; i < s.len; i++)
            if (!vec_push(&text, s.p[i])) {
                p->m->im->failed = true;
                break;
            }
    }
    if (text.n) {
        struct arg_list list = {0};
        arg_list_str(&p->m->st->args, &list, "data", import_slice(p->m->im, slice_of(text.p, text.n)));
        raw_event(p, "chrome_event.legacy_system_trace", &list);
        arg_list_free(&list);
    }
    vec_free(&text);
}

/* The events that Chrome's user made, each as the JSON that they were written in. */
static void add_user_traces(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, type, data;
    while (pb_next(&c, &f)) {
        if (f.id != CHROME_EVENT_BUNDLE_LEGACY_JSON_TRACE)
            continue;
        struct slice bytes = pb_bytes(&f);
        if (pb_find(bytes, CHROME_LEGACY_JSON_TRACE_TYPE, &type) && pb_u64(&type) != 0)
            continue;
        struct slice text = pb_find(bytes, CHROME_LEGACY_JSON_TRACE_DATA, &data) ? pb_bytes(&data) : slice_of("", 0);
        struct arg_list list = {0};
        arg_list_str(&p->m->st->args, &list, "data", import_slice(p->m->im, text));
        raw_event(p, "chrome_event.legacy_user_trace", &list);
        arg_list_free(&list);
    }
}

void chrome_events_parse(struct packet *p)
{
    struct arg_list list = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    bool counted = false;
    while (pb_next(&c, &f)) {
        if (f.id != CHROME_EVENT_BUNDLE_METADATA)
            continue;
        p->m->system->metadata_bundles += !counted;
        counted = true;
        add_metadata(p, p->m->system->metadata_bundles, pb_bytes(&f), &list);
    }
    if (counted)
        raw_event(p, "chrome_event.metadata", &list);
    arg_list_free(&list);
    add_system_trace(p);
    add_user_traces(p);
}

enum tokenize_result chrome_benchmark_tokenize(struct packet *p)
{
    static const struct {
        uint32_t field;
        enum metadata_key key;
        bool is_text;
    } keys[] = {
        {CHROME_BENCHMARK_METADATA_BENCHMARK_START_TIME_US, METADATA_benchmark_start_time_us, false},
        {CHROME_BENCHMARK_METADATA_STORY_RUN_TIME_US, METADATA_benchmark_story_run_time_us, false},
        {CHROME_BENCHMARK_METADATA_BENCHMARK_NAME, METADATA_benchmark_name, true},
        {CHROME_BENCHMARK_METADATA_BENCHMARK_DESCRIPTION, METADATA_benchmark_description, true},
        {CHROME_BENCHMARK_METADATA_LABEL, METADATA_benchmark_label, true},
        {CHROME_BENCHMARK_METADATA_STORY_NAME, METADATA_benchmark_story_name, true},
        {CHROME_BENCHMARK_METADATA_STORY_TAGS, METADATA_benchmark_story_tags, true},
        {CHROME_BENCHMARK_METADATA_STORY_RUN_INDEX, METADATA_benchmark_story_run_index, false},
        {CHROME_BENCHMARK_METADATA_HAD_FAILURES, METADATA_benchmark_had_failures, false},
    };
    struct importer *im = p->m->im;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            if (keys[i].field != f.id)
                continue;
            if (keys[i].is_text)
                metadata_str(im, p->m, keys[i].key, import_slice(im, pb_bytes(&f)));
            else
                metadata_int(im, p->m, keys[i].key, pb_i64(&f));
        }
    return TOKENIZE_DONE;
}
