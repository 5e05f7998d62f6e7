/* Tests what Android's window system says of itself: layers, transactions, transitions, windows, views, input,
 * ProtoLog. */
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
#define REAL(table, column, row) column_f64(GET(table, column, row))
#define ARGS(table, column, row) fixture_args(&f, ROW_ARGS(&f.st, table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

/* A float: pb_text has none. */
static void put_float(uint32_t field, float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    pb_put_fixed32(w, field, word);
}

START_TEST(transactions_and_their_flags)
{
    PACKET(10, "94{2:7 3{1:100 2:1000 6:55 7{1:3 2:2051 5:4} 7{1:4 2:4294967296} 8{1:9 2:2} 10:77}"
               "3{6:56} 4{1:5 2'new'} 5:6 6{1:9 2:2} 7:9 8:6}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(surfaceflinger_transactions), 1);
    ck_assert_int_eq(GET(surfaceflinger_transactions, vsync_id, 0), 7);
    ck_assert_ptr_nonnull(
        strstr(ARGS(surfaceflinger_transactions, arg_set_id, 0), "transactions[0].layer_changes[0].z=4"));
    static const char *const types[] = {"LAYER_CHANGED", "LAYER_CHANGED",   "DISPLAY_CHANGED",
                                        "NOOP",          "LAYER_ADDED",     "LAYER_DESTROYED",
                                        "DISPLAY_ADDED", "DISPLAY_REMOVED", "LAYER_HANDLE_DESTROYED"};
    ck_assert_uint_eq(ROWS(surfaceflinger_transaction), 9);
    for (uint32_t i = 0; i < 9; i++)
        ck_assert_str_eq(TEXT(surfaceflinger_transaction, transaction_type, i), types[i]);
    ck_assert_int_eq(GET(surfaceflinger_transaction, layer_id, 0), 3);
    ck_assert_int_eq(GET(surfaceflinger_transaction, pid, 0), 100);
    ck_assert_str_eq(ARGS(surfaceflinger_transaction, arg_set_id, 0), "layer_id=3 what=2051 z=4 apply_token=77");
    ck_assert_int_eq(GET(surfaceflinger_transaction, pid, 3), 0);
    ck_assert_int_eq(GET(surfaceflinger_transaction, base64_proto_id, 3), COL_NULL);
    ck_assert_str_eq(ARGS(surfaceflinger_transaction, arg_set_id, 4), "layer_id=5 name=new");
    ck_assert_int_eq(GET(surfaceflinger_transaction, transaction_id, 4), COL_NULL);
    ck_assert_int_eq(GET(surfaceflinger_transaction, flags_id, 2), GET(surfaceflinger_transaction, flags_id, 6));
    static const char *const flags[] = {"ePositionChanged",         "eLayerChanged",
                                        "eShadowRadiusChanged",     "eShadowRadiusChanged",
                                        "eDestinationFrameChanged", "eLayerStackChanged"};
    ck_assert_uint_eq(ROWS(surfaceflinger_transaction_flag), 6);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_str_eq(TEXT(surfaceflinger_transaction_flag, flag, i), flags[i]);
}
END_TEST

/* The args of a snapshot are numbered behind those of all its parts, and places follow the sets. */
START_TEST(numbers_of_transactions)
{
    for (int i = 0; i < 2; i++)
        PACKET(10 + i, "94{2:7 3{1:100 2:1000 6:55 7{1:3 2:2051 5:4} 8{1:9 2:2} 10:77} 4{1:5 2'new'}}");
    trace_fixture_load(&f);
    storage_number_args(&f.st);
    static const int64_t numbers[] = {0, 4, 7, 9, 13, 16};
    ck_assert_uint_eq(ROWS(surfaceflinger_transaction), sizeof numbers / sizeof *numbers);
    for (uint32_t i = 0; i < ROWS(surfaceflinger_transaction); i++) {
        argset at = argset_of_cell(GET(surfaceflinger_transaction, base64_proto_id, i));
        ck_assert_int_eq(GET(surfaceflinger_transaction, arg_set_id, i), numbers[i]);
        ck_assert(argset_eq(at, args_of_cell(&f.st.args, numbers[i])));
    }
    ck_assert_int_eq(GET(surfaceflinger_transactions, arg_set_id, 0), 18);
    ck_assert_str_eq(fixture_args(&f, args_of_cell(&f.st.args, numbers[3])), "layer_id=3 what=2051 z=4 apply_token=77");
    ck_assert_ptr_nonnull(
        strstr(fixture_args(&f, args_of_cell(&f.st.args, GET(surfaceflinger_transactions, arg_set_id, 1))),
               "added_layers[0].name=new"));
}
END_TEST

/* Counting the args of a megabyte of messages would take longer than most would want to wait: sets are not numbered. */
START_TEST(no_numbers_for_megabytes)
{
    enum { PACKETS = 100, LEN = 8000 };
    char *text = mem_zalloc(LEN + 1);
    memset(text, 'x', LEN);
    for (int i = 0; i < PACKETS; i++)
        PACKET(10 + i, "94{2:7 4{1:5 2'%s'}}", text);
    mem_free(text);
    trace_fixture_load(&f);
    storage_number_args(&f.st);
    ck_assert_int_eq(GET(surfaceflinger_transactions, arg_set_id, 0), 0);
    ck_assert_int_eq(GET(surfaceflinger_transaction, arg_set_id, 0), 1);
}
END_TEST

START_TEST(transitions_of_several_packets)
{
    PACKET(10, "96{1:1 2:100 3:200 13:5 14{1:1 2:7 3:8 9{1:0 2:0 3:10 4:20}}}");
    PACKET(20, "96{1:1 4:300 9:450 12:2}");
    PACKET(30, "96{1:2 5:7}");
    PACKET(40, "96{1:3 8:7}");
    PACKET(41, "96{1:4 4:20}");
    PACKET(42, "96{1:4 4:30 9:70}");
    PACKET(50, "97{1{1:2 2'handler'} 1{1:3 2'other'}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(window_manager_shell_transitions), 4);
    ck_assert_int_eq(GET(window_manager_shell_transitions, ts, 0), 200);
    ck_assert_int_eq(GET(window_manager_shell_transitions, duration_ns, 0), 150);
    ck_assert_str_eq(TEXT(window_manager_shell_transitions, status, 0), "played");
    ck_assert_int_eq(GET(window_manager_shell_transitions, handler, 0), 2);
    ck_assert_ptr_nonnull(strstr(ARGS(window_manager_shell_transitions, arg_set_id, 0), "finish_time_ns=450"));
    ck_assert_ptr_nonnull(strstr(ARGS(window_manager_shell_transitions, arg_set_id, 0), "changes[0].layer_id=7"));
    ck_assert_str_eq(TEXT(window_manager_shell_transitions, status, 1), "merged");
    ck_assert_str_eq(TEXT(window_manager_shell_transitions, status, 2), "aborted");
    ck_assert_int_eq(GET(window_manager_shell_transitions, ts, 3), 20); /* never sent: first dispatch */
    ck_assert_int_eq(GET(window_manager_shell_transitions, duration_ns, 3), 40);
    ck_assert_uint_eq(ROWS(window_manager_shell_transition_participants), 1);
    ck_assert_int_eq(GET(window_manager_shell_transition_participants, flags, 0), COL_NULL);
    ck_assert_double_eq(REAL(winscope_rect, h, 0), 20);
    ck_assert_uint_eq(ROWS(window_manager_shell_transition_protos), 6);
    ck_assert_uint_eq(ROWS(window_manager_shell_transition_handlers), 2);
    ck_assert_str_eq(TEXT(window_manager_shell_transition_handlers, handler_name, 1), "other");
}
END_TEST

/* A line of ProtoLog; message ids have a fixed width. */
static void protolog_line(int64_t ts, uint64_t id, const char *params)
{
    packet_begin(&f, ts);
    size_t line = pb_begin(w, 104);
    pb_put_fixed64(w, 1, id);
    put(w, "%s", params);
    pb_end(w, line);
    packet_end(&f);
}

static void protolog_text(uint64_t id, const char *text, const char *rest)
{
    size_t message = pb_begin(w, 1);
    pb_put_fixed64(w, 1, id);
    pb_put_str(w, 2, text);
    put(w, "%s", rest);
    pb_end(w, message);
}

START_TEST(lines_of_protolog)
{
    PACKET(1, "13:1 12{36{1:1 2'word'} 37{1:2 2'stack'}}");
    packet_begin(&f, 2);
    size_t config = pb_begin(w, 105);
    protolog_text(1, "%s is %d, %x, %b, 100%%", "3:3 4:7 5'File.java:1'");
    protolog_text(2, "none", "3:4 4:9");
    protolog_text(3, "%d", "3:1 4:7");
    protolog_text(3, "%s", "3:1 4:7");
    protolog_text(4, "a", "3:1 4:7");
    protolog_text(4, "b", "3:1 4:7");
    put(w, "2{1:7 2'GROUP' 3'tag'}");
    pb_end(w, config);
    packet_end(&f);
    protolog_line(10, 1, "2:1 3:10 3:32 5:1 6:2");
    protolog_line(20, 1, "2:99 3:10 5:0 6:77");
    protolog_line(30, 2, "3:2");
    protolog_line(40, 3, "2:1");
    protolog_line(50, 4, "");
    protolog_line(60, 5, "");
    protolog_line(70, 4, "3:2");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(protolog), 7);
    ck_assert_str_eq(TEXT(protolog, message, 0), "word is 5, 10, true, 100%");
    ck_assert_str_eq(TEXT(protolog, level, 0), "INFO");
    ck_assert_str_eq(TEXT(protolog, tag, 0), "tag");
    ck_assert_str_eq(TEXT(protolog, stacktrace, 0), "stack");
    ck_assert_str_eq(TEXT(protolog, location, 0), "File.java:1");
    ck_assert_str_eq(TEXT(protolog, message, 1), "<ERROR> is 5, [MISSING_PARAM], false, 100%");
    ck_assert_str_eq(TEXT(protolog, stacktrace, 1), "<ERROR>");
    ck_assert_str_eq(TEXT(protolog, tag, 2), "UNKNOWN_GROUP");
    ck_assert_int_eq(GET(protolog, stacktrace, 2), 0);
    ck_assert_str_eq(TEXT(protolog, message, 3), "word");
    ck_assert_str_eq(TEXT(protolog, level, 4), "WARN");
    ck_assert_str_eq(TEXT(protolog, tag, 4), "COLLISION_GROUP");
    ck_assert_str_eq(TEXT(protolog, message, 4), "<PROTOLOG COLLISION (id=0x0x4) MULTIPLE TYPE MATCHES : 'a',\n 'b'>");
    ck_assert_str_eq(TEXT(protolog, message, 6), "<PROTOLOG COLLISION (id=0x0x4) NO TYPE MATCH>");
    ck_assert_int_eq(GET(protolog, message, 5), 0);
    ck_assert_int_eq(STAT(winscope_protolog_param_mismatch), 2);
    ck_assert_int_eq(STAT(winscope_protolog_group_tag_missing), 1);
    ck_assert_int_eq(STAT(winscope_protolog_missing_interned_arg_parse_errors), 1);
    ck_assert_int_eq(STAT(winscope_protolog_message_collision), 2);
    ck_assert_int_eq(STAT(winscope_protolog_message_collision_resolved), 1);
    ck_assert_int_eq(STAT(winscope_protolog_message_decoding_failed), 1);
}
END_TEST

START_TEST(windows_as_a_tree)
{
    /* root > display > (task > activity > window, token) */
    PACKET(10, "112{6{2'here' 3{9:0 7:1 2{1{6{1:1 3'root'} 3:1 5{3{2:0 10{1:1080 2:2400 5'Built-in'}"
               "21{1{6{1:2 3'area'} 5{5{2:7 32'mail' 31{1{6{1:3 3'task'} 3:1 5{6{1'com.app/.Main' 24:1 2{2:4 1{6{1:4 "
               "3'act'} 5{8{1{6{1:5 3'Starting com.app'}} 41{5{1:10 2:20 3:110 4:220}} 38:1}}}}}}}}}}"
               "5{7{2:255 1{6{1:6}}}}}}}}}}}}}");
    PACKET(20, "112{6{3{2{1{6{1:1 3'root'} 5{5{2:7}}}}}}}"); /* the task has no identifier */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(windowmanager), 2);
    ck_assert_int_eq(GET(windowmanager, has_invalid_elapsed_ts, 0), 1);
    const char *args = ARGS(windowmanager, arg_set_id, 0);
    ck_assert_ptr_nonnull(strstr(args, "window_manager_service.rotation=1"));
    ck_assert_ptr_null(strstr(args, "root_window_container"));
    static const struct {
        const char *type, *title;
        int64_t token, parent, index;
    } rows[] = {{"RootWindowContainer", "root", 1, COL_NULL, COL_NULL},
                {"DisplayContent", "Built-in", 2, 1, 0},
                {"Task", "task", 3, 2, 0},
                {"Activity", "com.app/.Main", 4, 3, 0},
                {"WindowState", "Starting com.app", 5, 4, 0},
                {"WindowToken", "ff", 255, 2, 1}};
    ck_assert_uint_eq(ROWS(windowmanager_windowcontainer), 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_str_eq(TEXT(windowmanager_windowcontainer, container_type, i), rows[i].type);
        ck_assert_str_eq(TEXT(windowmanager_windowcontainer, title, i), rows[i].title);
        ck_assert_int_eq(GET(windowmanager_windowcontainer, token, i), rows[i].token);
        ck_assert_int_eq(GET(windowmanager_windowcontainer, parent_token, i), rows[i].parent);
        ck_assert_int_eq(GET(windowmanager_windowcontainer, child_index, i), rows[i].index);
    }
    ck_assert_str_eq(TEXT(windowmanager_windowcontainer, name_override, 2), "7(mail)");
    ck_assert_str_eq(TEXT(windowmanager_windowcontainer, name_override, 4), "com.app");
    ck_assert_int_eq(GET(windowmanager_windowcontainer, is_visible, 4), 1);
    uint32_t rect = (uint32_t)GET(windowmanager_windowcontainer, window_rect_id, 4);
    ck_assert_int_eq(GET(winscope_trace_rect, depth, rect), 1);
    ck_assert_double_eq(REAL(winscope_rect, w, (uint32_t)GET(winscope_trace_rect, rect_id, rect)), 100);
    ck_assert_int_eq(GET(winscope_trace_rect, is_visible, rect), 1);
    ck_assert_int_eq(GET(winscope_trace_rect, is_visible, 0), 0); /* that of the display */
    args = ARGS(windowmanager_windowcontainer, arg_set_id, 3);
    ck_assert_ptr_nonnull(strstr(args, "activity.window_token.hash_code=4"));
    ck_assert_ptr_null(strstr(args, "children"));
    ck_assert_ptr_nonnull(strstr(ARGS(windowmanager_windowcontainer, arg_set_id, 0), "window_container.visible=1"));
    ck_assert_int_eq(STAT(winscope_windowmanager_parse_errors), 1);
}
END_TEST

