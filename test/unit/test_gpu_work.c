/* Tests what GPUs tell: render stages with their queues, names, args and flows; counters; Vulkan's memory; logs. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

static struct trace_fixture f;
static struct pb_writer *w;

static void setup(void)
{
    trace_fixture_open(&f);
    w = &f.w;
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))
#define ARGS(table, column, row) fixture_args(&f, ROW_ARGS(&f.st, table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

/* The track of a slice: its name. */
static const char *track_name(uint32_t slice)
{
    return TEXT(track, name, (uint32_t)GET(slice, track_id, slice));
}

START_TEST(stages_by_iid)
{
    PACKET(10, "13:1 12{23{1:9 2:7 3:4} 24{1:1 2'queue' 3'runs' 4:0} 24{1:2 2'kernel' 3'computes' 4:2} 2{1:3 2'named'}"
               "1000{1:5 2'_Z1k' 3'k()' 4'sm_90' 5{2'regs' 4:32}} 1001{1:6 2'blocks'} 29{1:8 2'text'}}");
    PACKET(20, "53{1:100 2:30 5:9 13:1 14:2 19:5 21{1{1:2 3:4} 2{2:8} 3{1:6 3:-1} 3{2's' 7:8} 3{2'none'}}}");
    PACKET(25, "53{1:101 2:30 5:9 13:1 14:2 20:3 16:77 18:100}"); /* overlaps: another track of the set */
    PACKET(30, "53{1:102 2:30 13:4 14:2}");                       /* a queue that nothing describes */
    PACKET(31, "53{2:30 5:9 13:1}");                              /* no event, no slice */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_str_eq(TEXT(slice, name, 0), "kernel");
    ck_assert_int_eq(GET(slice, dur, 0), 30);
    ck_assert_str_eq(track_name(0), "queue");
    ck_assert_str_eq(ARGS(track, source_arg_set_id, (uint32_t)GET(slice, track_id, 0)), "description=runs");
    ck_assert_str_eq(ARGS(track, dimension_arg_set_id, (uint32_t)GET(slice, track_id, 0)),
                     "ugpu=0 gpu=0 render_stage_source=iid hwqueue_id=1 hwqueue_name=queue track_compressor_idx=0");
    ck_assert_str_eq(
        ARGS(slice, arg_set_id, 0),
        "render_stage_category=2 description=computes kernel_name=_Z1k kernel_demangled_name=k() arch=sm_90 regs=32 "
        "launch.grid_size.x=2 launch.grid_size.z=4 launch.workgroup_size.y=8 blocks=-1 s=text context_id=9 "
        "render_target=0 render_target_name=(null) render_pass=0 render_pass_name=(null) render_subpasses=(null) "
        "command_buffer=0 command_buffer_name=(null) submission_id=0 hw_queue_id=1 upid=1");
    ck_assert_str_eq(TEXT(slice, name, 1), "named");
    ck_assert_int_eq(GET(slice, depth, 1), 0);
    ck_assert_int_ne(GET(slice, track_id, 0), GET(slice, track_id, 1));
    ck_assert_ptr_nonnull(strstr(ARGS(slice, arg_set_id, 1), "correlation_id=rp:#77 context_id=9"));
    ck_assert_uint_eq(ROWS(gpu_context), 1);
    ck_assert_int_eq(GET(gpu_context, context_id, 0), 9);
    ck_assert_int_eq(GET(gpu_context, pid, 0), 7);
    ck_assert_str_eq(TEXT(gpu_context, api, 0), "CUDA");
    ck_assert_uint_eq(ROWS(flow), 1);
    ck_assert_int_eq(GET(flow, slice_out, 0), 0);
    ck_assert_int_eq(GET(flow, slice_in, 0), 1);
    ck_assert_int_eq(GET(flow, trace_id, 0), COL_NULL);
}
END_TEST

