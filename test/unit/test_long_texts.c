/* What is long and told once, and meant by many short records: it is read once, not for each of them. */
#include "importer/importer.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LONG = 2 << 20, MANY = 40000 };

static void put_long(struct pb_writer *w, uint32_t field, const char *before, const char *after)
{
    size_t len = strlen(before) + LONG + strlen(after);
    char *text = malloc(len + 1);
    memset(text, 'a', len);
    memcpy(text, before, strlen(before));
    memcpy(text + len - strlen(after), after, strlen(after));
    pb_put_bytes(w, field, text, len);
    free(text);
}

static size_t begin_packet(struct pb_writer *w, uint32_t ts)
{
    size_t packet = pb_begin(w, TRACE_PACKET);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, ts);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    if (!ts)
        pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, 1 /* its state is cleared */);
    return packet;
}

/* An interned message with a number and a long text. */
static void intern_long(struct pb_writer *w, uint32_t table, uint32_t field)
{
    size_t entry = pb_begin(w, table);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    put_long(w, field, "", "");
    pb_end(w, entry);
}

static void gpu_stages(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    intern_long(w, INTERNED_DATA_GPU_SPECIFICATIONS, INTERNED_GPU_RENDER_STAGE_SPECIFICATION_DESCRIPTION);
    pb_end(w, interned);
    pb_end(w, packet);
    for (uint32_t i = 1; i <= MANY; i++) {
        packet = begin_packet(w, i);
        size_t event = pb_begin(w, TRACE_PACKET_GPU_RENDER_STAGE_EVENT);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_EVENT_ID, i);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_HW_QUEUE_IID, 1);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_STAGE_IID, 1);
        pb_end(w, event);
        pb_end(w, packet);
    }
}

static void put_kernel_arg(struct pb_writer *w, uint32_t field, uint32_t i)
{
    char name[16];
    size_t arg = pb_begin(w, field);
    snprintf(name, sizeof name, "%u", i);
    pb_put_str(w, GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_NAME, name);
    pb_put_varint(w, GPU_RENDER_STAGE_EVENT_EXTRA_COMPUTE_ARG_INT_VALUE, i);
    pb_end(w, arg);
}

/* A kernel with many args, and slices that differ, so that each has its set of args; one launch with many more. */
static void gpu_kernels(struct pb_writer *w)
{
    enum { ARGS = 5000, STAGES = 5000, LAUNCH_ARGS = 200000 };
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    size_t kernel = pb_begin(w, INTERNED_DATA_COMPUTE_KERNELS);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    for (uint32_t i = 0; i < ARGS; i++)
        put_kernel_arg(w, INTERNED_COMPUTE_KERNEL_ARGS, i);
    pb_end(w, kernel);
    pb_end(w, interned);
    pb_end(w, packet);
    for (uint32_t i = 1; i <= STAGES; i++) {
        packet = begin_packet(w, i);
        size_t event = pb_begin(w, TRACE_PACKET_GPU_RENDER_STAGE_EVENT);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_EVENT_ID, i);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_HW_QUEUE_ID, 1);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_SUBMISSION_ID, i);
        pb_put_varint(w, GPU_RENDER_STAGE_EVENT_KERNEL_IID, 1);
        size_t launch = pb_begin(w, GPU_RENDER_STAGE_EVENT_LAUNCH);
        for (uint32_t k = 0; i == STAGES && k < LAUNCH_ARGS; k++)
            put_kernel_arg(w, GPU_RENDER_STAGE_EVENT_COMPUTE_KERNEL_LAUNCH_ARGS, k);
        pb_end(w, launch);
        pb_end(w, event);
        pb_end(w, packet);
    }
}