/* What one of the children lacks spoils the whole tree. */
START_TEST(windows_that_lack_something)
{
    static const char *const trees[] = {
        "",                                              /* no root */
        "2{}",                                           /* nor what all containers have */
        "2{1{6{1:1}}}",                                  /* no title */
        "2{1{6{3'root'}}}",                              /* no hash code */
        "2{1{6{1:1 3'root'} 5{10:7}}}",                  /* a child that is nothing */
        "2{1{6{1:1 3'root'} 5{4{1{6{1:2 3'a'}}}}}}",     /* an area without a name */
        "2{1{6{1:1 3'root'} 5{3{21{1{6{1:2 3'a'}}}}}}}", /* a display without one */
        "2{1{6{1:1 3'root'} 5{6{2{2:4 1{6{1:4}}}}}}}",   /* an activity without one */
        "2{1{6{1:1 3'root'} 5{6{1'a' 2{1{6{1:4}}}}}}}",  /* without the hash code of its token */
        "2{1{6{1:1 3'root'} 5{8{2{1:5 3'w'} 1{}}}}}",    /* a window's own identifier does not count */
        "2{1{6{1:1 3'root'} 5{5{1{6{1:2 3'old'}}}}}}",   /* this one is sound: an old task without an id */
        "2{1{6{1:1 3'root'} 5{8{1{6{1:5 3'no frame'}}}}}}" /* and this */};
    enum { TREES = sizeof trees / sizeof *trees, SOUND = 2 };
    for (int i = 0; i < TREES; i++) {
        char packet[128];
        snprintf(packet, sizeof packet, "112{6{3{%s}}}", trees[i]);
        PACKET(i + 1, packet);
    }
    trace_fixture_load(&f);
    ck_assert_int_eq(STAT(winscope_windowmanager_parse_errors), TREES - SOUND);
    ck_assert_uint_eq(ROWS(windowmanager), TREES);
    ck_assert_uint_eq(ROWS(windowmanager_windowcontainer), 4);
    ck_assert_int_eq(GET(windowmanager_windowcontainer, name_override, 1), 0);
    ck_assert_str_eq(TEXT(windowmanager_windowcontainer, title, 3), "no frame");
    ck_assert_int_eq(GET(windowmanager_windowcontainer, window_rect_id, 3), 0);
}
END_TEST