START_TEST(stages_by_id)
{
    PACKET(10, "53{1:1 2:5 3:1 4:7 8:5 9:6 12:7}"); /* neither queue nor stage is described yet */
    PACKET(20, "53{7{1{1:3 2:42} 2{2'no name'} 2{1'q1' 2'second'} 3{2'no name'} 3{1's0' 2'first stage'}}"
               "65{1{3:24 4:5 5'target'} 1{3:18 4:6 5'pass'} 1{3:6 4:7 5'buffer'}}}");
    PACKET(21, "65{1{3:24 4:5 5'target'}}");
    PACKET(22, "65{1{3:18 4:6 5'pass'}}");
    PACKET(23, "65{1{3:6 4:7 5'buffer'}}");
    PACKET(30, "53{1:2 3:1 4:0 6{1'extra' 2'value'} 6{1'empty'} 8:5 9:6 12:7 15:5 15:3 10:12 7{1{1:3 2:42}}}");
    PACKET(40, "53{1:3 3:1 17'own'}");
    PACKET(50, "53{1:4 2:5 3:-1 4:-1}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 4);
    ck_assert_str_eq(TEXT(slice, name, 3), "render stage(18446744073709551615)");
    ck_assert_str_eq(track_name(3), "Unknown GPU Queue 4294967295");
    ck_assert_str_eq(TEXT(slice, name, 0), "render stage(7)");
    ck_assert_str_eq(track_name(0), "q1"); /* renamed */
    ck_assert_str_eq(ARGS(track, source_arg_set_id, (uint32_t)GET(slice, track_id, 0)), "description=second");
    ck_assert_str_eq(TEXT(slice, name, 1), "s0");
    ck_assert_int_eq(GET(slice, dur, 1), 0);
    ck_assert_str_eq(track_name(1), "q1");
    ck_assert_int_ne(GET(slice, track_id, 0), GET(slice, track_id, 1));
    ck_assert_str_eq(ARGS(slice, arg_set_id, 1),
                     "description=first stage extra=value empty=(null) context_id=0 render_target=5 "
                     "render_target_name=target render_pass=6 render_pass_name=pass render_subpasses=0,2,64,65 "
                     "command_buffer=7 command_buffer_name=buffer submission_id=12 hw_queue_id=1 upid=1");
    ck_assert_int_eq(GET(process, pid, 1), 42);
    ck_assert_str_eq(TEXT(slice, name, 2), "own");
    ck_assert_uint_eq(ROWS(gpu_context), 0);
    ck_assert_int_eq(STAT(gpu_render_stage_parser_errors), 0);
}
END_TEST

START_TEST(hosts_and_stages_are_linked_in_any_order)
{
    PACKET(5, "60{1:1 3{1:7 2:8}}");
    PACKET(10, "11{9:3 11:1 23'submit' 3000{1:100} 3001:4}"); /* before its stage */
    PACKET(20, "53{1:100 2:5}");
    PACKET(30, "11{9:3 11:1 23'wait' 3000{2:100}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 3);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 0),
                     "gpu_correlation.render_stage_submission_event_ids[0]=100 gpu_api=GPU_API_CUDA");
    ck_assert_uint_eq(ROWS(flow), 2);
    ck_assert_int_eq(GET(flow, slice_out, 0), 0);
    ck_assert_int_eq(GET(flow, slice_in, 0), 1);
    ck_assert_int_eq(GET(flow, slice_out, 1), 1);
    ck_assert_int_eq(GET(flow, slice_in, 1), 2);
}
END_TEST

START_TEST(counters_by_iid_and_inline)
{
    PACKET(1, "13:1 12{47{1:1 2{1{1:5 2'clocks' 7:20 7:7 8:22 8:0 8:21 11:2 10:6} 6{1:6 2'COMPUTE' 3'kernels'}} 3:2}}");
    PACKET(10, "52{4:1 2{1:5 2:3} 2{1:6 2:1}}"); /* 6 is not described */
    PACKET(11, "52{4:9 2{1:5 2:3}}");
    PACKET(20, "52{1{1{1:1 2'in'} 1{1:1 2'again'} 1{2'no id'} 6{1:3 2'group' 4:1}} 2{1:1 2:4} 2{1:77 2:1} 2{1:1}}");
    PACKET(30, "52{2{1:1 2:5}}");
    size_t packet = pb_begin(w, 1); /* no time: the description counts, the value does not */
    put(w, "10:1 52{1{1{1:8 2'late'}} 2{1:8 2:1}}");
    pb_end(w, packet);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(track), 3);
    ck_assert_str_eq(TEXT(track, name, 0), "clocks");
    ck_assert_str_eq(TEXT(track, counter_unit, 0), "us:B/s:ms");
    ck_assert_str_eq(ARGS(track, dimension_arg_set_id, 0), "ugpu=0 gpu=2 name=clocks");
    ck_assert_str_eq(ARGS(track, source_arg_set_id, 0), "description=(null)");
    ck_assert_uint_eq(ROWS(counter), 3);
    ck_assert_double_eq(column_f64(GET(counter, value, 0)), 3);
    ck_assert_double_eq(column_f64(GET(counter, value, 1)), 5); /* the time before the second sample */
    ck_assert_double_eq(column_f64(GET(counter, value, 2)), 0);
    ck_assert_uint_eq(ROWS(gpu_counter_group), 4);
    ck_assert_int_eq(GET(gpu_counter_group, group_id, 0), 6);
    ck_assert_str_eq(TEXT(gpu_counter_group, name, 0), "COMPUTE");
    ck_assert_str_eq(TEXT(gpu_counter_group, description, 0), "kernels");
    ck_assert_int_eq(GET(gpu_counter_group, group_id, 1), 0);
    ck_assert_str_eq(TEXT(gpu_counter_group, name, 2), "group");
    ck_assert_int_eq(STAT(gpu_counters_invalid_spec), 4); /* two unknown, two descriptions */
    ck_assert_int_eq(STAT(gpu_counters_missing_timestamp), 1);
    ck_assert_uint_eq(ROWS(trace_import_logs), 3);
}
END_TEST

