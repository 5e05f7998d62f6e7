/* Tests what track events carry: annotations, messages described in the trace, categories, log messages. */
#include "track_event_fixture.h"

static void annotation(const char *name, uint32_t field, int64_t value)
{
    size_t a = in(4);
    pb_put_str(&trace, 10, name);
    pb_put_i64(&trace, field, value);
    out(a);
}

START_TEST(annotations_nest)
{
    event(10, INSTANT, 1, "x");
    annotation("i", 4, -5);
    annotation("u", 3, 6);
    annotation("with.dots[0]", 2, 1);
    size_t a = in(4);
    pb_put_str(&trace, 10, "dict");
    size_t b = in(11);
    pb_put_str(&trace, 10, "list");
    for (int i = 0; i < 2; i++) {
        size_t c = in(12);
        pb_put_varint(&trace, 4, (uint64_t)(10 + i));
        out(c);
    }
    out(b);
    out(a);
    a = in(4);
    pb_put_str(&trace, 10, "json");
    pb_put_str(&trace, 9, "{\"k\": [true, \"\\u0041\\n\", {\"deep\": 1.5}], \"none\": null}");
    out(a);
    a = in(4);
    pb_put_str(&trace, 10, "not_json");
    pb_put_str(&trace, 9, "{\"k\": ");
    out(a);
    event_end();
    load();
    int64_t set = SLICE(arg_set_id, 0);
    ck_assert_str_eq(arg_text(set, "debug.i"), "-5");
    ck_assert_str_eq(arg_text(set, "debug.u"), "6");
    ck_assert_str_eq(arg_text(set, "debug.with_dots_0_"), "1");
    ck_assert_str_eq(arg_text(set, "debug.dict.list[1]"), "11");
    ck_assert_str_eq(arg_text(set, "debug.json.k[0]"), "1");
    ck_assert_str_eq(arg_text(set, "debug.json.k[1]"), "A\n");
    ck_assert_str_eq(arg_text(set, "debug.json.k[2].deep"), "1.5");
    ck_assert_str_eq(arg_text(set, "debug.not_json"), "{\"k\": ");
}
END_TEST

static void on_thread_101(void)
{
    size_t t = in(4);
    pb_put_varint(&trace, 1, 100);
    pb_put_varint(&trace, 2, 101);
    out(t);
}

/* An event of a type that nobody knows is kept as one of the older format is, and says nothing of what the event before
 * had of that. */
START_TEST(a_type_that_is_unknown_has_nothing_of_the_older_format)
{
    describe(1, 0, NULL, on_thread_101);
    for (int i = 0; i < 4; i++) {
        event(10 + i, i % 2 ? 9 : 0, 1, "x");
        if (i % 2 == 0) {
            size_t l = in(6);
            pb_put_varint(&trace, 2, 'Z');
            pb_put_varint(&trace, 3, 7);     /* duration_us */
            pb_put_varint(&trace, 9, 1);     /* use_async_tts */
            pb_put_varint(&trace, 10, 4711); /* local_id */
            out(l);
        }
        event_end();
    }
    load();
    ck_assert_uint_eq(ROWS(chrome_raw), 4);
    for (uint32_t i = 0; i < 4; i++) {
        int64_t set = ROW_GET(&st, chrome_raw, arg_set_id, i);
        bool old = i % 2 == 0;
        const char *id = arg_text(set, "legacy_event.local_id");
        ck_assert(old ? id && strcmp(id, "4711") == 0 : !id);
        ck_assert(!arg_text(set, "legacy_event.use_async_tts") == !old);
        ck_assert(!arg_text(set, "legacy_event.duration_ns") == !old);
    }
}
END_TEST

/* What is decoded for one key is what the whole set has of it. */
static void check_each_key(argset set)
{
    struct arg_list whole = {0}, one = {0};
    args_values(&st.args, set, &whole);
    for (size_t i = 0; i < whole.n; i++) {
        size_t at = 0;
        one.n = 0;
        args_values_of(&st.args, set, whole.p[i].key, &one);
        for (size_t k = 0; k < whole.n; k++) {
            if (whole.p[k].key != whole.p[i].key && whole.p[k].flat_key != whole.p[i].key)
                continue;
            while (at < one.n && one.p[at].key != whole.p[k].key)
                at++;
            ck_assert_msg(at < one.n, "%s for %s", text(whole.p[k].key), text(whole.p[i].key));
            ck_assert_int_eq(one.p[at].word, whole.p[k].word);
            ck_assert_int_eq(one.p[at].type, whole.p[k].type);
            ck_assert_int_eq(one.p[at++].flat_key, whole.p[k].flat_key);
        }
    }
    ck_assert_uint_gt(whole.n, 12);
    arg_list_free(&whole);
    arg_list_free(&one);
}

