/* Call stacks as values of SQL, and the profiles made of them, read back by hand. */
#include "ck_slice.h"
#include "sql_fixture.h"
#include "wire/pb_cursor.h"

static struct sql_fixture f;

static strid text(const char *s)
{
    return strpool_intern_str(&f.st.strings, s);
}

static uint32_t add_frame(const char *name, int64_t rel_pc, int64_t symbols, const char *type)
{
    return stack_profile_frame_insert(
        &f.st, &(struct stack_profile_frame_row){
                   .name = text(name), .rel_pc = rel_pc, .symbol_set_id = symbols, .type = type ? text(type) : 0});
}

static void add_callsite(int64_t depth, int64_t parent, uint32_t frame)
{
    stack_profile_callsite_insert(
        &f.st, &(struct stack_profile_callsite_row){.depth = depth, .parent_id = parent, .frame_id = frame});
}

/* main > outer(inner inlined) and main > idle, in /bin/app, whose second page stood at 8192. */
static void setup(void)
{
    struct error err;
    sql_open(&f);
    stack_profile_mapping_insert(&f.st, &(struct stack_profile_mapping_row){.build_id = text("ab"),
                                                                            .exact_offset = 4096,
                                                                            .start = 8192,
                                                                            .end = 12288,
                                                                            .load_bias = 16,
                                                                            .name = text("/bin/app")});
    for (int i = 0; i < 2; i++)
        stack_profile_symbol_insert(&f.st, &(struct stack_profile_symbol_row){.symbol_set_id = 0,
                                                                              .name = text(i ? "outer" : "inner"),
                                                                              .source_file = text("a.c"),
                                                                              .line_number = 7 + i,
                                                                              .inlined = !i});
    add_callsite(0, COL_NULL, add_frame("main", 4116, COL_NULL, NULL));
    add_callsite(1, 0, add_frame("", 4216, 0, NULL));
    add_callsite(1, 0, add_frame("idle", 4316, COL_NULL, "interp"));
    storage_finalize(&f.st);
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
}

static void teardown(void)
{
    sql_close(&f);
}

/* --- reading a profile -------------------------------------------------------------------------------------------- */

struct profile {
    char bytes[4096];
    size_t len;
};

static struct slice whole(const struct profile *p)
{
    return slice_of(p->bytes, p->len);
}

static struct profile ask(const char *sql)
{
    struct profile p = {.len = 0};
    char query[1024];
    snprintf(query, sizeof query, "select hex(%s)", sql);
    char *hex = sql_rows(&f, query);
    ck_assert_msg(hex, "%s", sql);
    for (char *s = hex; s[0] && s[1]; s += 2) {
        unsigned byte;
        sscanf(s, "%2x", &byte);
        ck_assert_uint_lt(p.len, sizeof p.bytes);
        p.bytes[p.len++] = (char)byte;
    }
    sqlite3_free(hex);
    return p;
}

/* The n-th field `id` of a message; empty when there are fewer. */
static struct slice nth(struct slice message, uint32_t id, unsigned n)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field field;
    while (pb_next(&c, &field))
        if (field.id == id && n-- == 0)
            return pb_bytes(&field);
    return slice_of(NULL, 0);
}

static uint64_t number_in(struct slice message, uint32_t id)
{
    struct pb_field field;
    return pb_find(message, id, &field) ? pb_u64(&field) : 0;
}

/* The message of kind `id` whose field 1 is `number`. */
static struct slice numbered(const struct profile *p, uint32_t id, uint64_t number)
{
    for (unsigned i = 0;; i++) {
        struct slice message = nth(whole(p), id, i);
        if (!message.p || number_in(message, 1) == number)
            return message;
    }
}

/* The stack of the n-th sample as text, from the innermost on: "inner:7,outer:8@12280 main@…". */
static const char *stack_of(const struct profile *p, unsigned n)
{
    static char out[512];
    size_t len = 0;
    struct pb_numbers locations = pb_numbers(nth(whole(p), 2, n), 1);
    out[0] = 0;
    for (uint64_t id; pb_next_number(&locations, &id);) {
        struct slice location = numbered(p, 4, id);
        for (unsigned i = 0; nth(location, 4, i).p; i++) {
            struct slice line = nth(location, 4, i), function = numbered(p, 5, number_in(line, 1));
            struct slice name = nth(whole(p), 6, (unsigned)number_in(function, 2));
            len += (size_t)snprintf(out + len, sizeof out - len, "%s%.*s", i ? "," : "", (int)name.len, name.p);
            if (number_in(line, 2))
                len += (size_t)snprintf(out + len, sizeof out - len, ":%d", (int)number_in(line, 2));
        }
        len += (size_t)snprintf(out + len, sizeof out - len, "@%d ", (int)number_in(location, 3));
    }
    return out;
}