static void float_rect(uint32_t field, float left, float top, float right, float bottom)
{
    size_t rect = pb_begin(w, field);
    put_float(1, left);
    put_float(2, top);
    put_float(3, right);
    put_float(4, bottom);
    pb_end(w, rect);
}

/* A layer with a buffer that fills a rectangle. */
static void layer(const char *fields, float left, float top, float right, float bottom, float alpha)
{
    size_t k = pb_begin(w, 1), color;
    put(w, "%s 27{1:1 2:1}", fields);
    color = pb_begin(w, 20);
    put_float(4, alpha);
    pb_end(w, color);
    float_rect(45, left, top, right, bottom);
    float_rect(46, left, top, right, bottom);
    pb_end(w, k);
}

START_TEST(layers_that_cover_others)
{
    packet_begin(&f, 10);
    size_t snapshot = pb_begin(w, 93), layers;
    put(w, "2'where' 7{1:1 2'panel' 3:0 4{1:100 2:200} 5{3:100 4:200}} 7{1:2 3:4294967295 4{1:10 2:20} 7:1} 7{1:3}");
    layers = pb_begin(w, 3);
    layer("1:1 2'bottom' 10:0", 0, 0, 50, 50, 1);
    layer("1:2 2'top' 10:1 16:1", 0, 0, 60, 60, 1);
    layer("1:3 2'glass' 10:2", 0, 0, 10, 10, 0.5f);
    layer("1:4 2'hidden' 10:3 22:1", 0, 0, 10, 10, 1);
    layer("1:5 2'child' 10:-1 25:4", 0, 0, 10, 10, 1);
    put(w, "1{1:6 2'bare' 26:77}");
    pb_end(w, layers);
    pb_end(w, snapshot);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(surfaceflinger_layers_snapshot), 1);
    ck_assert_ptr_null(strstr(ARGS(surfaceflinger_layers_snapshot, arg_set_id, 0), "layers"));
    ck_assert_uint_eq(ROWS(surfaceflinger_display), 3);
    ck_assert_int_eq(GET(surfaceflinger_display, is_on, 2), 0); /* no layer stack */
    ck_assert_int_eq(GET(surfaceflinger_display, is_on, 0), 1);
    ck_assert_int_eq(GET(surfaceflinger_display, is_on, 1), 0);
    ck_assert_int_eq(GET(surfaceflinger_display, is_virtual, 1), 1);
    ck_assert_uint_eq(ROWS(surfaceflinger_layer), 6);
    static const int64_t visible[] = {0, 1, 1, 0, 0, 0};
    static const char *const says[] = {"visibility_reason[0]=occluded occluded_by[0]=2 covered_by[0]=3",
                                       "covered_by[0]=3",
                                       "id=3",
                                       "visibility_reason[0]=flag is hidden",
                                       "visibility_reason[0]=hidden by parent 4",
                                       "visibility_reason[0]=buffer is empty visibility_reason[1]=alpha is 0 "
                                       "visibility_reason[2]=bounds is 0x0 visibility_reason[3]=crop is 0x0 "
                                       "visibility_reason[4]=does not have color fill, shadow or blur"};
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_int_eq(GET(surfaceflinger_layer, is_visible, i), visible[i]);
        const char *args = ARGS(surfaceflinger_layer, arg_set_id, i);
        ck_assert_msg(strstr(args, says[i]), "%s", args);
    }
    ck_assert_int_eq(GET(surfaceflinger_layer, is_hidden_by_policy, 3), 1);
    ck_assert_int_eq(GET(surfaceflinger_layer, is_missing_z_parent, 5), 1);
    ck_assert_int_eq(GET(surfaceflinger_layer, is_missing_z_parent, 0), 0);
    ck_assert_int_eq(GET(surfaceflinger_layer, layer_rect_id, 5), COL_NULL);
    ck_assert(isnan(REAL(surfaceflinger_layer, corner_radius_tl, 5)));
    uint32_t child = (uint32_t)GET(surfaceflinger_layer, layer_rect_id, 4),
             parent = (uint32_t)GET(surfaceflinger_layer, layer_rect_id, 3);
    ck_assert_int_lt(GET(winscope_trace_rect, depth, child), GET(winscope_trace_rect, depth, parent));
    ck_assert_double_eq(REAL(winscope_trace_rect, opacity, parent), 1);
}
END_TEST