START_TEST(values_of_one_key)
{
    char longest[ARG_KEY_MAX + 9];
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = 0;
    event(10, INSTANT, 1, "x");
    annotation("a", 4, -5);
    annotation("a.b", 3, 6);
    annotation("a_b", 3, 7); /* the same key */
    annotation("ab", 3, 8);
    annotation("", 2, 1);
    annotation(longest, 2, 1);
    annotation("a]", 2, 1);
    for (int k = 0; k < 2; k++) { /* an array that goes on */
        size_t a = in(4);
        pb_put_str(&trace, 10, "a");
        for (int i = 0; i < 11; i++) {
            size_t b = in(12);
            pb_put_varint(&trace, 4, (uint64_t)i);
            out(b);
        }
        out(a);
    }
    size_t a = in(4);
    pb_put_str(&trace, 10, "j");
    pb_put_str(&trace, 9, "{\"a.b\": [true, {\"debug.a\": 1.5}], \"\": 3}");
    out(a);
    a = in(4); /* without a name */
    pb_put_varint(&trace, 4, 3);
    out(a);
    a = in(33);
    pb_put_str(&trace, 2, "file.c");
    pb_put_str(&trace, 3, "f");
    out(a);
    event_end();
    load();
    int64_t set = SLICE(arg_set_id, 0);
    ck_assert_str_eq(arg_text(set, "debug.a[21]"), "10");
    ck_assert_str_eq(arg_text(set, "source.function_name"), "f");
    check_each_key(argset_of_cell(set));
}
END_TEST

/* legacy_json_value: what the arg `key` becomes. Text that is not JSON stays as it is. */
static const struct {
    const char *json, *key, *text;
} json_values[] = {
    {"17", "debug.j", "17"},
    {" -0.5e1 ", "debug.j", "-5"},
    {"true", "debug.j", "1"},
    {"\"x\"", "debug.j", "x"},
    {"[18446744073709551615]", "debug.j[0]", "18446744073709551615"},
    {"[-9223372036854775808, 1]", "debug.j[0]", "-9223372036854775808"},
    {"[1, null, 3]", "debug.j[1]", "3"},
    {"{\"a\\u0062\": {\"c\": false}}", "debug.j.ab.c", "0"},
    {"\"tab\tand \\\"quote\\\"\"", "debug.j", "tab\tand \"quote\""},
    {"\"\\ud83d\\ude00\"", "debug.j", "\xf0\x9f\x98\x80"},
    {"\"\\x\"", "debug.j", "\"\\x\""},
    {"1 2", "debug.j", "1 2"},
    {"[1,]", "debug.j", "[1,]"},
    {"007", "debug.j", "007"},
    {"{\"a\" 1}", "debug.j", "{\"a\" 1}"},
    {"\"open", "debug.j", "\"open"},
};

START_TEST(json_value)
{
    event(10, INSTANT, 1, "x");
    size_t a = in(4);
    pb_put_str(&trace, 10, "j");
    pb_put_str(&trace, 9, json_values[_i].json);
    out(a);
    event_end();
    load();
    ck_assert_str_eq(arg_text(SLICE(arg_set_id, 0), json_values[_i].key), json_values[_i].text);
}
END_TEST

/* A string with escapes that is longer than the room on the stack. */
START_TEST(json_long_string)
{
    char json[3000], want[1001];
    size_t n = 0;
    json[n++] = '"';
    for (int i = 0; i < 1000; i++) {
        json[n++] = '\\';
        json[n++] = 'n';
        want[i] = '\n';
    }
    json[n++] = '"';
    json[n] = want[1000] = '\0';
    event(10, INSTANT, 1, "x");
    size_t a = in(4);
    pb_put_str(&trace, 10, "j");
    pb_put_str(&trace, 9, json);
    out(a);
    event_end();
    load();
    ck_assert_str_eq(arg_text(SLICE(arg_set_id, 0), "debug.j"), want);
}
END_TEST

/* A FieldDescriptorProto. */
static void field(uint32_t in_field, const char *name, unsigned number, unsigned type, const char *type_name,
                  const char *extendee, bool repeated)
{
    size_t f = in(in_field);
    pb_put_str(&trace, 1, name);
    if (extendee)
        pb_put_str(&trace, 2, extendee);
    pb_put_varint(&trace, 3, number);
    pb_put_varint(&trace, 4, repeated ? 3 : 1);
    pb_put_varint(&trace, 5, type);
    if (type_name)
        pb_put_str(&trace, 6, type_name);
    out(f);
}