/* Counters that are each in a group of their own, which is described nowhere. */
static void gpu_groups(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 1), event = pb_begin(w, TRACE_PACKET_GPU_COUNTER_EVENT);
    size_t descriptor = pb_begin(w, GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR);
    for (uint32_t i = 0; i < MANY; i++) {
        size_t spec = pb_begin(w, GPU_COUNTER_DESCRIPTOR_SPECS);
        pb_put_varint(w, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_COUNTER_ID, i);
        pb_put_str(w, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_NAME, "n");
        pb_put_varint(w, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_GROUPS, MANY + i);
        pb_end(w, spec);
        size_t group = pb_begin(w, GPU_COUNTER_DESCRIPTOR_COUNTER_GROUPS);
        pb_put_varint(w, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_GROUP_SPEC_GROUP_ID, i);
        pb_end(w, group);
    }
    pb_end(w, descriptor);
    pb_end(w, event);
    pb_end(w, packet);
}

static void function_names(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    intern_long(w, INTERNED_DATA_FUNCTION_NAMES, INTERNED_STRING_STR);
    size_t mapping = pb_begin(w, INTERNED_DATA_MAPPINGS);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    pb_end(w, mapping);
    for (uint32_t i = 1; i <= MANY; i++) {
        size_t frame = pb_begin(w, INTERNED_DATA_FRAMES);
        pb_put_varint(w, FRAME_MAPPING_ID, 1);
        pb_put_varint(w, INTERNED_STRING_IID, i);
        pb_put_varint(w, FRAME_FUNCTION_NAME_ID, 1);
        pb_put_varint(w, FRAME_REL_PC, i);
        pb_end(w, frame);
    }
    size_t stack = pb_begin(w, INTERNED_DATA_CALLSTACKS);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    for (uint32_t i = 1; i <= MANY; i++)
        pb_put_varint(w, CALLSTACK_FRAME_IDS, i);
    pb_end(w, stack);
    pb_end(w, interned);
    pb_end(w, packet);
    packet = begin_packet(w, 1);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    pb_put_varint(w, PERF_SAMPLE_PID, 1);
    pb_put_varint(w, PERF_SAMPLE_TID, 1);
    pb_put_varint(w, PERF_SAMPLE_CALLSTACK_IID, 1);
    pb_end(w, sample);
    pb_end(w, packet);
}

static void class_objects(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 1), graph = pb_begin(w, TRACE_PACKET_HEAP_GRAPH);
    size_t part = pb_begin(w, HEAP_GRAPH_TYPES);
    pb_put_varint(w, HEAP_GRAPH_TYPE_ID, 1);
    put_long(w, HEAP_GRAPH_TYPE_CLASS_NAME, "java.lang.Class<", ">");
    pb_end(w, part);
    part = pb_begin(w, HEAP_GRAPH_FIELD_NAMES);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    pb_put_str(w, INTERNED_STRING_STR, "java.lang.Class java.lang.Class.superClass");
    pb_end(w, part);
    for (uint32_t i = 1; i <= MANY; i++) {
        part = pb_begin(w, HEAP_GRAPH_OBJECTS);
        pb_put_varint(w, HEAP_GRAPH_OBJECT_ID, i);
        pb_put_varint(w, HEAP_GRAPH_OBJECT_TYPE_ID, 1);
        pb_end(w, part);
    }
    pb_end(w, graph);
    pb_end(w, packet);
}

static void put_template(struct pb_writer *w, uint32_t group, const char *text)
{
    size_t part = pb_begin(w, PROTO_LOG_VIEWER_CONFIG_MESSAGES);
    pb_put_varint(w, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_MESSAGE_ID, 1);
    pb_put_varint(w, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_GROUP_ID, group);
    pb_put_str(w, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_MESSAGE, text);
    pb_end(w, part);
}

static void put_lines(struct pb_writer *w)
{
    for (uint32_t i = 1; i <= MANY; i++) {
        size_t packet = begin_packet(w, i), line = pb_begin(w, TRACE_PACKET_PROTOLOG_MESSAGE);
        pb_put_varint(w, PROTO_LOG_MESSAGE_MESSAGE_ID, 1);
        pb_put_varint(w, PROTO_LOG_MESSAGE_SINT64_PARAMS, i);
        pb_end(w, line);
        pb_end(w, packet);
    }
}

