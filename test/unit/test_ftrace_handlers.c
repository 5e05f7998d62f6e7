/* Tests what ftrace events mean: markers, syscalls, tasks, retimed events, states of threads. */
#include "importer/track/thread_state.h"
#include "unit/ftrace_trace.h"

static struct ftrace_trace t;

static void setup(void)
{
    memset(&t, 0, sizeof t);
}

static void teardown(void)
{
    trace_free(&t);
}

/* --- markers ----------------------------------------------------------------------------------------------------- */

/* A line, and what it makes: slices, counters, failures; the type of its track and the name of its slice. */
static const struct marker {
    const char *line;
    uint32_t slices, counters;
    int64_t failures;
    const char *track, *name;
} markers[] = {
    {"B|5|work\n", 1, 0, 0, "thread_execution", "work"},
    {"B|5|a|b|c", 1, 0, 0, "thread_execution", "a|b|c"},
    {"B|5|", 1, 0, 0, "thread_execution", "[empty slice name]"},
    {"B||x", 0, 0, 1, NULL, NULL},
    {"B|-5|x", 1, 0, 0, "thread_execution", "x"}, /* wraps, as strtoul's number does */
    {"E|5", 0, 0, 0, NULL, NULL},
    {"E", 0, 0, 0, NULL, NULL},
    {"C|5|n|-7", 0, 1, 0, "atrace_counter", NULL},
    {"C|5|n|7|Blob", 0, 1, 0, "atrace_counter", NULL},
    {"C|5|n|seven", 0, 0, 1, NULL, NULL},
    {"C|5|n|", 0, 0, 1, NULL, NULL},
    {"C|5|n|99999999999999999999999", 0, 1, 0, "atrace_counter", NULL},
    {"C|5|ScreenState|2", 0, 1, 0, "screen_state", NULL},
    {"C|5|battery_stats.x|2", 0, 1, 0, "battery_stats", NULL},
    {"I|5|now", 1, 0, 0, "thread_execution", "now"},
    {"I|5|", 0, 0, 1, NULL, NULL},
    {"S|5|async|1", 1, 0, 0, "atrace_async_slice", "async"},
    {"N|5|track|now", 1, 0, 0, "atrace_async_slice_for_track", "now"},
    {"G|5|track|slice|3", 1, 0, 0, "atrace_async_slice_for_track", "slice"},
    {"N|5|DeviceStateChanged|folded", 1, 0, 0, "android_device_state", "folded"},
    {"G|5|DeviceStateChanged|slice|3", 1, 0, 0, "atrace_async_slice_for_track", "slice"},
    {"H|5|track|3", 0, 0, 0, NULL, NULL},
    {"H|5|track|x", 0, 0, 1, NULL, NULL},
    {"trace_event_clock_sync: parent_ts=1", 0, 0, 0, NULL, NULL},
    {"some text", 0, 0, 1, NULL, NULL},
    {"", 0, 0, 1, NULL, NULL},
    {"|", 0, 0, 1, NULL, NULL},
};

START_TEST(a_marker)
{
    const struct marker *m = &markers[_i];
    trace_bundle(&t, 0);
    trace_print(&t, 10, 6, m->line);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, slice), m->slices);
    ck_assert_uint_eq(ROWS(&t, counter), m->counters);
    ck_assert_int_eq(TRACE_STAT(&t, systrace_parse_failure), m->failures);
    if (m->track) {
        int64_t track = m->slices ? CELL(&t, slice, track_id, 0) : CELL(&t, counter, track_id, 0);
        ck_assert_str_eq(TEXT_CELL(&t, track, type, (uint32_t)track), m->track);
    }
    if (m->name)
        ck_assert_str_eq(TEXT_CELL(&t, slice, name, 0), m->name);
}
END_TEST

/* An asynchronous slice of S and F does not nest: what begins while it is open is only noted. */
START_TEST(async_markers_do_not_nest)
{
    trace_bundle(&t, 0);
    trace_print(&t, 10, 6, "S|5|lock|1");
    trace_print(&t, 20, 6, "S|5|lock|1");
    trace_print(&t, 30, 6, "F|5|lock|1");
    trace_print(&t, 40, 6, "S|5|lock|2");
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_uint_eq(ROWS(&t, slice), 2);
    ck_assert_int_eq(CELL(&t, slice, dur, 0), 20);
    ck_assert_str_eq(trace_args(&t, CELL(&t, slice, arg_set_id, 0)),
                     "cookie=1 legacy_unnestable_begin_count=2 legacy_unnestable_last_begin_ts=20");
    ck_assert_int_eq(CELL(&t, slice, track_id, 1), CELL(&t, slice, track_id, 0));
    ck_assert_int_eq(CELL(&t, slice, dur, 1), -1);
}
END_TEST

