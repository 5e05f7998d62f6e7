/* Tests tracks, the nesting of slices, and flows. */
#include "importer/track/track_compressor.h"
#include "unit/importer_fixture.h"

static struct importer_fixture f;
static struct slice_tracker *t;
static uint32_t track;

static void setup(void)
{
    importer_fixture_open(&f);
    t = f.im.slices;
    track = track_intern_int(f.im.tracks, 0, "thread_execution", TRACK_SLICE, "utid", 3, 0);
}

static void teardown(void)
{
    importer_fixture_close(&f);
}

#define SLICE(column, row) ROW_GET(&f.st, slice, column, row)
#define STAT(name)         stats_get(&f.st.stats, 0, STAT_##name)

START_TEST(a_track_is_its_type_machine_and_dimensions)
{
    struct track_tracker *tt = f.im.tracks;
    ck_assert_uint_eq(track_intern_int(tt, 0, "thread_execution", TRACK_SLICE, "utid", 3, 0), track);
    ck_assert_uint_ne(track_intern_int(tt, 0, "thread_execution", TRACK_SLICE, "utid", 4, 0), track);
    ck_assert_uint_ne(track_intern_int(tt, 1, "thread_execution", TRACK_SLICE, "utid", 3, 0), track);
    ck_assert_int_eq(ROW_GET(&f.st, track, utid, track), 3);
    ck_assert_int_eq(ROW_GET(&f.st, track, type, track), fixture_str(&f, "thread_execution"));
    ck_assert_int_eq(ROW_GET(&f.st, track, name, track), 0);

    struct track_dim dims[] = {{"upid", DIM_INT, 1}, {"kind", DIM_STR, fixture_str(&f, "a")}};
    struct track_spec spec = {
        .type = "x", .parent = UINT32_MAX, .name = fixture_str(&f, "n"), .dims = dims, .n_dims = 2};
    uint32_t x = track_intern(tt, 0, &spec);
    ck_assert_uint_eq(track_intern(tt, 0, &spec), x);
    spec.name = fixture_str(&f, "other");
    ck_assert_uint_eq(track_intern(tt, 0, &spec), x);
    spec.name_is_key = true;
    ck_assert_uint_ne(track_intern(tt, 0, &spec), x);
    for (int64_t i = 0; i < 3000; i++) /* through several growths of both indexes */
        track_intern_int(tt, 0, "many", TRACK_COUNTER, "cpu", i, 0);
    uint32_t n = f.st.t[T_track].n_rows;
    for (int64_t i = 0; i < 3000; i++)
        track_intern_int(tt, 0, "many", TRACK_COUNTER, "cpu", i, 0);
    ck_assert_uint_eq(f.st.t[T_track].n_rows, n);
    struct arg_list dim = {0};
    args_values(&f.st.args, ROW_ARGS(&f.st, track, dimension_arg_set_id, x), &dim);
    ck_assert_uint_eq(dim.n, 2);
    ck_assert_int_eq(dim.p[1].type, ARG_STRING);
    arg_list_free(&dim);
}
END_TEST

START_TEST(async_slices_share_tracks)
{
    struct track_tracker *tt = f.im.tracks;
    struct track_dim dim = {"upid", DIM_INT, 1};
    struct track_spec spec = {.type = "async", .parent = UINT32_MAX, .dims = &dim, .n_dims = 1};
    uint32_t set = track_set_intern(tt, 0, &spec);
    ck_assert_uint_eq(track_set_intern(tt, 0, &spec), set);
    uint32_t a = track_set_begin(tt, set, 100), b = track_set_begin(tt, set, 200);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(track_set_begin(tt, set, 100), a); /* nests */
    ck_assert_uint_eq(track_set_end(tt, set, 100), a);
    ck_assert_uint_eq(track_set_end(tt, set, 200), b);
    ck_assert_uint_eq(track_set_begin(tt, set, 300), b); /* a is still used */
    ck_assert_uint_eq(track_set_end(tt, set, 100), a);
    ck_assert_uint_eq(track_set_end(tt, set, 300), b);
    ck_assert_uint_eq(track_set_begin(tt, set, 400), a); /* the first that is free */
    dim.value = 2;
    uint32_t other = track_set_intern(tt, 0, &spec);
    ck_assert_uint_ne(other, set);
    uint32_t x = track_set_scoped(tt, other, 10, 5), y = track_set_scoped(tt, other, 12, 5);
    ck_assert_uint_ne(x, y);
    ck_assert_uint_eq(track_set_scoped(tt, other, 15, 5), x);
    ck_assert_uint_eq(track_set_scoped(tt, other, 17, 5), y);
    /* Those of a set are shown as one; a track of no set is no group. */
    int64_t group = ROW_GET(&f.st, track, track_group_id, a);
    ck_assert_int_ne(group, COL_NULL);
    ck_assert_int_eq(ROW_GET(&f.st, track, track_group_id, b), group);
    ck_assert_int_eq(ROW_GET(&f.st, track, track_group_id, y), ROW_GET(&f.st, track, track_group_id, x));
    ck_assert_int_ne(ROW_GET(&f.st, track, track_group_id, x), group);
    dim.value = 3;
    ck_assert_int_eq(ROW_GET(&f.st, track, track_group_id, track_intern(tt, 0, &spec)), COL_NULL);
    for (int64_t i = 0; i < 100; i++)
        track_set_begin(tt, set, 1000 + i);
    uint32_t n = f.st.t[T_track].n_rows;
    for (int64_t i = 99; i >= 0; i--)
        track_set_end(tt, set, 1000 + i);
    ck_assert_uint_eq(track_set_begin(tt, set, 5000), b);
    for (int64_t i = 0; i < 99; i++)
        track_set_begin(tt, set, 6000 + i);
    ck_assert_uint_eq(f.st.t[T_track].n_rows, n);
}
END_TEST