START_TEST(layers_of_turned_displays)
{
    packet_begin(&f, 10);
    size_t snapshot = pb_begin(w, 93), layers;
    put(w, "7{1:1 3:1 4{1:5 2:10} 6{5:1024}}" /* turned by 90 degrees: 10 wide, 5 high */
           "7{1:2 3:1 4{1:5 2:10} 5{3:5 4:10} 6{5:1024}} 7{1:3 3:2 4{1:5 2:10}}");
    layers = pb_begin(w, 3);
    layer("1:1 9:2", -100, -100, 100, 100, 0);     /* ten times as wide and as high as any display */
    layer("1:2 9:2", -99.5f, -100, 100, 100, 0);   /* nearly so */
    layer("1:3 9:2", -100, -99.991f, 100, 100, 0); /* as nearly as floats can tell */
    layer("1:4 9:1 47{3{} 4{2{1:-999 2:-999 3:999 4:999}}}", 0, 0, 1, 1, 1);
    layer("1:5 9:1 47{3{3:4 4:2} 4{2{3:99 4:99}}}", 0, 0, 1, 1, 1);
    pb_end(w, layers);
    pb_end(w, snapshot);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(surfaceflinger_layer), 5);
    ck_assert_int_eq(GET(surfaceflinger_layer, layer_rect_id, 0), COL_NULL);
    ck_assert_int_ne(GET(surfaceflinger_layer, layer_rect_id, 1), COL_NULL);
    ck_assert_int_eq(GET(surfaceflinger_layer, layer_rect_id, 2), COL_NULL);
    /* The corner of an empty window is that of the turned display; what takes touches is cut to the last display of the
     * stack. */
    static const double boxes[][4] = {{0, 10, 0, 0}, {0, 0, 5, 10}, {0, 6, 2, 4}, {0, -89, 99, 99}};
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t trace_rect = (uint32_t)GET(surfaceflinger_layer, input_rect_id, 3 + i / 2),
                 row = (uint32_t)(i % 2 ? GET(winscope_fill_region, rect_id, i / 2)
                                        : GET(winscope_trace_rect, rect_id, trace_rect));
        ck_assert_double_eq(REAL(winscope_rect, x, row), boxes[i][0]);
        ck_assert_double_eq(REAL(winscope_rect, y, row), boxes[i][1]);
        ck_assert_double_eq(REAL(winscope_rect, w, row), boxes[i][2]);
        ck_assert_double_eq(REAL(winscope_rect, h, row), boxes[i][3]);
    }
}
END_TEST