START_TEST(messages_are_read_by_descriptors_in_the_trace)
{
    packet_begin(-1, 1, 0);
    size_t e = in(72), set = in(1), file = in(1);
    pb_put_str(&trace, 2, "my.app");
    size_t m = in(4);
    pb_put_str(&trace, 1, "Request");
    field(2, "url", 1, 9, NULL, NULL, false);
    field(2, "sizes", 2, 13, NULL, NULL, true);
    field(2, "kind", 3, 14, ".my.app.Request.Kind", NULL, false);
    size_t kind = in(4);
    pb_put_str(&trace, 1, "Kind");
    size_t v = in(2);
    pb_put_str(&trace, 1, "GET");
    pb_put_varint(&trace, 2, 7);
    out(v);
    out(kind);
    out(m);
    field(7, "request", 9901, 11, ".my.app.Request", ".perfetto.protos.TrackEvent", false);
    out(file);
    out(set);
    out(e);
    packet_end();

    for (int extension = 0; extension < 2; extension++) {
        event(10 + extension, INSTANT, 1, "x");
        size_t a = extension ? 0 : in(4);
        if (!extension) {
            pb_put_str(&trace, 10, "req");
            pb_put_str(&trace, 16, ".my.app.Request");
        }
        size_t r = in(extension ? 9901 : 14);
        pb_put_str(&trace, 1, "/index");
        size_t packed = in(2);
        pb_put_raw_varint(&trace, 100);
        pb_put_raw_varint(&trace, 200);
        out(packed);
        pb_put_varint(&trace, 2, 300);
        pb_put_varint(&trace, 3, 7);
        out(r);
        if (!extension)
            out(a);
        event_end();
    }
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    static const char *const prefixes[] = {"debug.req", "request"};
    for (uint32_t i = 0; i < 2; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.url", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "/index");
        snprintf(key, sizeof key, "%s.sizes[1]", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "200");
        snprintf(key, sizeof key, "%s.sizes[2]", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "300");
        snprintf(key, sizeof key, "%s.kind", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "GET");
    }
}
END_TEST

START_TEST(categories_join_and_unknown_ones_show)
{
    event(10, INSTANT, 1, "x");
    pb_put_varint(&trace, 3, 9);
    pb_put_str(&trace, 22, "net");
    event_end();
    event(11, INSTANT, 1, "y");
    pb_put_varint(&trace, 3, 9);
    event_end();
    load();
    ck_assert_str_eq(text(SLICE(category, 0)), "net"); /* of several, those without a name are left out */
    ck_assert_str_eq(text(SLICE(category, 1)), "unknown(9)");
}
END_TEST

/* Args of a slice are one set, which is complete when the slice ends: inner slices have lower numbers, open ones the
 * highest, and no set is left of what an end has added to. */
START_TEST(sets_are_numbered_as_slices_end)
{
    const char *const names[] = {"outer", "inner", "open"};
    for (int i = 0; i < 3; i++) {
        event(10 + i, BEGIN, 1 + (unsigned)i / 2, names[i]);
        annotation("x", 4, i + 1);
        annotation("y", 4, 0);
        event_end();
    }
    simple_event(20, END, 1, NULL);
    event(30, END, 1, NULL);
    annotation("x", 4, 7);
    annotation("z", 4, 8);
    event_end();
    event(40, INSTANT, 3, "instant");
    annotation("x", 4, 9);
    event_end();
    load();
    storage_finalize(&st);
    storage_number_args(&st);
    int64_t outer = SLICE(arg_set_id, 0), inner = SLICE(arg_set_id, 1), open = SLICE(arg_set_id, 2);
    ck_assert_int_eq(outer, inner + 2); /* behind the two values of the inner one */
    ck_assert_int_gt(open, outer);
    struct arg_list all = {0};
    int64_t x = 0; /* sum of all that are there: the outer slice's first one is not */
    for (uint32_t set = 0; set < args_count(&st.args); set++)
        args_values(&st.args, argset_of_cell(set), &all);
    for (size_t i = 0; i < all.n; i++)
        x += strcmp(text(all.p[i].key), "debug.x") == 0 ? all.p[i].word : 0;
    arg_list_free(&all);
    ck_assert_int_eq(x, 7 + 2 + 3 + 9);
    struct arg_list values = {0};
    args_values(&st.args, args_of_cell(&st.args, outer), &values);
    ck_assert_uint_eq(values.n, 3);
    arg_list_free(&values);
}
END_TEST

Suite *track_event_args_suite(void);

Suite *track_event_args_suite(void)
{
    Suite *s = suite_create("track_event_args");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, annotations_nest);
    tcase_add_test(c, a_type_that_is_unknown_has_nothing_of_the_older_format);
    tcase_add_test(c, values_of_one_key);
    tcase_add_loop_test(c, json_value, 0, sizeof json_values / sizeof *json_values);
    tcase_add_test(c, json_long_string);
    tcase_add_test(c, messages_are_read_by_descriptors_in_the_trace);
    tcase_add_test(c, categories_join_and_unknown_ones_show);
    tcase_add_test(c, sets_are_numbered_as_slices_end);
    suite_add_tcase(s, c);
    return s;
}