/* The first track that is free, as a look at one after the other finds it; and a crowd that is not looked through. */
START_TEST(complete_slices_take_the_first_free_track)
{
    enum { N = 2000, CROWD = 200000 };
    struct track_tracker *tt = f.im.tracks;
    struct track_spec spec = {.type = "async", .parent = UINT32_MAX};
    uint32_t set = track_set_intern(tt, 0, &spec), tracks[N], n = 0, seed = 1;
    int64_t ends[N];
    for (uint32_t i = 0; i < N; i++) {
        seed = seed * 1103515245 + 12345;
        int64_t ts = i == N - 1 ? INT64_MAX : i + seed / 65536 % 50,
                dur = i % 100 && i < N - 1 ? seed / 65536 % 300 : INT64_MAX;
        uint32_t at = 0, got = track_set_scoped(tt, set, ts, dur);
        while (at < n && ends[at] > ts)
            at++;
        if (at == n)
            tracks[n++] = got;
        ck_assert_uint_eq(got, tracks[at]);
        ends[at] = dur == INT64_MAX ? INT64_MAX : ts + dur;
    }
    ck_assert_uint_gt(n, 20);
    uint32_t before = f.st.t[T_track].n_rows;
    for (int64_t i = 0; i < CROWD; i++)
        track_set_scoped(tt, set, N + i, INT64_MAX);
    ck_assert_uint_gt(f.st.t[T_track].n_rows, before + CROWD / 2);
}
END_TEST

START_TEST(slices_nest)
{
    strid a = fixture_str(&f, "a"), b = fixture_str(&f, "b"), cat = fixture_str(&f, "cat");
    uint32_t ra = slice_begin(t, 0, 10, track, cat, a, ARGSET_NONE),
             rb = slice_begin(t, 0, 12, track, 0, b, ARGSET_NONE);
    ck_assert_int_eq(SLICE(depth, rb), 1);
    ck_assert_int_eq(SLICE(parent_id, rb), ra);
    ck_assert_int_eq(SLICE(dur, rb), -1);
    ck_assert_uint_eq(slice_top(t, track), rb);
    ck_assert_uint_eq(slice_end(t, 0, 15, track, 0, 0, NULL), rb);
    ck_assert_int_eq(SLICE(dur, rb), 3);
    ck_assert_uint_eq(slice_end(t, 0, 20, track, cat, a, NULL), ra);
    ck_assert_uint_eq(slice_end(t, 0, 21, track, 0, 0, NULL), SLICE_NONE);
    ck_assert_uint_eq(slice_top(t, track), SLICE_NONE);
}
END_TEST

START_TEST(an_end_may_name_what_it_ends)
{
    strid a = fixture_str(&f, "a"), b = fixture_str(&f, "b"), cat = fixture_str(&f, "cat");
    uint32_t ra = slice_begin(t, 0, 10, track, cat, a, ARGSET_NONE),
             rb = slice_begin(t, 0, 12, track, 0, b, ARGSET_NONE);
    ck_assert_uint_eq(slice_end(t, 0, 13, track, 0, fixture_str(&f, "c"), NULL), SLICE_NONE);
    ck_assert_uint_eq(slice_end(t, 0, 14, track, cat, 0, NULL), ra); /* not the top: stays under b */
    ck_assert_int_eq(SLICE(dur, ra), 4);
    ck_assert_int_eq(SLICE(dur, rb), -1);
    slice_begin(t, 0, 20, track, 0, a, ARGSET_NONE); /* a is over, so is what lay in it */
    ck_assert_int_eq(STAT(misplaced_end_event), 1);
    ck_assert_int_eq(SLICE(dur, rb), 2);
}
END_TEST

START_TEST(complete_slices_close_by_time)
{
    uint32_t a = slice_scoped(t, 0, 10, track, 0, 0, 10, ARGSET_NONE),
             b = slice_scoped(t, 0, 12, track, 0, 0, 8, ARGSET_NONE);
    ck_assert_int_eq(SLICE(parent_id, b), a);
    uint32_t c = slice_scoped(t, 0, 20, track, 0, 0, 0, ARGSET_NONE),
             d = slice_scoped(t, 0, 20, track, 0, 0, 0, ARGSET_NONE);
    ck_assert_int_eq(SLICE(depth, c), 0);
    ck_assert_int_eq(SLICE(parent_id, d), c); /* two instants at one time nest */
    ck_assert_int_eq(SLICE(depth, slice_scoped(t, 0, 20, track, 0, 0, 5, ARGSET_NONE)), 0);
    ck_assert_uint_eq(slice_scoped(t, 0, 22, track, 0, 0, 5, ARGSET_NONE), SLICE_NONE);
    ck_assert_int_eq(STAT(slice_drop_overlapping_complete_event), 1);
    ck_assert_uint_eq(slice_scoped(t, 0, 30, track, 0, 0, -5, ARGSET_NONE), SLICE_NONE);
    ck_assert_int_eq(STAT(slice_negative_duration), 1);
}
END_TEST