/* Texts that all have one number. */
static void texts_of_one_number(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 1), config = pb_begin(w, TRACE_PACKET_PROTOLOG_VIEWER_CONFIG);
    for (uint32_t i = 0; i < MANY; i++)
        put_template(w, i, "%s");
    pb_end(w, config);
    pb_end(w, packet);
    put_lines(w);
}

/* A long text, and lines that differ by a number in it. */
static void lines_of_a_text(struct pb_writer *w)
{
    char text[8000];
    memset(text, 'a', sizeof text);
    memcpy(text, "%d", 2);
    text[sizeof text - 1] = 0;
    size_t packet = begin_packet(w, 1), config = pb_begin(w, TRACE_PACKET_PROTOLOG_VIEWER_CONFIG);
    put_template(w, 1, text);
    pb_end(w, config);
    pb_end(w, packet);
    put_lines(w);
}

/* A long parameter. */
static void lines_with_a_text(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    intern_long(w, INTERNED_DATA_PROTOLOG_STRING_ARGS, INTERNED_STRING_STR);
    pb_end(w, interned);
    pb_end(w, packet);
    packet = begin_packet(w, 1);
    size_t config = pb_begin(w, TRACE_PACKET_PROTOLOG_VIEWER_CONFIG);
    put_template(w, 1, "%s");
    pb_end(w, config);
    pb_end(w, packet);
    for (uint32_t i = 2; i <= MANY + 1; i++) {
        packet = begin_packet(w, i);
        size_t line = pb_begin(w, TRACE_PACKET_PROTOLOG_MESSAGE);
        pb_put_varint(w, PROTO_LOG_MESSAGE_MESSAGE_ID, 1);
        pb_put_varint(w, PROTO_LOG_MESSAGE_STR_PARAM_IIDS, 1);
        pb_end(w, line);
        pb_end(w, packet);
    }
}

static void put_v8_script(struct pb_writer *w)
{
    size_t part = pb_begin(w, INTERNED_DATA_V8_ISOLATE);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    pb_put_varint(w, INTERNED_V8_ISOLATE_PID, 1);
    size_t range = pb_begin(w, INTERNED_V8_ISOLATE_CODE_RANGE);
    pb_put_varint(w, INTERNED_V8_ISOLATE_CODE_RANGE_BASE_ADDRESS, 4096);
    pb_put_varint(w, INTERNED_V8_ISOLATE_CODE_RANGE_SIZE, 1 << 30);
    pb_end(w, range);
    pb_end(w, part);
    part = pb_begin(w, INTERNED_DATA_V8_JS_SCRIPT);
    pb_put_varint(w, INTERNED_STRING_IID, 1);
    pb_put_varint(w, INTERNED_V8_JS_SCRIPT_SCRIPT_ID, 1);
    size_t name = pb_begin(w, INTERNED_V8_JS_SCRIPT_NAME);
    put_long(w, V8_STRING_LATIN1, "", "");
    pb_end(w, name);
    pb_end(w, part);
    intern_long(w, INTERNED_DATA_V8_JS_FUNCTION_NAME, INTERNED_V8_STRING_LATIN1);
}