/* --- syscalls ---------------------------------------------------------------------------------------------------- */

static void put_machine(const char *arch)
{
    trace_packet(&t);
    size_t s = pb_begin(&t.w, 45); /* system_info */
    size_t u = pb_begin(&t.w, 1);
    pb_put_str(&t.w, 1, "Linux");
    pb_put_str(&t.w, 4, arch);
    pb_end(&t.w, u);
    pb_end(&t.w, s);
    pb_end(&t.w, t.packet);
}

static void put_enter(uint64_t ts, uint32_t pid, uint64_t number, uint64_t arg)
{
    struct pb_writer p = {0};
    pb_put_varint(&p, 1, number);
    pb_put_varint(&p, 2, arg);
    pb_put_varint(&p, 2, UINT64_MAX);
    trace_event(&t, ts, pid, FTRACE_EVENT_SYS_ENTER, &p);
    pb_writer_free(&p);
}

static void put_exit(uint64_t ts, uint32_t pid, uint64_t number, int64_t ret)
{
    struct pb_writer p = {0};
    pb_put_varint(&p, 1, number);
    pb_put_i64(&p, 2, ret);
    trace_event(&t, ts, pid, FTRACE_EVENT_SYS_EXIT, &p);
    pb_writer_free(&p);
}

static const struct call {
    const char *arch;
    uint64_t number;
    const char *name;
} calls[] = {
    {"x86_64", 0, "sys_read"},    {"x86_64", 262, "sys_newfstatat"}, {"x86_64", 4, "sys_newstat"},
    {"aarch64", 63, "sys_read"},  {"aarch64", 0, "sys_io_setup"},    {"aarch64", 222, "sys_mmap"},
    {"i686", 1, "sys_exit"},      {"armv7l", 3, "sys_read"},         {"armv8l", 4, "sys_write"},
    {"x86_64", 549, "sys_549"},   {"riscv64", 63, "sys_63"},         {"x86_64", 550, NULL},
    {"x86_64", UINT64_MAX, NULL},
};

START_TEST(a_call_has_the_name_of_its_machine)
{
    put_machine(calls[_i].arch);
    trace_bundle(&t, 0);
    put_enter(10, 6, calls[_i].number, 1);
    put_exit(15, 6, calls[_i].number, -11);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, slice), calls[_i].name ? 1 : 0);
    if (!calls[_i].name)
        return;
    ck_assert_str_eq(TEXT_CELL(&t, slice, name, 0), calls[_i].name);
    ck_assert_int_eq(CELL(&t, slice, dur, 0), 5);
    ck_assert_str_eq(trace_args(&t, CELL(&t, slice, arg_set_id, 0)), "args[0]=1 args[1]=-1 ret=-11");
}
END_TEST

/* Args of every length that is kept: two bytes each, the first one of three where that is odd. A call that comes again
 * is read another way. */
START_TEST(a_call_has_its_args)
{
    struct pb_writer p = {0};
    char expected[1024];
    int n = 0;
    put_machine("x86_64");
    trace_bundle(&t, 0);
    pb_put_varint(&p, 1, 0);
    for (int i = 0; i < (_i + 1) / 2; i++) {
        int value = i == 0 && _i % 2 ? 300 : 1 + i;
        pb_put_varint(&p, 2, (uint64_t)value);
        n += snprintf(expected + n, sizeof expected - (size_t)n, "args[%d]=%d ", i, value);
    }
    for (uint64_t ts = 10; ts < 40; ts += 10) {
        struct pb_writer again = {0};
        pb_put_raw(&again, p.p, p.n);
        trace_event(&t, ts, 6, FTRACE_EVENT_SYS_ENTER, &again);
        pb_writer_free(&again);
        put_exit(ts + 5, 6, 0, -11);
    }
    pb_writer_free(&p);
    trace_bundle_end(&t);
    trace_import(&t);
    snprintf(expected + n, sizeof expected - (size_t)n, "ret=-11");
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_str_eq(trace_args(&t, CELL(&t, slice, arg_set_id, i)), expected);
}
END_TEST