/* Each of these layers lies below all above it, a list that grows with their square: those further up have it whole. */
START_TEST(layers_that_all_lie_above_each_other)
{
    enum { LAYERS = 3000, DISPLAYS = 1500, WHOLE = 20 };
    char text[32];
    packet_begin(&f, 10);
    size_t snapshot = pb_begin(w, 93), layers;
    for (int i = 0; i < DISPLAYS; i++)
        put(w, "7{1:1 3:7}");
    layers = pb_begin(w, 3);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(text, sizeof text, "1:%d 10:%d", i + 1, i);
        layer(text, 0, 0, 50, 50, 0.5f);
    }
    pb_end(w, layers);
    pb_end(w, snapshot);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(surfaceflinger_layer), LAYERS);
    ck_assert_uint_eq(ROWS(surfaceflinger_display), 1024);
    for (uint32_t i = 0; i < LAYERS; i++)
        ck_assert_int_eq(GET(surfaceflinger_layer, is_visible, i), 1);
    ck_assert_ptr_nonnull(strstr(ARGS(surfaceflinger_layer, arg_set_id, LAYERS - 1 - WHOLE), "covered_by[19]="));
    ck_assert_ptr_null(strstr(ARGS(surfaceflinger_layer, arg_set_id, 0), "covered_by"));
    ck_assert_int_eq(STAT(winscope_sf_layers_parse_errors), 1);
}
END_TEST