START_TEST(depth_is_bounded)
{
    for (int i = 0; i < 512; i++)
        ck_assert_uint_ne(slice_begin(t, 0, i, track, 0, 0, ARGSET_NONE), SLICE_NONE);
    ck_assert_uint_eq(slice_begin(t, 0, 600, track, 0, 0, ARGSET_NONE), SLICE_NONE);
    ck_assert_int_eq(STAT(slice_max_depth_exceeded), 1);
}
END_TEST

START_TEST(an_end_adds_args)
{
    struct args *args = &f.st.args;
    struct arg_list begin = {0}, end = {0}, all = {0};
    arg_list_int(args, &begin, "x", 1);
    arg_list_int(args, &begin, "y", 2);
    arg_list_int(args, &end, "z", 3);
    arg_list_int(args, &end, "x", 4);
    uint32_t s = slice_begin(t, 0, 1, track, 0, 0, args_intern(args, begin.p, begin.n));
    slice_end(t, 0, 2, track, 0, 0, &end);
    args_values(args, argset_of_cell(SLICE(arg_set_id, s)), &all);
    ck_assert_uint_eq(all.n, 3);
    ck_assert_int_eq(all.p[0].word, 4);
    ck_assert_int_eq(all.p[1].word, 2);
    ck_assert_int_eq(all.p[2].word, 3);
    arg_list_free(&begin);
    arg_list_free(&end);
    arg_list_free(&all);
}
END_TEST

START_TEST(flows_join_slices)
{
    struct flow_tracker *flows = f.im.flows;
    uint32_t t2 = track_intern_int(f.im.tracks, 0, "thread_execution", TRACK_SLICE, "utid", 9, 0);
    flow_begin(flows, 0, track, 1);
    ck_assert_int_eq(STAT(flow_no_enclosing_slice), 1);
    uint32_t a = slice_begin(t, 0, 1, track, 0, 0, ARGSET_NONE), b = slice_begin(t, 0, 2, t2, 0, 0, ARGSET_NONE);
    flow_begin(flows, 0, track, 1);
    flow_begin(flows, 0, track, 1);
    ck_assert_int_eq(STAT(flow_duplicate_id), 1);
    ck_assert(flow_active(flows, 1));
    flow_end(flows, 0, t2, 1, true, true);
    ck_assert(!flow_active(flows, 1));
    ck_assert_uint_eq(f.st.t[T_flow].n_rows, 1);
    ck_assert_int_eq(ROW_GET(&f.st, flow, slice_out, 0), a);
    ck_assert_int_eq(ROW_GET(&f.st, flow, slice_in, 0), b);
    flow_step(flows, 0, t2, 1);
    ck_assert_int_eq(STAT(flow_step_without_start), 1);

    uint64_t id = flow_legacy_id(flows, 5, fixture_str(&f, "cat"), fixture_str(&f, "name"));
    ck_assert_uint_eq(id, flow_legacy_id(flows, 5, fixture_str(&f, "cat"), fixture_str(&f, "name")));
    ck_assert_uint_ne(id, flow_legacy_id(flows, 5, fixture_str(&f, "cat"), fixture_str(&f, "other")));
    flow_begin(flows, 0, track, id);
    flow_end(flows, 0, t2, id, false, false); /* ends at the next slice of the track */
    ck_assert_uint_eq(f.st.t[T_flow].n_rows, 1);
    uint32_t c = slice_begin(t, 0, 3, t2, 0, 0, ARGSET_NONE);
    ck_assert_uint_eq(f.st.t[T_flow].n_rows, 2);
    ck_assert_int_eq(ROW_GET(&f.st, flow, slice_in, 1), c);
    ck_assert_int_ne(ROW_GET(&f.st, flow, arg_set_id, 1), COL_NULL);
}
END_TEST

Suite *slice_tracker_suite(void);

Suite *slice_tracker_suite(void)
{
    Suite *s = suite_create("slice_tracker");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_track_is_its_type_machine_and_dimensions);
    tcase_add_test(c, async_slices_share_tracks);
    tcase_add_test(c, complete_slices_take_the_first_free_track);
    tcase_add_test(c, slices_nest);
    tcase_add_test(c, an_end_may_name_what_it_ends);
    tcase_add_test(c, complete_slices_close_by_time);
    tcase_add_test(c, depth_is_bounded);
    tcase_add_test(c, an_end_adds_args);
    tcase_add_test(c, flows_join_slices);
    suite_add_tcase(s, c);
    return s;
}