/* A marker is written by write(2): the call's slice ends where the marker's begins. Calls that do not return keep
 * their args. */
START_TEST(a_marker_ends_the_write_that_carries_it)
{
    put_machine("x86_64");
    trace_bundle(&t, 0);
    put_enter(10, 6, 1, 8);
    trace_print(&t, 12, 6, "B|6|work");
    put_exit(15, 6, 1, 8);
    put_enter(16, 6, 39, 0);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_uint_eq(ROWS(&t, slice), 3);
    ck_assert_int_eq(CELL(&t, slice, dur, 0), 2);
    ck_assert_int_eq(CELL(&t, slice, dur, 1), -1);
    ck_assert_int_eq(CELL(&t, slice, depth, 1), 0);
    ck_assert_int_eq(TRACE_STAT(&t, truncated_sys_write_duration), 1);
    ck_assert_str_eq(trace_args(&t, CELL(&t, slice, arg_set_id, 0)), "args[0]=8 args[1]=-1");
    ck_assert_str_eq(trace_args(&t, CELL(&t, slice, arg_set_id, 2)), "args[0]=0 args[1]=-1");
}
END_TEST

/* --- tasks ------------------------------------------------------------------------------------------------------- */

START_TEST(processes_end_by_their_exit)
{
    struct pb_writer p = {0};
    trace_bundle(&t, 0);
    pb_put_varint(&p, FTRACE_TASK_NEWTASK_PID, 20);
    trace_event(&t, 20, 10, FTRACE_EVENT_TASK_NEWTASK, &p);
    pb_put_varint(&p, FTRACE_SCHED_PROCESS_EXIT_PID, 20);
    trace_event(&t, 40, 20, FTRACE_EVENT_SCHED_PROCESS_EXIT, &p);
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(CELL(&t, process, pid, 1), 20);
    ck_assert_int_eq(CELL(&t, process, end_ts, 1), 40);
    ck_assert_int_eq(CELL(&t, process, end_ts, 0), COL_NULL);
}
END_TEST

START_TEST(new_tasks_are_threads_or_processes)
{
    struct pb_writer p = {0};
    trace_bundle(&t, 0);
    for (uint32_t tid = 20; tid < 22; tid++) {
        pb_put_varint(&p, 1, tid);
        pb_put_str(&p, 2, tid == 20 ? "child" : "thread");
        pb_put_varint(&p, 3, tid == 20 ? 0 : 0x10000);
        trace_event(&t, tid, tid == 20 ? 10 : 20, 235, &p);
    }
    pb_put_varint(&p, 1, 20);
    pb_put_str(&p, 3, "renamed");
    trace_event(&t, 30, 20, 236, &p);
    pb_put_varint(&p, 2, 20);
    trace_event(&t, 40, 0, 240, &p); /* sched_process_free */
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    struct process_tracker *tracker = t.im->machines.p[0]->processes;
    ck_assert_uint_eq(process_tracker_find_process(tracker, 20), UPID_NONE); /* it has ended */
    ck_assert_uint_eq(ROWS(&t, process), 2);
    ck_assert_str_eq(TEXT_CELL(&t, process, name, 1), "renamed");
    ck_assert_int_eq(CELL(&t, process, start_ts, 1), 20);
    ck_assert_int_eq(CELL(&t, process, end_ts, 1), 40);
    ck_assert_uint_eq(ROWS(&t, thread_state), 2);
    ck_assert_str_eq(TEXT_CELL(&t, thread_state, state, 0), "R");
    for (uint32_t i = 0; i < ROWS(&t, thread); i++)
        if (CELL(&t, thread, tid, i) == 21)
            ck_assert_int_eq(CELL(&t, thread, upid, i), 1);
}
END_TEST

/* --- states of raw prev_state ------------------------------------------------------------------------------------ */