START_TEST(input_and_input_methods)
{
    PACKET(1, "13:1 6{1{1:6 2:1000} 1{1:3 2:0}}"); /* trace time is 1000 ahead of MONOTONIC */
    PACKET(10, "112{5{1{2:500 3:4098 4:2 5:3 6:4 17:400 9{2:1}}}}");
    PACKET(20, "112{5{4{2:500 4:257 5:1 8:66}}}");
    PACKET(30, "112{5{5{2:77 3:9}}}");
    PACKET(40, "112{1{2'client'}}");
    PACKET(50, "112{2{2'service'}}");
    PACKET(60, "112{3{2'manager'}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(android_motion_events), 1);
    ck_assert_int_eq(GET(android_motion_events, source, 0), 4098);
    ck_assert_int_eq(GET(android_motion_events, display_id, 0), 2); /* zigzag */
    const char *args = ARGS(android_motion_events, arg_set_id, 0);
    ck_assert_msg(strstr(args, "kernel_time=1500 down_time=1400"), "%s", args);
    ck_assert_ptr_nonnull(strstr(args, "pointer[0].pointer_id=1"));
    ck_assert_uint_eq(ROWS(android_key_events), 1);
    ck_assert_int_eq(GET(android_key_events, key_code, 0), 66);
    ck_assert_uint_eq(ROWS(android_input_event_dispatch), 1);
    ck_assert_int_eq(GET(android_input_event_dispatch, window_id, 0), 9);
    ck_assert_str_eq(ARGS(inputmethod_clients, arg_set_id, 0), "where=client");
    ck_assert_str_eq(ARGS(inputmethod_service, arg_set_id, 0), "where=service");
    ck_assert_str_eq(ARGS(inputmethod_manager_service, arg_set_id, 0), "where=manager");
}
END_TEST

START_TEST(views_and_their_strings)
{
    PACKET(1, "13:1 12{38{1:1 2'com.app'} 39{1:2 2'Main'} 41{1:3 2'View'}}");
    packet_begin(&f, 10);
    size_t extensions = pb_begin(w, 112), capture = pb_begin(w, 4), view = pb_begin(w, 3);
    put(w, "1:0 2:-1 3:11 5:3 8:100 9:50");
    put_float(14, 1);
    put_float(15, 1);
    put_float(16, 1);
    pb_end(w, view);
    view = pb_begin(w, 3);
    put(w, "1:1 2:0 3:12 5:99 6:10 7:20 8:30 9:40 19:4");
    put_float(14, 1);
    put_float(15, 1);
    pb_end(w, view);
    put(w, "3{1:2 2:0 8:5 9:6} 3{1:3 2:0 8:5}"); /* scaled to nothing, but with a size; without a height */
    put(w, "1:1 2:2");
    pb_end(w, capture);
    pb_end(w, extensions);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(viewcapture, package_name, 0), "com.app");
    ck_assert_str_eq(ARGS(viewcapture, arg_set_id, 0), "package_name=com.app window_name=Main");
    ck_assert_uint_eq(ROWS(viewcapture_view), 4);
    ck_assert_str_eq(TEXT(viewcapture_view, class_name, 0), "View");
    ck_assert_int_eq(GET(viewcapture_view, is_visible, 0), 1);
    ck_assert_int_eq(GET(viewcapture_view, is_visible, 1), 0); /* visibility 4 */
    ck_assert_int_eq(GET(viewcapture_view, is_visible, 2), 1);
    ck_assert_int_eq(GET(viewcapture_view, is_visible, 3), 0);
    ck_assert_ptr_nonnull(
        strstr(ARGS(viewcapture_view, arg_set_id, 1), "class_name=STRING DE-INTERNING ERROR class_name_iid=99"));
    ck_assert_int_eq(GET(winscope_trace_rect, depth, 1), 4);
    ck_assert_int_eq(STAT(winscope_viewcapture_missing_interned_string_parse_errors), 1);
    ck_assert_uint_eq(ROWS(viewcapture_interned_data), 3);
}
END_TEST

