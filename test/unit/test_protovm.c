/* ProtoVM: programs that change a state by patches, rule by rule, and states imported in the place of patches. */
#include "importer/protovm/program.h"
#include "wire/fields.h"

#include "pb_text.h"
#include "trace_fixture.h"

#define SRC "1:1"
#define DST "1:2"
#define NEW "3:1"
/* Instructions; a part of a path is 2{1:FIELD}, of a list 2{1:FIELD 5:1}, behind a field 2{2:INDEX} or 2{3:KEY_FIELD
 * 6:REGISTER}. */
#define SELECT(select, nested) "1{" select "} " nested
#define IN(nested)             "7{" nested "} "
#define DO(instruction)        "2{" instruction "} "
#define MERGE                  "3{} "
#define MERGE_SKIP             "3{1:1} "
#define MERGE_DELETE           "3{2:1} "
#define SET                    "4{} "
#define DEL                    "5{} "
#define LOAD(cursor, reg)      "2{" cursor " 2:" reg "} "
#define GO_ON                  "6:1 "
#define ABORT                  "6:3 "

static const struct {
    const char *what, *program, *state, *patch;
    enum vm_status status;
    const char *after;
} rules[] = {
    {"a program without instructions changes nothing", "1:1", "1:5", "1:6", VM_OK, "1:5"},
    {"merge: fields of the patch take the place of those of the state", DO(MERGE), "1:1 2'two' 3{1:1}",
     "2'TWO' 3{2:2} 4:4", VM_OK, "1:1 2'TWO' 3{2:2} 4:4"},
    {"merge: an empty patch changes nothing", DO(MERGE), "1:1", "", VM_OK, "1:1"},
    {"merge: a list is replaced as a whole", DO(MERGE), "1:1 1:2 1:3 2:9", "1:7 1:8", VM_OK, "1:7 1:8 2:9"},
    {"merge: a value that came once is replaced by the last", DO(MERGE), "1:1", "1:7 1:8", VM_OK, "1:8"},
    {"merge: a submessage deeper down, the rest kept",
     DO(SELECT(SRC " 2{1:3}", IN(SELECT(DST " 2{1:3}", IN(MERGE))))) DO(MERGE_SKIP), "1:1 3{1:1 2:2}", "1:5 3{2:7}",
     VM_OK, "1:5 3{1:1 2:7}"},
    {"merge: messages are skipped only when they were entered", DO(MERGE_SKIP), "3{1:1 2:2}", "3{2:7}", VM_OK,
     "3{2:7}"},
    {"merge: an empty message deletes", DO(MERGE_DELETE), "1:1 3{1:1}", "3{}", VM_OK, "1:1"},
    {"merge: an empty message that is not there is made", DO(MERGE_DELETE), "1:1", "3{}", VM_OK, "1:1 3{}"},
    {"merge: of a number", DO(SELECT(SRC " 2{1:1}", IN(MERGE))), "", "1:5", VM_ABORT, ""},
    {"merge: into a number", DO(SELECT(SRC " 2{1:3}", IN(SELECT(DST " 2{1:1}", IN(MERGE))))), "1:5", "3{1:1}", VM_ABORT,
     "1:5"},
    {"set: a message is replaced", DO(SELECT(SRC " 2{1:3}", IN(SELECT(DST " 2{1:3}", IN(SET))))), "1:1 3{1:1 2:2}",
     "3{2:7}", VM_OK, "1:1 3{2:7}"},
    {"set: a number, made when it is not there",
     DO(SELECT(SRC " 2{1:1}", IN(SELECT(DST " " NEW " 2{1:4} 2{1:2}", IN(SET))))), "", "1:5", VM_OK, "4{2:5}"},
    {"set: bytes into a number", DO(SELECT(SRC " 2{1:2}", IN(SELECT(DST " 2{1:1}", IN(SET))))), "1:5", "2'x'", VM_ABORT,
     "1:5"},
    {"select: of what is not there ends the instructions around it", DO(SELECT(SRC " 2{1:9}", IN(MERGE))) DO(MERGE),
     "1:1", "1:2", VM_ERROR, "1:1"},
    {"select: … or only itself", DO(SELECT(SRC " 2{1:9}", IN(MERGE)) GO_ON) DO(MERGE), "1:1", "1:2", VM_OK, "1:2"},
    {"select: … or aborts", DO(SELECT(SRC " 2{1:9}", IN(MERGE)) ABORT) DO(MERGE), "1:1", "1:2", VM_ABORT, "1:1"},
    {"select: of the state, not there and not to be made", DO(SELECT(DST " 2{1:9}", IN(MERGE))), "1:1", "1:2", VM_ERROR,
     "1:1"},
    {"select: in a patch nothing is made", DO(SELECT(SRC " " NEW " 2{1:9}", IN(MERGE))), "1:1", "1:2", VM_ABORT, "1:1"},
    {"select: both at once", DO(SELECT("1:3 2{1:3}", IN(MERGE))), "3{1:1 2:2}", "3{2:7}", VM_OK, "3{1:1 2:7}"},
    {"select: a list is no single value", DO(SELECT(DST " 2{1:1}", IN(DEL))), "1:1 1:2", "", VM_ABORT, "1:1 1:2"},
    {"select: an index of the patch, one of the state",
     DO(SELECT(SRC " 2{1:1} 2{2:1}", IN(SELECT(DST " 2{1:2} 2{2:0}", IN(SET))))), "2:7 2:8", "1:3 1:4", VM_OK,
     "2:4 2:8"},
    {"select: the index behind the last is made", DO(SELECT(SRC " 2{1:1}", IN(SELECT(DST " 2{1:2} 2{2:2}", IN(SET))))),
     "2:7 2:8", "1:3", VM_OK, "2:7 2:8 2:3"},
    {"select: an index further behind", DO(SELECT(SRC " 2{1:1}", IN(SELECT(DST " 2{1:2} 2{2:3}", IN(SET))))), "2:7 2:8",
     "1:3", VM_ABORT, "2:7 2:8"},
    {"each message of the patch by its key, new ones made, in the order of keys",
     DO(SELECT(SRC " 2{1:2 5:1}",
               IN(SELECT(SRC " 2{1:1}", IN(LOAD(SRC, "3")))) IN(SELECT(DST " " NEW " 2{1:2} 2{3:1 6:3}", IN(MERGE))))),
     "2{1:5 2'five'} 2{1:3 2'three'}", "2{1:4 2'four'} 2{1:5 2'FIVE'}", VM_OK,
     "2{1:3 2'three'} 2{1:4 2'four'} 2{1:5 2'FIVE'}"},
    {"messages deleted by key",
     DO(SELECT(SRC " 2{1:9 5:1}", IN(LOAD(SRC, "0")) IN(SELECT(DST " 2{1:2} 2{3:1 6:0}", IN(DEL))))),
     "2{1:5 2'five'} 2{1:3 2'three'} 2{1:4}", "9:3 9:8 9:5", VM_OK, "2{1:4}"},
    {"a single message is a map of one",
     DO(SELECT(SRC " 2{1:1}", IN(LOAD(SRC, "0")))) DO(SELECT(DST " 2{1:2} 2{3:1 6:0}", IN(DEL))), "2{1:5}", "1:5",
     VM_OK, ""},
    {"a key that no message has",
     DO(SELECT(SRC " 2{1:1}", IN(LOAD(SRC, "0")))) DO(SELECT(DST " 2{1:2} 2{3:1 6:0}", IN(DEL))), "2{2:5}", "1:5",
     VM_ABORT, "2{2:5}"},
    {"two messages of one key",
     DO(SELECT(SRC " 2{1:1}", IN(LOAD(SRC, "0")))) DO(SELECT(DST " 2{1:2} 2{3:1 6:0}", IN(DEL))), "2{1:5} 2{1:5}",
     "1:5", VM_ABORT, "2{1:5} 2{1:5}"},
    {"a register that nobody loaded", DO(SELECT(DST " 2{1:2} 2{3:1 6:0}", IN(DEL))), "2{1:5}", "", VM_ABORT, "2{1:5}"},
    {"a register that is none", DO(SELECT(SRC " 2{1:1}", IN(LOAD(SRC, "32")))), "", "1:5", VM_ABORT, ""},
    {"registers of a message's bytes", DO(SELECT(SRC " 2{1:1}", IN(LOAD(SRC, "1")))), "", "1'x'", VM_ABORT, ""},
    {"a register from the state, and a key from it",
     DO(SELECT(DST " 2{1:1}", IN(LOAD(DST, "1")))) DO(SELECT(DST " 2{1:2} 2{3:1 6:1}", IN(DEL))), "1:3 2{1:3} 2{1:4}",
     "", VM_OK, "1:3 2{1:4}"},
    {"each element of the state", DO(SELECT(DST " 2{1:2 5:1} 2{1:2}", IN(DEL))), "2{1:1 2:2} 2{1:2 2:3}", "", VM_OK,
     "2{1:1} 2{1:2}"},
    {"the number of each element",
     DO(SELECT(DST " 2{1:2 5:1 7:4}",
               IN(SELECT(DST " " NEW " 2{1:3} 2{3:1 6:4}", IN(SELECT(SRC " 2{1:5}", IN(MERGE))))))),
     "2{1:1} 2{1:2}", "5{9:9}", VM_OK, "2{1:1 3{9:9}} 2{1:2 3{9:9}}"},
    {"nothing to go through", DO(SELECT(DST " 2{1:2 5:1}", IN(DEL))) DO(SELECT(SRC " 2{1:2 5:1}", IN(DEL))), "1:1", "",
     VM_OK, "1:1"},
    {"both cannot be gone through at once", DO(SELECT("1:3 2{1:2 5:1}", IN(DEL))), "2{}", "2{}", VM_ABORT, "2{}"},
    {"delete: the root is emptied", DO(DEL), "1:1 2{1:1}", "", VM_OK, ""},
    {"delete: what was deleted is gone for all who were there",
     DO(SELECT(DST " 2{1:2}", IN(SELECT(SRC " 2{1:1}", IN(DEL))) IN(MERGE))), "2{1:1} 3:3", "1:1", VM_ABORT, "3:3"},
    {"delete: elements behind move up",
     DO(SELECT(DST " 2{1:2} 2{2:0}", IN(DEL))) DO(SELECT(SRC " 2{1:1}", IN(SELECT(DST " 2{1:2} 2{2:2}", IN(SET))))),
     "2:1 2:2 2:3", "1:9", VM_OK, "2:2 2:3 2:9"},
    {"an index without a field", DO(SELECT(SRC " 2{2:0}", IN(MERGE))), "", "1:1", VM_ABORT, ""},
    {"no operation", DO("6:1"), "", "", VM_ABORT, ""},
    {"into bytes that are no message", DO(SELECT(DST " 2{1:1} 2{1:1}", IN(DEL))), "1'\1'", "", VM_ABORT, "1'\1'"},
};

