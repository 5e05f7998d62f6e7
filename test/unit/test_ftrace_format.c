/* Tests format files and the programs compiled from them. */
#include "kernel/event_program.h"

#include "ck_slice.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>

#define COMMON                                                                                                         \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                     \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define HEAD "name: thing\nID: 77\nformat:\n" COMMON

static struct format_file file;

static int parse(const char *text, struct error *err)
{
    return format_file_parse(&file, slice_str(text), err);
}

START_TEST(a_format_file_is_read)
{
    ck_assert_int_eq(parse("name: sched_thing\nID: 372\nformat:\n" COMMON
                           "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                           "\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n"
                           "\tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n"
                           "\tfield:const char * file;\toffset:80;\tsize:8;\tsigned:0;\n"
                           "\tfield:char buf[];\toffset:88;\tsize:0;\tsigned:0;\n"
                           "\nprint fmt: \"field:int lie;\toffset:0;\tsize:4;\"",
                           NULL),
                     0);
    ck_assert_slice_eq(file.name, "sched_thing");
    ck_assert_uint_eq(file.id, 372);
    ck_assert_uint_eq(file.n_common, 4);
    ck_assert_uint_eq(file.n_fields, 9);
    const struct format_field *f = format_file_field(&file, "args");
    ck_assert_slice_eq(f->type, "unsigned long");
    ck_assert(f->is_array);
    ck_assert_uint_eq(f->count, 6);
    ck_assert_uint_eq(f->size, 48);
    f = format_file_field(&file, "name");
    ck_assert_slice_eq(f->type, "__data_loc char[]");
    ck_assert(!f->is_array);
    ck_assert_int_eq(f->offset, 24);
    f = format_file_field(&file, "file");
    ck_assert_slice_eq(f->type, "const char *");
    f = format_file_field(&file, "buf");
    ck_assert(f->is_array);
    ck_assert_uint_eq(f->size, 0);
    ck_assert_uint_eq(f->count, 0);
    ck_assert_ptr_null(format_file_field(&file, "lie"));
}
END_TEST

/* Each of these is refused whole. */
static const char *const lies[] = {
    "",
    "name: x\n",
    "name: x\nID: many\n" COMMON,
    "name: x\nID: 99999999999\n" COMMON,
    "ID: 3\n" COMMON,
    HEAD "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:int b;\toffset:10;\tsize:4;\tsigned:1;\n",
    HEAD "\tfield:int a;\toffset:6;\tsize:4;\tsigned:1;\n", /* over common_pid */
    HEAD "\tfield:int a;\toffset:70000;\tsize:4;\tsigned:1;\n",
    HEAD "\tfield:char a[70000];\toffset:8;\tsize:70000;\tsigned:1;\n",
    HEAD "\tfield:char a[65000];\toffset:1000;\tsize:65000;\tsigned:1;\n",
    HEAD "\tfield:int a;\toffset:4294967295;\tsize:4294967295;\tsigned:1;\n",
    HEAD "\tfield:int a;\toffset:-8;\tsize:4;\tsigned:1;\n",
    HEAD "\tfield:int a;\toffset:8;\tsigned:1;\n",
    HEAD "\tfield:;\toffset:8;\tsize:4;\tsigned:1;\n",
    HEAD "\tfield:int;\toffset:8;\tsize:4;\tsigned:1;\n",
};

START_TEST(a_format_file_that_lies_is_refused)
{
    struct error err = {0};
    ck_assert_int_eq(parse(lies[_i], &err), -MRD_EFORMAT);
    ck_assert_int_ne(err.text[0], 0);
}
END_TEST

START_TEST(too_many_fields_are_refused)
{
    char text[64 * 1024] = HEAD;
    for (int i = 0; i < 200; i++)
        sprintf(text + strlen(text), "\tfield:int f%d;\toffset:%d;\tsize:4;\tsigned:1;\n", i, 8 + 4 * i);
    ck_assert_int_eq(parse(text, NULL), -MRD_EFORMAT);
}
END_TEST