START_TEST(vulkan_and_logs)
{
    PACKET(10, "13:1 12{22{1:1 2'key'} 5{1:2 2'vkCreate'}}");
    PACKET(20, "62{1:1 2:1 3:15 4:7 6:100 7:2 8:2 9{1:1 2:5} 9{1:1 2:6}}");
    PACKET(21, "62{1:1 2:2 3:16 4:7 6:40 8:2}");
    PACKET(22, "62{1:4 2:3 3:17 4:7 6:9 18:3}");
    PACKET(30, "63{1:4 2'tag' 3'hot'}");
    PACKET(31, "63{1:40}");
    PACKET(40, "65{2{1:6 2:7 3:8 5:21 5:22 6:5}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(vulkan_memory_allocations), 3);
    ck_assert_str_eq(TEXT(vulkan_memory_allocations, source, 0), "DRIVER");
    ck_assert_str_eq(TEXT(vulkan_memory_allocations, operation, 0), "CREATE");
    ck_assert_str_eq(TEXT(vulkan_memory_allocations, scope, 0), "OBJECT");
    ck_assert_str_eq(TEXT(vulkan_memory_allocations, function_name, 0), "vkCreate");
    ck_assert_int_eq(GET(vulkan_memory_allocations, timestamp, 0), 15);
    ck_assert_str_eq(ARGS(vulkan_memory_allocations, arg_set_id, 0), "key=6");
    ck_assert_str_eq(TEXT(vulkan_memory_allocations, source, 2), "GPU_BUFFER");
    ck_assert_int_eq(GET(vulkan_memory_allocations, scope, 2), 0);
    ck_assert_uint_eq(ROWS(counter), 3);
    ck_assert_int_eq(GET(counter, ts, 0), 15);
    ck_assert_double_eq(column_f64(GET(counter, value, 1)), 60);
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(counter, track_id, 0)), "vulkan.mem.driver.scope.OBJECT");
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(counter, track_id, 2)), "vulkan.mem.device.memory.type.3.bind");
    ck_assert_uint_eq(ROWS(slice), 3);
    ck_assert_str_eq(TEXT(slice, name, 0), "WARNING");
    ck_assert_str_eq(ARGS(slice, arg_set_id, 0), "tag=tag message=hot");
    ck_assert_str_eq(TEXT(slice, name, 1), "UNKNOWN_SEVERITY");
    ck_assert_str_eq(track_name(1), "GPU Log");
    ck_assert_str_eq(TEXT(slice, name, 2), "vkQueueSubmit");
    ck_assert_int_eq(GET(slice, dur, 2), 6);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 2),
                     "pid=7 tid=8 command_buffer=21 command_buffers[0]=21 command_buffers[1]=22 submission_id=5");
}
END_TEST