static const struct raw_state {
    uint32_t major, minor;
    int64_t raw;
    const char *text; /* NULL: invalid */
} raw_states[] = {
    {6, 1, 0, "R"},        {6, 1, 1, "S"},        {6, 1, 2, "D"},      {6, 1, 0x100, "R+"},  {6, 1, 0x80, "I"},
    {6, 1, 0x40, "P"},     {6, 1, 3, "SD"},       {6, 1, 0x200, NULL}, {6, 1, 0x8000, NULL}, {6, 1, 0x10001, "S"},
    {4, 14, 0x100, "R+"},  {4, 13, 0x1000, "R+"}, {4, 13, 0x40, "x"},  {4, 13, 0x200, "P"},  {4, 13, 0x402, "I"},
    {4, 13, 0x2000, NULL}, {4, 8, 0x100, "W"},    {4, 7, 0x800, "R+"}, {4, 7, 0x1000, NULL}, {0, 0, 0x800, "R+"},
    {0, 0, 0x82, "DK"},    {3, 10, 0x20, "Z"},
};

/* A switch or a waking that does not say a name leaves the thread's as it was; one that says an empty name does not. */
START_TEST(a_name_that_is_not_told_changes_nothing)
{
    static const struct {
        uint32_t event, field; /* that of the name; 0: none */
        const char *name, *after;
    } told[] = {
        {FTRACE_EVENT_SCHED_SWITCH, FTRACE_SCHED_SWITCH_NEXT_COMM, "cook", "cook"},
        {FTRACE_EVENT_SCHED_SWITCH, 0, NULL, "cook"},
        {FTRACE_EVENT_SCHED_WAKING, 0, NULL, "cook"},
        {FTRACE_EVENT_TASK_RENAME, 0, NULL, "cook"},
        {FTRACE_EVENT_SCHED_WAKING, FTRACE_SCHED_WAKING_COMM, "", ""},
    };
    uint32_t n = (uint32_t)_i + 1;
    trace_bundle(&t, 0);
    for (uint32_t i = 0; i < n; i++) {
        struct pb_writer p = {0};
        uint32_t tid = told[i].event == FTRACE_EVENT_SCHED_SWITCH   ? FTRACE_SCHED_SWITCH_NEXT_PID
                       : told[i].event == FTRACE_EVENT_SCHED_WAKING ? FTRACE_SCHED_WAKING_PID
                                                                    : FTRACE_TASK_RENAME_PID;
        pb_put_varint(&p, tid, 31);
        if (told[i].field)
            pb_put_str(&p, told[i].field, told[i].name);
        trace_event(&t, 100 + i, 32, told[i].event, &p);
        pb_writer_free(&p);
    }
    trace_bundle_end(&t);
    trace_import(&t);
    for (uint32_t i = 0; i < ROWS(&t, thread); i++) {
        strid name = (strid)CELL(&t, thread, name, i);
        if (CELL(&t, thread, tid, i) == 31)
            ck_assert_str_eq(strpool_cstr(&t.st.strings, name), told[n - 1].after);
        else if (CELL(&t, thread, tid, i) == 32)
            ck_assert_uint_eq(name, 0); /* nobody told it */
    }
}
END_TEST

START_TEST(the_letters_of_a_state)
{
    const struct raw_state *r = &raw_states[_i];
    trace_bundle(&t, 0);
    trace_bundle_end(&t);
    trace_import(&t);
    struct machine_ctx *m = t.im->machines.p[0];
    m->kernel_major = r->major;
    m->kernel_minor = r->minor;
    for (int again = 0; again < 2; again++) { /* the second time from memory */
        strid id = sched_tracker_state(m->sched, r->raw);
        if (r->text)
            ck_assert_str_eq(strpool_cstr(&t.st.strings, id), r->text);
        else
            ck_assert_uint_eq(id, 0);
    }
    ck_assert_int_eq(TRACE_STAT(&t, task_state_invalid), r->text ? 0 : 2);
}
END_TEST

/* One number of each length that a varint may have, and what lies at both ends of the short ones. */
static const int32_t numbers[] = {0, 1, 127, 128, 16383, 16384, 2097151, 2097152, 268435455, 268435456, INT32_MAX, -1};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Field k of a switch to this thread; fields 2 and 4 are of the one before. */
static void put_switch_field(struct pb_writer *p, unsigned k, int32_t prev_pid, int32_t next_pid, int32_t prio)
{
    if (k == 1 || k == 5)
        pb_put_str(p, k, k == 1 ? "before" : "a name of 16 b.");
    else
        pb_put_i64(p, k, k == 2 ? prev_pid : k == 4 ? 2 : k == 6 ? next_pid : k == 7 ? prio : 120);
}