START_TEST(the_page_header_is_read)
{
    struct page_format f;
    const char *text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                       "\tfield: local_t commit;\toffset:8;\tsize:%d;\tsigned:1;\n"
                       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
                       "\tfield: char data;\toffset:%d;\tsize:4080;\tsigned:0;\n";
    char buf[512];
    snprintf(buf, sizeof buf, text, 8, 16);
    ck_assert_int_eq(page_format_parse(&f, slice_str(buf), NULL), 0);
    ck_assert_uint_eq(f.commit_size, 8);
    ck_assert_uint_eq(f.data_offset, 16);
    snprintf(buf, sizeof buf, text, 4, 12);
    ck_assert_int_eq(page_format_parse(&f, slice_str(buf), NULL), 0);
    snprintf(buf, sizeof buf, text, 8, 12);
    ck_assert_int_eq(page_format_parse(&f, slice_str(buf), NULL), -MRD_EFORMAT);
    snprintf(buf, sizeof buf, text, 3, 16);
    ck_assert_int_eq(page_format_parse(&f, slice_str(buf), NULL), -MRD_EFORMAT);
    ck_assert_int_eq(page_format_parse(&f, slice_str(""), NULL), -MRD_EFORMAT);
}
END_TEST

START_TEST(common_fields_must_be_in_place)
{
    struct arena a = {0};
    struct event_program p;
    const char *no_pid =
        "name: x\nID: 3\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
    const char *moved = "name: x\nID: 3\nformat:\n\tfield:unsigned short common_type;\toffset:2;\tsize:2;\tsigned:0;\n"
                        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    ck_assert_int_eq(parse(no_pid, NULL), 0);
    ck_assert_int_eq(event_program_compile(&p, &file, "g", PROGRAM_TYPED_OR_GENERIC, 65536, &a, NULL), -MRD_EFORMAT);
    ck_assert_int_eq(parse(moved, NULL), 0);
    ck_assert_int_eq(event_program_compile(&p, &file, "g", PROGRAM_TYPED_OR_GENERIC, 65536, &a, NULL), -MRD_EFORMAT);
    arena_free(&a);
}
END_TEST

/* A typed event whose field is of an unexpected kind loses that field, nothing else. */
START_TEST(a_field_of_another_type_is_left_out)
{
    struct arena a = {0};
    struct event_program p;
    ck_assert_int_eq(parse("name: cpu_frequency\nID: 5\nformat:\n" COMMON
                           "\tfield:char state[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                           "\tfield:u32 cpu_id;\toffset:24;\tsize:4;\tsigned:0;\n",
                           NULL),
                     0);
    ck_assert_int_eq(event_program_compile(&p, &file, "power", PROGRAM_TYPED_OR_GENERIC, 65536, &a, NULL), 0);
    ck_assert_uint_eq(p.proto_id, 11);
    ck_assert_uint_eq(p.n_steps, 1);
    ck_assert_uint_eq(p.steps[0].field_no, 2);
    arena_free(&a);
}
END_TEST