/* Processes write into the file in turns; the sums go over all of them, in the order of time. */
START_TEST(memory_of_vulkan_is_summed_up_in_the_order_of_time)
{
    PACKET(100, "10:1 13:1 62{1:1 2:1 3:95 4:7 6:100 8:2}");
    PACKET(300, "10:1 62{1:1 2:1 3:295 4:7 6:10 8:2}");
    PACKET(200, "10:2 62{1:1 2:1 3:195 4:8 6:1 8:2}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(counter), 3);
    ck_assert_int_eq(GET(counter, ts, 1), 195);
    ck_assert_double_eq(column_f64(GET(counter, value, 0)), 100);
    ck_assert_double_eq(column_f64(GET(counter, value, 1)), 101);
    ck_assert_double_eq(column_f64(GET(counter, value, 2)), 111);
    ck_assert_int_eq(GET(process, pid, 2), 8);
}
END_TEST

START_TEST(sessions_of_others_have_states)
{
    PACKET(10, "134{1:2 2'mine' 3:5 4:1000 5:3}");
    PACKET(20, "134{1:3 3:5}");
    PACKET(25, "134{1:5 3:6}");
    PACKET(30, "134{1:1 3:5}");
    PACKET(40, "134{1:99 3:5}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(state), 4);
    ck_assert_str_eq(TEXT(state, value, 0), "CONFIGURED");
    ck_assert_int_eq(GET(state, dur, 0), 10);
    ck_assert_str_eq(ARGS(state, arg_set_id, 0), "consumer_uid=1000 num_data_sources=3");
    ck_assert_str_eq(ARGS(state, arg_set_id, 1), "consumer_uid=0 num_data_sources=0");
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(state, track_id, 0)), "mine");
    ck_assert_int_eq(GET(state, dur, 1), 10);
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(state, track_id, 2)), "Session 6 (clone)");
    ck_assert_int_eq(GET(state, dur, 2), -1);
    ck_assert_str_eq(TEXT(state, value, 3), "DISABLED");
    ck_assert_int_eq(GET(state, dur, 3), 0);
    ck_assert_int_eq(STAT(concurrent_session_event_unknown_state), 1);
}
END_TEST

Suite *gpu_work_suite(void);

Suite *gpu_work_suite(void)
{
    Suite *s = suite_create("gpu_work");
    TCase *c = tcase_create("packets");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, stages_by_iid);
    tcase_add_test(c, stages_by_id);
    tcase_add_test(c, hosts_and_stages_are_linked_in_any_order);
    tcase_add_test(c, counters_by_iid_and_inline);
    tcase_add_test(c, vulkan_and_logs);
    tcase_add_test(c, memory_of_vulkan_is_summed_up_in_the_order_of_time);
    tcase_add_test(c, sessions_of_others_have_states);
    suite_add_tcase(s, c);
    return s;
}