static struct slice text(struct pb_writer *w, const char *fields)
{
    pb_writer_clear(w);
    put(w, "%s", fields);
    return pb_written(w);
}

/* The same fields, however their lengths are written. */
static bool same(struct slice a, struct slice b)
{
    struct pb_cursor ca = pb_cursor(a), cb = pb_cursor(b);
    struct pb_field fa, fb;
    while (pb_next(&ca, &fa)) {
        if (!pb_next(&cb, &fb) || fa.id != fb.id || fa.wire != fb.wire)
            return false;
        if (fa.wire != PB_BYTES ? fa.u != fb.u
                                : !slice_eq(pb_bytes(&fa), pb_bytes(&fb)) && !same(pb_bytes(&fa), pb_bytes(&fb)))
            return false;
    }
    return !ca.bad && !pb_next(&cb, &fb) && !cb.bad;
}

START_TEST(a_rule)
{
    struct pb_writer program = {0}, state = {0}, patch = {0}, want = {0}, got = {0};
    struct vm_program p = {.bytes = text(&program, rules[_i].program)};
    struct vm_tree t;
    uint64_t work = 10000;
    ck_assert_int_eq(vm_tree_open(&t, text(&state, rules[_i].state), 1 << 20), VM_OK);
    ck_assert_msg(vm_program_run(&p, &t, text(&patch, rules[_i].patch), &work) == rules[_i].status, "%s",
                  rules[_i].what);
    vm_write(&t.root, &got);
    ck_assert_msg(same(pb_written(&got), text(&want, rules[_i].after)), "%s", rules[_i].what);
    vm_tree_close(&t);
    ck_assert_uint_eq(t.held, 0);
    pb_writer_free(&program);
    pb_writer_free(&state);
    pb_writer_free(&patch);
    pb_writer_free(&want);
    pb_writer_free(&got);
}
END_TEST