/* Fields of events are read whatever their order is, beside some that are not known: the usual order is only faster. */
START_TEST(switches_and_wakings_are_read_in_any_order)
{
    int32_t prio = numbers[_i];
    trace_bundle(&t, 0);
    for (int at = 0; at < NUMBERS; at++) {
        struct pb_writer p = {0};
        int32_t next = numbers[at], prev = at ? numbers[at - 1] : 77;
        for (unsigned i = 0; i < 7; i++) /* forwards, backwards, from the middle on */
            put_switch_field(&p, at % 3 == 0 ? i + 1 : at % 3 == 1 ? 7 - i : (i + 3) % 7 + 1, prev, next, prio);
        if (at % 4 == 3)
            pb_put_varint(&p, 15, 1);
        trace_event(&t, 100 + (uint64_t)at, (uint32_t)prev, FTRACE_EVENT_SCHED_SWITCH, &p);
        pb_put_str(&p, 1, "a name of 16 b.");
        pb_put_i64(&p, 2, prev);
        if (at % 3 < 2)
            pb_put_i64(&p, 3, prio);
        if (at % 2)
            pb_put_varint(&p, 4, 1);
        pb_put_i64(&p, 5, 0);
        trace_event(&t, 100 + (uint64_t)at, (uint32_t)next, FTRACE_EVENT_SCHED_WAKING, &p);
        pb_writer_free(&p);
    }
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_uint_eq(t.st.t[T_sched_slice].n_rows, NUMBERS);
    for (int at = 0; at < NUMBERS; at++) {
        uint32_t utid = (uint32_t)CELL(&t, sched_slice, utid, at);
        ck_assert_int_eq(CELL(&t, thread, tid, utid), numbers[at]);
        ck_assert_int_eq(CELL(&t, sched_slice, priority, at), prio);
        ck_assert_int_eq(CELL(&t, sched_slice, dur, at), at + 1 < NUMBERS ? 1 : -1);
    }
    ck_assert_int_eq(TRACE_STAT(&t, mismatched_sched_switch_tids), 0);
    ck_assert_uint_eq(t.st.t[T_ftrace_event].n_rows, 2 * NUMBERS);
    ck_assert_uint_eq(t.st.t[T_thread].n_rows, NUMBERS + 1); /* the one of 77, and no other */
}
END_TEST

START_TEST(wakeups_of_what_does_not_sleep_are_spurious)
{
    trace_bundle(&t, 0);
    trace_switch(&t, 100, "a", 1, 1, "b", 2);
    trace_bundle_end(&t);
    trace_import(&t);
    struct machine_ctx *m = t.im->machines.p[0];
    uint32_t a = process_tracker_find_thread(m->processes, 1), b = process_tracker_find_thread(m->processes, 2);
    sched_tracker_waking(m->sched, 110, b, a, 0x08);                /* runs */
    sched_tracker_waking(m->sched, 120, a, b, SCHED_FLAGS_UNKNOWN); /* sleeps */
    sched_tracker_waking(m->sched, 130, a, b, 0);                   /* runnable by now */
    sched_tracker_waking(m->sched, 140, process_tracker_idle_utid(m->processes), b, 0);
    ck_assert_uint_eq(ROWS(&t, spurious_sched_wakeup), 2);
    ck_assert_int_eq(CELL(&t, spurious_sched_wakeup, irq_context, 0), 1);
    ck_assert_int_eq(CELL(&t, spurious_sched_wakeup, thread_state_id, 0), 1);
    ck_assert_uint_eq(ROWS(&t, thread_state), 3);
    ck_assert_int_eq(CELL(&t, thread_state, irq_context, 2), COL_NULL);
    ck_assert_int_eq(CELL(&t, thread_state, waker_id, 2), 1);
    sched_tracker_blocked_reason(m->sched, a, true, 0);
    ck_assert_int_eq(CELL(&t, thread_state, io_wait, 0), 1);
    ck_assert_int_eq(CELL(&t, thread_state, blocked_function, 0), 0);
    /* a is switched out without having run: how long it was runnable is not known. */
    sched_tracker_switch(m->sched, 1, 150, 1, 0, 2, 3, 0, 120);
    ck_assert_int_eq(CELL(&t, thread_state, dur, 2), -1);
}
END_TEST