/* Functions are numbers of the session, never addresses, also where the format says "unsigned long". */
START_TEST(addresses_of_functions_do_not_get_out)
{
    struct arena a = {0};
    struct event_program p;
    ck_assert_int_eq(parse("name: funcgraph_entry\nID: 11\nformat:\n" COMMON
                           "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
                           "\tfield:unsigned int depth;\toffset:16;\tsize:4;\tsigned:0;\n"
                           "\tfield:unsigned long args[];\toffset:24;\tsize:0;\tsigned:0;\n",
                           NULL),
                     0);
    ck_assert_int_eq(event_program_compile(&p, &file, "ftrace", PROGRAM_TYPED_OR_GENERIC, 65536, &a, NULL), 0);
    ck_assert_uint_eq(p.n_steps, 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(p.steps[i].code, p.steps[i].field_no == 2 ? STEP_ADDRESS : STEP_U32);
    arena_free(&a);
}
END_TEST

/* Events of nothing but words of 8 bytes, as system calls are, with words of every length. */
START_TEST(words_become_fields)
{
    enum { ARGS = 6, AT = 8 };
    struct arena a = {0};
    struct event_program p;
    ck_assert_int_eq(parse("name: sys_enter\nID: 7\nformat:\n" COMMON
                           "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
                           "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
                           NULL),
                     0);
    ck_assert_int_eq(event_program_compile(&p, &file, "raw_syscalls", PROGRAM_TYPED_OR_GENERIC, 65536, &a, NULL), 0);
    ck_assert(p.of_words);
    for (unsigned bits = 0; bits < 64; bits++) {
        uint64_t words[1 + ARGS] = {1ull << bits};
        uint8_t event[AT + sizeof words] = {0}, made[256], want[256];
        size_t n = 0;
        for (unsigned i = 1; i <= ARGS; i++)
            words[i] = ((1ull << bits) - 1) ^ (uint64_t)i * 5 << (bits / 2);
        memcpy(event + AT, words, sizeof words);
        for (unsigned i = 0; i <= ARGS; i++) {
            want[n++] = (i ? FTRACE_SYS_ENTER_ARGS : FTRACE_SYS_ENTER_ID) << 3;
            n += pb_encode_varint(want + n, words[i]);
        }
        ck_assert_ptr_null(event_program_payload(&p, &(struct program_context){0}, event, sizeof event - 1, made));
        uint8_t *end = event_program_payload(&p, &(struct program_context){0}, event, sizeof event, made);
        ck_assert_uint_eq((size_t)(end - made), n);
        ck_assert_int_eq(memcmp(made, want, n), 0);
    }
    arena_free(&a);
}
END_TEST

START_TEST(compact_offsets_need_the_known_shape)
{
    struct compact_offsets o = {0};
    const char *fmt =
        "name: sched_switch\nID: 5\nformat:\n" COMMON "\tfield:%s prev_state;\toffset:8;\tsize:%d;\tsigned:1;\n"
        "\tfield:pid_t next_pid;\toffset:16;\tsize:4;\tsigned:1;\n"
        "\tfield:int next_prio;\toffset:20;\tsize:4;\tsigned:1;\n"
        "\tfield:char next_comm[16];\toffset:24;\tsize:%d;\tsigned:0;\n";
    char text[1024];
    snprintf(text, sizeof text, fmt, "long", 8, 16);
    ck_assert_int_eq(parse(text, NULL), 0);
    ck_assert(compact_switch_offsets(&file, &o));
    ck_assert(o.prev_state_is_64);
    ck_assert_uint_eq(o.next_comm, 24);
    snprintf(text, sizeof text, fmt, "int", 4, 16);
    ck_assert_int_eq(parse(text, NULL), 0);
    ck_assert(compact_switch_offsets(&file, &o));
    ck_assert(!o.prev_state_is_64);
    snprintf(text, sizeof text, fmt, "long", 8, 32);
    ck_assert_int_eq(parse(text, NULL), 0);
    ck_assert(!compact_switch_offsets(&file, &o));
    ck_assert(!compact_waking_offsets(&file, &o));
}
END_TEST

Suite *ftrace_format_suite(void);
Suite *ftrace_format_suite(void)
{
    Suite *s = suite_create("ftrace_format");
    TCase *t = tcase_create("format");
    tcase_add_test(t, a_format_file_is_read);
    tcase_add_loop_test(t, a_format_file_that_lies_is_refused, 0, (int)(sizeof lies / sizeof *lies));
    tcase_add_test(t, too_many_fields_are_refused);
    tcase_add_test(t, the_page_header_is_read);
    tcase_add_test(t, common_fields_must_be_in_place);
    tcase_add_test(t, a_field_of_another_type_is_left_out);
    tcase_add_test(t, addresses_of_functions_do_not_get_out);
    tcase_add_test(t, words_become_fields);
    tcase_add_test(t, compact_offsets_need_the_known_shape);
    suite_add_tcase(s, t);
    return s;
}