/* A state that grows past its limit, loops within loops, instructions within instructions: an end, not a crash. */
START_TEST(bounds)
{
    struct pb_writer program = {0}, patch = {0};
    struct vm_tree t;
    uint64_t work = 1 << 20;
    static const char big[4000];
    put(&patch, "1{1:1} 1{1:2} 1{1:3} 1{1:4} 1{1:5} 1{1:6} 1{1:7} 1{1:8}");
    pb_put_bytes(&patch, 2, big, sizeof big);
    struct vm_program merge = {.bytes = text(&program, DO(MERGE))};
    vm_tree_open(&t, slice_of(NULL, 0), 2000);
    ck_assert_int_eq(vm_program_run(&merge, &t, pb_written(&patch), &work), VM_ABORT);
    ck_assert_uint_le(t.held, 2000);
    vm_tree_close(&t);

    size_t marks[40];
    pb_writer_clear(&program);
    for (int i = 0; i < 40; i++) { /* a selection of nothing, in one, in one … */
        marks[i] = pb_begin(&program, i ? VM_INSTRUCTION_NESTED_INSTRUCTIONS : VM_PROGRAM_INSTRUCTIONS);
        put(&program, "1{}");
    }
    for (int i = 40; i-- > 0;)
        pb_end(&program, marks[i]);
    struct vm_program deep = {.bytes = pb_written(&program)};
    vm_tree_open(&t, slice_of(NULL, 0), 1 << 20);
    ck_assert_int_eq(vm_program_run(&deep, &t, pb_written(&patch), &work), VM_ABORT);
    vm_tree_close(&t);

    vm_tree_open(&t, slice_of(NULL, 0), 1 << 20);
    work = 100;
    struct vm_program loops = {
        .bytes = text(&program, DO(SELECT(SRC " 2{1:1 5:1}", IN(SELECT(DST " " NEW " 2{1:7}", IN(MERGE))))))};
    ck_assert_int_eq(vm_program_run(&loops, &t, pb_written(&patch), &work), VM_ABORT);
    ck_assert_uint_eq(work, 0);
    vm_tree_close(&t);
    pb_writer_free(&program);
    pb_writer_free(&patch);
}
END_TEST