/* --- retimed events ---------------------------------------------------------------------------------------------- */

/* A GPU batch is placed by the pair of times that another event tells, whichever comes first. */
START_TEST(a_gpu_batch_is_placed_where_it_ran)
{
    struct pb_writer p = {0};
    trace_bundle(&t, 0);
    for (int k = 0; k < 2; k++) {
        bool sync = k == (_i == 0 ? 0 : 1);
        pb_put_varint(&p, 1, 1);
        pb_put_varint(&p, 2, 42);
        if (sync) {
            pb_put_varint(&p, 3, 19200000);
        } else {
            pb_put_varint(&p, 6, 2 * 19200000);
            pb_put_varint(&p, 7, 3 * 19200000);
        }
        trace_event(&t, sync ? 1000 : 5000, 7, sync ? 536 : 537, &p);
    }
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, slice), 1);
    ck_assert_int_eq(CELL(&t, slice, ts, 0), 1000 + 1000000000);
    ck_assert_int_eq(CELL(&t, slice, dur, 0), 1000000000);
    ck_assert_str_eq(TEXT_CELL(&t, track, name, 0), "GPU (Ctx=1, Prio=0)");
    uint32_t retired = 0;
    for (uint32_t i = 0; i < ROWS(&t, ftrace_event); i++)
        if (CELL(&t, ftrace_event, ts, i) == 5000)
            retired++;
    ck_assert_uint_ge(retired, 1);
}
END_TEST

/* --- devices ----------------------------------------------------------------------------------------------------- */

/* Events of devices: numbers of the first fields, a text of a later one; the slices they make and their track. */
static const struct device_event {
    uint32_t id;
    uint32_t numbers[4]; /* fields 1 to 4; 0: absent */
    uint32_t text_field;
    const char *text;
    uint32_t slices;
    const char *type, *track, *dims;
} device_events[] = {
    {409, {3, 0, 7}, 0, NULL, 1, "drm_vblank", "vblank-3", "drm_crtc=3"},
    {415, {6, 0, 7}, 4, "ring", 1, "drm_fence", "fence-ring-6", "name=ring context=6"},
    {606, {4, 2, 1}, 0, NULL, 1, "disp_frame_start_timeout", "frame_start_timeout[2]", "panel_index=2"},
    {550, {4, 2, 1}, 0, NULL, 1, "disp_vblank_irq_enable", "vblank_irq_en[2]", "display_id=2"},
    {439,
     {9, 0x101},
     0,
     NULL,
     1,
     "virtio_video_command",
     "virtio_video stream #9 Requests",
     "virtio_stream_id=9 is_response=0 track_compressor_idx=0"},
    {440,
     {9, 0x101},
     0,
     NULL,
     1,
     "virtio_video_command",
     "virtio_video stream #9 Responses",
     "virtio_stream_id=9 is_response=1 track_compressor_idx=0"},
    {468, {1}, 5, "control", 1, "virtgpu_num_free", "Virtgpu Control Free", "virtgpu_name=Control"},
    {468, {1}, 5, "other", 0, NULL, NULL, NULL},
};

START_TEST(a_device_event_is_on_the_track_of_its_device)
{
    const struct device_event *d = &device_events[_i];
    struct pb_writer p = {0};
    for (uint32_t i = 0; i < 4; i++)
        if (d->numbers[i])
            pb_put_varint(&p, i + 1, d->numbers[i]);
    if (d->text)
        pb_put_str(&p, d->text_field, d->text);
    trace_bundle(&t, 0);
    trace_event(&t, 100, 5, d->id, &p);
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 1);
    ck_assert_uint_eq(ROWS(&t, slice), d->slices);
    if (!d->type)
        return;
    ck_assert_str_eq(TEXT_CELL(&t, track, type, 0), d->type);
    ck_assert_str_eq(TEXT_CELL(&t, track, name, 0), d->track);
    ck_assert_str_eq(trace_args(&t, CELL(&t, track, dimension_arg_set_id, 0)), d->dims);
}
END_TEST