static int64_t value_of(const struct profile *p, unsigned n, unsigned type)
{
    struct pb_numbers values = pb_numbers(nth(whole(p), 2, n), 2);
    uint64_t v = 0;
    while (pb_next_number(&values, &v) && type--)
        ;
    return (int64_t)v;
}

START_TEST(equal_stacks_are_one_sample)
{
    struct profile p =
        ask("(select experimental_profile(stack_from_stack_profile_callsite(column1), 'time', 'ns', column2, "
            "'n', 'count', 1) from (values (1, 10), (2, 5), (1, 30), (2, -7)))");
    ck_assert_str_eq(stack_of(&p, 0), "inner:7,outer:8@8296 main@8196 "); /* 4216 + 8192 - 4096 - 16 */
    ck_assert_int_eq(value_of(&p, 0, 0), 40);
    ck_assert_int_eq(value_of(&p, 0, 1), 2);
    ck_assert_str_eq(stack_of(&p, 1), "idle@8396 main@8196 ");
    ck_assert_int_eq(value_of(&p, 1, 0), -2);
    ck_assert_ptr_null(nth(whole(&p), 2, 2).p);
    struct slice type = nth(whole(&p), 1, 0), unit = nth(whole(&p), 6, (unsigned)number_in(type, 2));
    ck_assert_slice_eq(nth(whole(&p), 6, (unsigned)number_in(type, 1)), "time");
    ck_assert_slice_eq(unit, "ns");
    struct slice file = numbered(&p, 3, 1);
    ck_assert_slice_eq(nth(whole(&p), 6, (unsigned)number_in(file, 5)), "/bin/app");
    ck_assert_uint_eq(number_in(file, 2), 8192);
    ck_assert_uint_eq(nth(whole(&p), 6, 0).len, 0); /* string 0 is the empty one */
}
END_TEST

START_TEST(stacks_are_put_together)
{
    struct profile p =
        ask("(select experimental_profile(cat_stacks('process', null, stack_from_stack_profile_callsite(2, "
            "true), 'leaf', stack_from_stack_profile_frame(0))))");
    ck_assert_str_eq(stack_of(&p, 0), "main@8196 leaf@0 idle [interp]@8396 main@8196 process@0 ");
    ck_assert_int_eq(value_of(&p, 0, 0), 1);
    sql_expect(&f, "select cat_stacks(null, null), stack_from_stack_profile_frame(null), typeof(cat_stacks('a'))",
               "-,-,blob");
    sql_expect(&f,
               "select experimental_profile(null, 'a', 'b', 1) is not null, experimental_profile('x') from "
               "(select 1) where 0",
               "0,-");
}
END_TEST

static const struct {
    const char *sql, *error;
} mistakes[] = {
    {"select stack_from_stack_profile_frame(99)", "there is no row 99"},
    {"select stack_from_stack_profile_callsite(-1)", "there is no row -1"},
    {"select stack_from_stack_profile_callsite('a')", "there is no row a"},
    {"select stack_from_stack_profile_callsite()", "expected 1 to 2 arguments"},
    {"select cat_stacks(3)", "argument 1 must be a stack or a string"},
    {"select experimental_profile(x'0a02ffff')", "the first argument is not a stack"},
    {"select experimental_profile(x'0a021863')", "the first argument is not a stack"}, /* callsite 99 */
    {"select experimental_profile(x'0a022063')", "the first argument is not a stack"}, /* frame 99 */
    {"select experimental_profile(x'ff')", "the first argument is not a stack"},
    {"select experimental_profile(cat_stacks('a'), 'x')", "a type, a unit and a value"},
};

START_TEST(mistakes_are_told)
{
    sql_must_fail(&f, mistakes[_i].sql, mistakes[_i].error);
}
END_TEST

Suite *pprof_suite(void);

Suite *pprof_suite(void)
{
    Suite *s = suite_create("pprof");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, equal_stacks_are_one_sample);
    tcase_add_test(c, stacks_are_put_together);
    tcase_add_loop_test(c, mistakes_are_told, 0, (int)(sizeof mistakes / sizeof *mistakes));
    suite_add_tcase(s, c);
    return s;
}