/* Functions of one script, all of one name. */
static void v8_functions(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    put_v8_script(w);
    for (uint32_t i = 1; i <= MANY; i++) {
        size_t part = pb_begin(w, INTERNED_DATA_V8_JS_FUNCTION);
        pb_put_varint(w, INTERNED_STRING_IID, i);
        pb_put_varint(w, INTERNED_V8_JS_FUNCTION_V8_JS_FUNCTION_NAME_IID, 1);
        pb_put_varint(w, INTERNED_V8_JS_FUNCTION_V8_JS_SCRIPT_IID, 1);
        pb_put_varint(w, INTERNED_V8_JS_FUNCTION_BYTE_OFFSET, i);
        pb_end(w, part);
    }
    pb_end(w, interned);
    pb_end(w, packet);
    for (uint32_t i = 1; i <= MANY; i++) {
        packet = begin_packet(w, i);
        size_t code = pb_begin(w, TRACE_PACKET_V8_JS_CODE);
        pb_put_varint(w, V8_JS_CODE_V8_ISOLATE_IID, 1);
        pb_put_varint(w, V8_JS_CODE_TID, 1);
        pb_put_varint(w, V8_JS_CODE_V8_JS_FUNCTION_IID, i);
        pb_put_varint(w, V8_JS_CODE_TIER, 2);
        pb_put_varint(w, V8_JS_CODE_INSTRUCTION_START, 8192 + 16 * i);
        pb_put_varint(w, V8_JS_CODE_INSTRUCTION_SIZE_BYTES, 16);
        pb_end(w, code);
        pb_end(w, packet);
    }
}

static void put_many(struct pb_writer *w, uint32_t field, uint64_t value, uint32_t n)
{
    size_t packed = pb_begin(w, field);
    for (uint32_t i = 0; i < n; i++)
        pb_put_raw_varint(w, value);
    pb_end(w, packed);
}

/* Two bytes for each time that a wakelock is taken. */
static void wakelocks(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    size_t entry = pb_begin(w, INTERNED_DATA_APP_WAKELOCK_INFO);
    pb_put_varint(w, APP_WAKELOCK_INFO_IID, 1);
    put_long(w, APP_WAKELOCK_INFO_TAG, "", "");
    pb_end(w, entry);
    pb_end(w, interned);
    pb_end(w, packet);
    packet = begin_packet(w, 1);
    size_t bundle = pb_begin(w, TRACE_PACKET_APP_WAKELOCK_BUNDLE);
    put_many(w, APP_WAKELOCK_BUNDLE_INTERN_ID, 1, MANY);
    put_many(w, APP_WAKELOCK_BUNDLE_ENCODED_TS, 3, MANY);
    pb_end(w, bundle);
    pb_end(w, packet);
}

static void one_kernel_wakelock(struct pb_writer *w, uint32_t ts, uint32_t id)
{
    size_t packet = begin_packet(w, ts), data = pb_begin(w, TRACE_PACKET_KERNEL_WAKELOCK_DATA);
    pb_put_varint(w, KERNEL_WAKELOCK_DATA_WAKELOCK_ID, id);
    pb_put_varint(w, KERNEL_WAKELOCK_DATA_TIME_HELD_MILLIS, 1);
    pb_end(w, data);
    pb_end(w, packet);
}

/* Packets that tell of one wakelock, and mean that all others are as they were. */
static void kernel_wakelocks(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), data = pb_begin(w, TRACE_PACKET_KERNEL_WAKELOCK_DATA);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        size_t lock = pb_begin(w, KERNEL_WAKELOCK_DATA_WAKELOCK);
        snprintf(name, sizeof name, "%u", i);
        pb_put_varint(w, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_ID, i);
        pb_put_str(w, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_NAME, name);
        pb_end(w, lock);
        pb_put_varint(w, KERNEL_WAKELOCK_DATA_WAKELOCK_ID, i);
        pb_put_varint(w, KERNEL_WAKELOCK_DATA_TIME_HELD_MILLIS, 1);
    }
    pb_end(w, data);
    pb_end(w, packet);
    for (uint32_t i = 0; i < MANY; i++)
        one_kernel_wakelock(w, i + 1, i);
}

/* … and those of one user id. */
static void cpu_times(struct pb_writer *w)
{
    for (uint32_t i = 0; i < MANY; i++) {
        size_t packet = begin_packet(w, i), data = pb_begin(w, TRACE_PACKET_CPU_PER_UID_DATA);
        pb_put_varint(w, CPU_PER_UID_DATA_CLUSTER_COUNT, 1);
        for (uint32_t k = i; k < (i ? i + 1 : MANY); k++) {
            pb_put_varint(w, CPU_PER_UID_DATA_UID, k);
            pb_put_varint(w, CPU_PER_UID_DATA_TOTAL_TIME_MS, 1);
        }
        pb_end(w, data);
        pb_end(w, packet);
    }
}

