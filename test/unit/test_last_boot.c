/* Tests what becomes of addresses in a buffer that the kernel of an earlier boot wrote. */
#include "importer/trace_dat/dat_boot.h"
#include "kernel/encode.h"
#include "kernel/event_program.h"

#include <check.h>

static const char symbols[] = "ffffffff80000010 T first\nffffffff81000000 T _text\nffffffff81000020 t behind_text\n";

START_TEST(the_shift_is_that_of_text)
{
    static const struct {
        const char *told, *buffer;
        uint64_t shift;
    } cases[] = {
        {":ffffffff80200000\t[kernel]\n", "", 0xe00000},
        {"boot:0xffffffff82000000 [kernel]\nffffffffc0000000\tmodule\n", "boot", (uint64_t)-0x1000000},
        {"boot:ffffffffc0000000\tmodule\n0xffffffff80ffffff\t[kernel]\n", "boot", 1},
        {"boot:ffffffff80200000\t[kernel]\n", "boo", 0},
        {"boot:ffffffff80200000\t[kernel]\n", "", 0},
        {"boot:# Current\n", "boot", 0},
        {"boot:\n\n[kernel]\nffffffff80200000", "boot", 0},
        {"boot", "boot", 0},
        {"", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice told = slice_str(cases[i].told);
        struct dat_file f = {.kallsyms = slice_str(symbols), .last_boots = {&told, 1, 1}};
        ck_assert_uint_eq(dat_boot_shift(&f, slice_str(cases[i].buffer)), cases[i].shift);
        f.kallsyms = slice_str("ffffffff80000010 T first\n0000000000000000 T _text\n");
        ck_assert_uint_eq(dat_boot_shift(&f, slice_str(cases[i].buffer)), 0);
        f.kallsyms = slice_of(NULL, 0);
        ck_assert_uint_eq(dat_boot_shift(&f, slice_str(cases[i].buffer)), 0);
    }
}
END_TEST

/* An event that names a function: the symbol that is asked for lies as far off. */
START_TEST(addresses_are_moved)
{
    static const uint8_t event[16] = {77, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff};
    uint8_t out[256 + ENCODE_SLACK];
    for (uint64_t shift = 0; shift <= 0x1000000; shift += 0x1000000) {
        struct address_table addresses = {0};
        struct program_step step = {.code = STEP_ADDRESS, .tag_len = 1, .tag = {8}, .offset = 8};
        struct event_program p = {
            .kind = PROGRAM_FIELDS, .min_size = 16, .n_steps = 1, .steps = &step, .max_fixed = 64};
        struct program_context context = {.addresses = &addresses, .address_shift = shift};
        ck_assert_ptr_nonnull(event_program_run(&p, &context, event, sizeof event, 5, out));
        ck_assert_uint_eq(addresses.unsent.n, 1);
        ck_assert_uint_eq(addresses.unsent.p[0], 0xffffffff80000020 + shift);
        address_table_free(&addresses);
    }
}
END_TEST

Suite *last_boot_suite(void);
Suite *last_boot_suite(void)
{
    Suite *s = suite_create("last_boot");
    TCase *t = tcase_create("last_boot");
    tcase_add_test(t, the_shift_is_that_of_text);
    tcase_add_test(t, addresses_are_moved);
    suite_add_tcase(s, t);
    return s;
}