START_TEST(fields_that_are_not_set)
{
    PACKET(1, "13:1 12{38{1:1 2'com.app'}}");
    PACKET(10, "112{4{1:1 3{1:5}}}");
    PACKET(20, "96{1:1 14{1:1}}");
    trace_fixture_load(&f);
    struct arg_list list = {0};
    args_values_by(&f.st.args, ARGS_WITH_DEFAULTS, (argset){(uint32_t)GET(viewcapture, base64_proto_id, 0) + 1}, &list);
    ck_assert_uint_eq(list.n, 2); /* the views have rows of their own */
    ck_assert_str_eq(fixture_text(&f, list.p[0].key), "package_name");
    ck_assert_str_eq(fixture_text(&f, list.p[1].key), "window_name_iid");
    ck_assert_int_eq(list.p[1].type, ARG_INT);
    list.n = 0;
    uint32_t proto = (uint32_t)GET(window_manager_shell_transition_protos, base64_proto_id, 0);
    args_values_by(&f.st.args, ARGS_WITH_DEFAULTS, (argset){proto + 1}, &list);
    bool bounds = false, time = false;
    for (size_t i = 0; i < list.n; i++) {
        const char *key = fixture_text(&f, list.p[i].key);
        bounds |= strcmp(key, "changes[0].start_absolute_bounds") == 0 && list.p[i].type == ARG_NULL;
        time |= strcmp(key, "send_time_ns") == 0 && list.p[i].type == ARG_INT && list.p[i].word == 0;
    }
    ck_assert(bounds && time);
    arg_list_free(&list);
}
END_TEST

Suite *winscope_suite(void);

Suite *winscope_suite(void)
{
    Suite *s = suite_create("winscope");
    TCase *c = tcase_create("packets");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, transactions_and_their_flags);
    tcase_add_test(c, numbers_of_transactions);
    tcase_add_test(c, no_numbers_for_megabytes);
    tcase_add_test(c, transitions_of_several_packets);
    tcase_add_test(c, lines_of_protolog);
    tcase_add_test(c, windows_as_a_tree);
    tcase_add_test(c, windows_that_lack_something);
    tcase_add_test(c, layers_that_cover_others);
    tcase_add_test(c, layers_of_turned_displays);
    tcase_add_test(c, layers_that_all_lie_above_each_other);
    tcase_add_test(c, input_and_input_methods);
    tcase_add_test(c, views_and_their_strings);
    tcase_add_test(c, fields_that_are_not_set);
    suite_add_tcase(s, c);
    return s;
}