/* Two bytes for each packet of a network, of an interface with a long name, on a phone with many packages. */
static void network_packets(struct pb_writer *w)
{
    size_t packet = begin_packet(w, 0), interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
    size_t entry = pb_begin(w, INTERNED_DATA_PACKET_CONTEXT);
    pb_put_varint(w, NETWORK_PACKET_CONTEXT_IID, 1);
    size_t context = pb_begin(w, NETWORK_PACKET_CONTEXT_CTX);
    put_long(w, NETWORK_PACKET_EVENT_NETWORK_INTERFACE, "", "");
    pb_put_varint(w, NETWORK_PACKET_EVENT_UID, 7);
    pb_end(w, context);
    pb_end(w, entry);
    pb_end(w, interned);
    size_t packages = pb_begin(w, TRACE_PACKET_PACKAGES_LIST);
    for (uint32_t i = 0; i < 4 * MANY; i++) {
        size_t package = pb_begin(w, PACKAGES_LIST_PACKAGES);
        pb_put_str(w, PACKAGES_LIST_PACKAGE_INFO_NAME, "p");
        pb_put_varint(w, PACKAGES_LIST_PACKAGE_INFO_UID, 10000 + i);
        pb_end(w, package);
    }
    pb_end(w, packages);
    pb_end(w, packet);
    packet = begin_packet(w, 1);
    size_t bundle = pb_begin(w, TRACE_PACKET_NETWORK_PACKET_BUNDLE);
    pb_put_varint(w, NETWORK_PACKET_BUNDLE_IID, 1);
    put_many(w, NETWORK_PACKET_BUNDLE_PACKET_TIMESTAMPS, 1, MANY);
    put_many(w, NETWORK_PACKET_BUNDLE_PACKET_LENGTHS, 1, MANY);
    pb_end(w, bundle);
    pb_end(w, packet);
}

static void put_numbers(struct pb_writer *w, uint32_t message, uint32_t first, uint64_t a, uint32_t second, uint64_t b)
{
    size_t part = pb_begin(w, message);
    pb_put_varint(w, first, a);
    pb_put_varint(w, second, b);
    pb_end(w, part);
}

static void pprof_names(struct pb_writer *w)
{
    put_numbers(w, PPROF_PROFILE_SAMPLE_TYPE, PPROF_VALUE_TYPE_TYPE, 0, PPROF_VALUE_TYPE_UNIT, 0);
    put_numbers(w, PPROF_PROFILE_SAMPLE, PPROF_SAMPLE_LOCATION_ID, 1, PPROF_SAMPLE_VALUE, 1);
    put_numbers(w, PPROF_PROFILE_MAPPING, PPROF_MAPPING_ID, 1, PPROF_MAPPING_BUILD_ID, 1);
    for (uint32_t i = 1; i <= MANY; i++)
        put_numbers(w, PPROF_PROFILE_LOCATION, PPROF_LOCATION_ID, i, PPROF_LOCATION_MAPPING_ID, 1);
    size_t location = pb_begin(w, PPROF_PROFILE_LOCATION);
    pb_put_varint(w, PPROF_LOCATION_ID, MANY + 1);
    for (uint32_t i = 0; i < MANY; i++)
        put_numbers(w, PPROF_LOCATION_LINE, PPROF_LINE_FUNCTION_ID, 1, PPROF_LINE_LINE, i);
    pb_end(w, location);
    put_numbers(w, PPROF_PROFILE_FUNCTION, PPROF_FUNCTION_ID, 1, PPROF_FUNCTION_NAME, 1);
    pb_put_str(w, PPROF_PROFILE_STRING_TABLE, "");
    put_long(w, PPROF_PROFILE_STRING_TABLE, "", "");
}