/* Of what the kernel tells by members of its own list; one that is new to us has a counter, but no words. */
START_TEST(sizes_of_memory_are_described)
{
    static const struct {
        uint32_t member;
        const char *name, *word;
    } want[] = {{0, "mem.rss.file", "RssFile"},
                {1, "mem.rss.anon", "MM_ANONPAGES"},
                {2, "mem.swap", "VmSwap"},
                {3, "mem.rss.shmem", "RssShmem"},
                {99, "mem.rss.unknown", NULL}};
    enum { N = sizeof want / sizeof *want };
    trace_bundle(&t, 0);
    for (int i = 0; i < N; i++) {
        struct pb_writer p = {0};
        pb_put_varint(&p, 1, want[i].member);
        pb_put_varint(&p, 2, 4096);
        trace_event(&t, 100 + (uint64_t)i, 5, 313, &p);
        pb_writer_free(&p);
    }
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_uint_eq(ROWS(&t, counter), N);
    ck_assert_int_eq(TRACE_STAT(&t, rss_stat_unknown_keys), 1);
    for (uint32_t i = 0; i < N; i++) {
        int64_t track = CELL(&t, counter, track_id, i), source = CELL(&t, track, source_arg_set_id, (uint32_t)track);
        ck_assert_str_eq(TEXT_CELL(&t, track, name, (uint32_t)track), want[i].name);
        ck_assert_int_eq(source == COL_NULL, !want[i].word);
        ck_assert(!want[i].word || strstr(trace_args(&t, source), want[i].word) != NULL);
    }
}
END_TEST

static void i2c_event(uint64_t ts, uint32_t id, uint32_t adapter, uint32_t number)
{
    struct pb_writer p = {0};
    pb_put_varint(&p, 1, adapter);
    pb_put_varint(&p, 2, number);
    trace_event(&t, ts, 5, id, &p);
    pb_writer_free(&p);
}

/* The result that counts all messages ends the transaction; others do not. */
START_TEST(a_result_ends_the_i2c_transaction_it_counts)
{
    trace_bundle(&t, 0);
    i2c_event(100, 28, 3, 0);
    i2c_event(110, 27, 3, 1);
    i2c_event(120, 29, 3, 1);
    i2c_event(130, 29, 4, 2);
    i2c_event(140, 29, 3, 2);
    i2c_event(150, 29, 3, 2);
    i2c_event(160, 28, 256, 0);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, slice), 1);
    ck_assert_str_eq(TEXT_CELL(&t, slice, name, 0), "i2c-3");
    ck_assert_int_eq(CELL(&t, slice, ts, 0), 100);
    ck_assert_int_eq(CELL(&t, slice, dur, 0), 40);
}
END_TEST

Suite *ftrace_handlers_suite(void);
Suite *ftrace_handlers_suite(void)
{
    Suite *s = suite_create("ftrace_handlers");
    TCase *c = tcase_create("events");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, a_marker, 0, sizeof markers / sizeof *markers);
    tcase_add_test(c, async_markers_do_not_nest);
    tcase_add_loop_test(c, a_call_has_the_name_of_its_machine, 0, sizeof calls / sizeof *calls);
    tcase_add_loop_test(c, a_call_has_its_args, 0, 85);
    tcase_add_test(c, a_marker_ends_the_write_that_carries_it);
    tcase_add_test(c, processes_end_by_their_exit);
    tcase_add_test(c, new_tasks_are_threads_or_processes);
    tcase_add_loop_test(c, switches_and_wakings_are_read_in_any_order, 0, NUMBERS);
    tcase_add_loop_test(c, a_name_that_is_not_told_changes_nothing, 0, 5);
    tcase_add_loop_test(c, the_letters_of_a_state, 0, sizeof raw_states / sizeof *raw_states);
    tcase_add_test(c, wakeups_of_what_does_not_sleep_are_spurious);
    tcase_add_loop_test(c, a_gpu_batch_is_placed_where_it_ran, 0, 2);
    tcase_add_loop_test(c, a_device_event_is_on_the_track_of_its_device, 0,
                        sizeof device_events / sizeof *device_events);
    tcase_add_test(c, sizes_of_memory_are_described);
    tcase_add_test(c, a_result_ends_the_i2c_transaction_it_counts);
    suite_add_tcase(s, c);
    return s;
}