/* Keys that come in falling order, and elements that go from the front, move all behind them: that is work, too. */
START_TEST(moves_are_work)
{
    enum { N = 20000, FIELD = 2 };
    static const struct {
        const char *program;
        bool falling;
        enum vm_status status;
    } cases[] = {
        {DO(MERGE), false, VM_OK},
        {DO(MERGE), true, VM_ABORT},
        {DO(SELECT(SRC " 2{1:2 5:1}", IN(LOAD(SRC, "0")) IN(SELECT(DST " " NEW " 2{1:3} 2{3:1 6:0}", IN(SET))))), false,
         VM_OK},
        {DO(SELECT(SRC " 2{1:2 5:1}", IN(LOAD(SRC, "0")) IN(SELECT(DST " " NEW " 2{1:3} 2{3:1 6:0}", IN(SET))))), true,
         VM_ABORT},
        {DO(SELECT(SRC " 2{1:2 5:1}", IN(SELECT(DST " 2{1:2} 2{2:0}", IN(DEL))))), false, VM_ABORT},
    };
    struct pb_writer program = {0}, fields = {0};
    struct vm_tree t;
    uint64_t work = 1 << 20;
    bool is_merge = _i < 2;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t n = cases[_i].falling ? N - i : i + 1;
        pb_put_varint(&fields, is_merge ? n : FIELD, n);
    }
    struct vm_program p = {.bytes = text(&program, cases[_i].program)};
    vm_tree_open(&t, _i == 4 ? pb_written(&fields) : slice_of(NULL, 0), 16 << 20);
    ck_assert_int_eq(vm_program_run(&p, &t, pb_written(&fields), &work), cases[_i].status);
    vm_tree_close(&t);
    ck_assert_uint_eq(t.held, 0);
    pb_writer_free(&program);
    pb_writer_free(&fields);
}
END_TEST