/* ---- files that are no messages: the writer holds their bytes ---- */

static void append(struct pb_writer *w, const void *bytes, size_t n)
{
    pb_put_raw(w, bytes, n);
}

static void append_str(struct pb_writer *w, const char *text)
{
    append(w, text, strlen(text));
}

static void append_long(struct pb_writer *w)
{
    char *text = malloc(LONG);
    memset(text, 'a', LONG);
    append(w, text, LONG);
    free(text);
}

static void gecko_frames(struct pb_writer *w)
{
    append_str(w,
               "{\"meta\":{\"version\":24,\"product\":\"Firefox\",\"interval\":1,\"processType\":0,\"startTime\":0,"
               "\"categories\":[]},\"libs\":[],\"threads\":[{\"name\":\"t\",\"pid\":1,\"tid\":1,\"stringTable\":[\"");
    append_long(w);
    append_str(w, " (in x)\"],\"frameTable\":{\"schema\":{\"location\":0},\"data\":[[0]");
    for (int i = 1; i < MANY; i++)
        append_str(w, ",[0]");
    append_str(w,
               "]},\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,0]]},\"samples\":{\"schema\":{"
               "\"stack\":0,\"time\":1},\"data\":[[0,1]]},\"markers\":{\"schema\":{\"name\":0},\"data\":[]}}]}");
}

static void instruments_stacks(struct pb_writer *w)
{
    char text[128];
    append_str(w, "<?xml version=\"1.0\"?>\n<trace-query-result>\n<node><schema name=\"time-profile\"></schema>"
                  "<row><sample-time id=\"1\">1</sample-time><thread id=\"2\" fmt=\"t\"><tid id=\"3\">7</tid>"
                  "<process id=\"6\" fmt=\"p\"><pid id=\"7\">7</pid></process></thread><backtrace id=\"4\">"
                  "<frame id=\"5\" name=\"f\" addr=\"0x1\"/>");
    for (int i = 0; i < MANY; i++)
        append_str(w, "<frame ref=\"5\"/>");
    append_str(w, "</backtrace></row>");
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text,
                 "<row><sample-time id=\"%d\">%d</sample-time><thread ref=\"2\"/><backtrace ref=\"4\"/></row>", i + 10,
                 i);
        append_str(w, text);
    }
    append_str(w, "</node></trace-query-result>");
}

static void big(struct pb_writer *w, uint32_t v, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;)
        append(w, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
}

static void hprof_fields(struct pb_writer *w)
{
    enum { STRING = 1, HEAP_DUMP_SEGMENT = 0x1c, CLASS = 0x20, BOOLEAN = 4, ID = 4 };
    append(w, "JAVA PROFILE 1.0.3", 19);
    big(w, ID, 4);
    big(w, 0, 4);
    big(w, 0, 4);
    big(w, STRING, 1);
    big(w, 0, 4);
    big(w, ID + LONG, 4);
    big(w, 1, ID);
    append_long(w);
    big(w, HEAP_DUMP_SEGMENT, 1);
    big(w, 0, 4);
    big(w, 1 + ID + 4 + 6 * ID + 4 + 2 + 2 + 2 + MANY * (ID + 1), 4);
    big(w, CLASS, 1);
    big(w, 100, ID);
    for (int i = 0; i < 8; i++) /* stack, superclass, loader, …; the size */
        big(w, 0, 4);
    big(w, 0, 2);
    big(w, 0, 2);
    big(w, MANY, 2);
    for (int i = 0; i < MANY; i++) {
        big(w, 1, ID);
        big(w, BOOLEAN, 1);
    }
}

static const struct {
    const char *name;
    void (*write)(struct pb_writer *w);
    enum table_id rows; /* what many records make rows of */
    uint32_t n;         /* how many at least: the records were read */
} kinds[] = {
    {"stages of a GPU", gpu_stages, T_slice, MANY},
    {"args of kernels", gpu_kernels, T_slice, 5000},
    {"groups of counters", gpu_groups, T_gpu_counter_group, MANY},
    {"names of functions", function_names, T_stack_profile_frame, MANY},
    {"class objects", class_objects, T_heap_graph_object, MANY},
    {"texts of one number", texts_of_one_number, T_protolog, MANY},
    {"lines of a text", lines_of_a_text, T_protolog, MANY},
    {"lines with a text", lines_with_a_text, T_protolog, MANY},
    {"V8", v8_functions, T_v8_js_function, MANY},
    {"wakelocks", wakelocks, T_slice, 512},
    {"wakelocks of the kernel", kernel_wakelocks, T_counter, 2 * MANY},
    {"processor time of user ids", cpu_times, T_counter, MANY},
    {"packets of a network", network_packets, T_slice, 512},
    {"pprof", pprof_names, T_stack_profile_symbol, MANY},
    {"Gecko", gecko_frames, T_stack_profile_frame, 1},
    {"Instruments", instruments_stacks, T_profiler_sample, MANY},
    {"hprof", hprof_fields, T_COUNT, 0},
};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long held_kb(void)
{
    char line[128];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    fclose(f);
    return kb;
}

static int64_t told(const struct storage *st, enum stat_key stat, int32_t idx)
{
    const int64_t *n = stats_get_idx(&st->stats, 0, stat, idx);
    return n ? *n : 0;
}

START_TEST(long_texts_are_read_once)
{
    enum { MAX_KB = 220 * 1024 };
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct pb_writer w = {0};
    double most = 2.5; /* seconds of the processor */
    long most_kb = MAX_KB;
#ifdef __SANITIZE_ADDRESS__
    most *= 6;
    most_kb *= 4;
#endif
    kinds[_i].write(&w);
    ck_assert_int_eq(storage_init(&st), 0);
    double before = cpu_s();
    long before_kb = held_kb();
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_msg(importer_feed(im, w.p, w.n, &err) == 0, "%s: %s", kinds[_i].name, err.text);
    ck_assert_int_eq(importer_finish(im, &err), 0);
    double took = cpu_s() - before;
    long held = held_kb() - before_kb;
    if (kinds[_i].rows != T_COUNT)
        ck_assert_msg(st.t[kinds[_i].rows].n_rows >= kinds[_i].n, "%s: %u rows", kinds[_i].name,
                      st.t[kinds[_i].rows].n_rows);
    ck_assert_msg(took < most, "%s: %.1f s for %zu KB", kinds[_i].name, took, w.n / 1024);
    ck_assert_msg(held < most_kb, "%s: %ld KB for %zu KB", kinds[_i].name, held, w.n / 1024);
    if (kinds[_i].write == hprof_fields)
        ck_assert_int_eq(stats_get(&st.stats, 0, STAT_hprof_class_counter), 1);
    if (kinds[_i].write == gpu_kernels)
        ck_assert_int_gt(told(&st, STAT_gpu_kernel_args_left_out, 0), 0);
    if (kinds[_i].write == texts_of_one_number)
        ck_assert_int_eq(told(&st, STAT_winscope_protolog_texts_left_out, 1), MANY - 64);
    if (kinds[_i].write == lines_of_a_text)
        ck_assert_int_gt(told(&st, STAT_winscope_protolog_lines_as_templates, 1), 0);
    importer_close(im);
    storage_free(&st);
    pb_writer_free(&w);
}
END_TEST

Suite *long_texts_suite(void);
Suite *long_texts_suite(void)
{
    Suite *s = suite_create("long_texts");
    TCase *c = tcase_create("long_texts");
    tcase_set_timeout(c, 60); /* times CK_TIMEOUT_MULTIPLIER */
    tcase_add_loop_test(c, long_texts_are_read_once, 0, (int)(sizeof kinds / sizeof *kinds));
    suite_add_tcase(s, c);
    return s;
}