/* Battery counters: a patch has those that changed; each state has all. Sequence 7 is producer 3's. */
#define PROGRAM "1{2{1{1:1 2{1:38}} 7{1{1:2 3:1 2{1:38}} 7{3{}}} 6:1} 2{3{1:1}}}"
static void put_programs(struct trace_fixture *f, const char *producers)
{
    put(&f->w, "1{3:0 10:1 124{2{1{1:7 2:3} 1{1:8 2:4}}}} 1{3:0 10:1 125{1{" PROGRAM " 2{8:1 38{1:900}} 3:64 %s}}}",
        producers);
}

START_TEST(states_in_the_place_of_patches)
{
    struct trace_fixture f;
    trace_fixture_open(&f);
    put_programs(&f, "4:3");
    put(&f.w, "1{3:1000 79:55 10:7 8:100 38{2:50}} 1{3:1000 10:7 8:200 38{2:49}} 1{3:1000 10:8 8:300 38{2:10}}");
    put(&f.w, "1{3:1000 10:7 8:400 42:1 38{2:48}}"); /* a packet before it was lost */
    trace_fixture_load(&f);
    const int64_t *lost = stats_get_idx(&f.st.stats, 0, STAT_sequence_packet_loss_unlisted, 7);
    ck_assert_ptr_nonnull(lost);
    ck_assert_int_eq(*lost, 1);
    ck_assert_uint_eq(f.st.t[T_counter].n_rows, 7); /* charge and capacity of three states, and what sequence 8 wrote */
    trace_fixture_close(&f);
}
END_TEST

START_TEST(what_does_not_fit_is_counted)
{
    struct trace_fixture f;
    trace_fixture_open(&f);
    put_programs(&f, "4:3 4:99");
    put(&f.w, "1{3:1000 10:7 8:100 38:5}"); /* the program enters field 38 */
    trace_fixture_load(&f);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_protovm_registration_error), 1);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_protovm_abort), 1);
    trace_fixture_close(&f);
}
END_TEST

/* The state ends within a field, and the program, which has no instructions, does not look at it. */
START_TEST(a_state_handed_on_damaged_is_counted)
{
    struct trace_fixture f;
    trace_fixture_open(&f);
    put(&f.w, "1{3:0 10:1 124{2{1{1:7 2:3}}}} 1{3:0 10:1 125{1{2'a' 3:64 4:3}}}");
    put(&f.w, "1{3:1000 10:7 8:100}");
    trace_fixture_load(&f);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_tokenizer_skipped_packets), 1);
    trace_fixture_close(&f);
}
END_TEST

Suite *protovm_suite(void);
Suite *protovm_suite(void)
{
    Suite *s = suite_create("protovm");
    TCase *t = tcase_create("protovm");
    tcase_add_loop_test(t, a_rule, 0, sizeof rules / sizeof *rules);
    tcase_add_test(t, bounds);
    tcase_add_loop_test(t, moves_are_work, 0, 5);
    tcase_add_test(t, states_in_the_place_of_patches);
    tcase_add_test(t, what_does_not_fit_is_counted);
    tcase_add_test(t, a_state_handed_on_damaged_is_counted);
    suite_add_tcase(s, t);
    return s;
}
