/* Tests that what is found by a hash is never taken for something of another kind, whatever numbers a file chooses: the
 * numbers here make the hashes of things of several kinds one, as long as nothing secret goes into them (a number that
 * is the hash of what stands before it makes the product in the next step zero). */
#include "base/hash.h"
#include "capture/record/profile_stacks.h"
#include "importer/system/gpu_work.h"
#include "trace_fixture.h"
#include "wire/fields.h"

#include <check.h>

enum { GENERATIONS = 4 }; /* of the sequence: which number its state has does not matter to the tests */

static void put_isolate(struct pb_writer *w, uint64_t iid)
{
    size_t m = pb_begin(w, INTERNED_DATA_V8_ISOLATE);
    pb_put_varint(w, INTERNED_V8_ISOLATE_IID, iid);
    pb_put_varint(w, INTERNED_V8_ISOLATE_PID, 100);
    pb_put_varint(w, INTERNED_V8_ISOLATE_ISOLATE_ID, 1);
    size_t range = pb_begin(w, INTERNED_V8_ISOLATE_CODE_RANGE);
    pb_put_varint(w, INTERNED_V8_ISOLATE_CODE_RANGE_BASE_ADDRESS, 0x100000);
    pb_put_varint(w, INTERNED_V8_ISOLATE_CODE_RANGE_SIZE, 0x100000);
    pb_end(w, range);
    pb_end(w, m);
}

static uint64_t v8_number(uint64_t state, uint32_t field)
{
    return hash_combine(hash_u64(state), field);
}

static void put_code(struct trace_fixture *f, int64_t ts, uint64_t isolate, uint64_t script)
{
    packet_begin(f, ts);
    size_t m = pb_begin(&f->w, TRACE_PACKET_V8_WASM_CODE);
    pb_put_varint(&f->w, V8_WASM_CODE_V8_ISOLATE_IID, isolate);
    pb_put_varint(&f->w, V8_WASM_CODE_TID, 100);
    pb_put_varint(&f->w, V8_WASM_CODE_V8_WASM_SCRIPT_IID, script);
    pb_put_str(&f->w, V8_WASM_CODE_FUNCTION_NAME, "f");
    pb_put_varint(&f->w, V8_WASM_CODE_INSTRUCTION_START, 0x100000 + 64 * (uint64_t)ts);
    pb_put_varint(&f->w, V8_WASM_CODE_INSTRUCTION_SIZE_BYTES, 64);
    pb_end(&f->w, m);
    packet_end(f);
}

/* A row of a script was taken for an isolate's address. */
START_TEST(scripts_are_no_isolates)
{
    enum { PLAIN = 7 };
    struct trace_fixture f;
    trace_fixture_open(&f);
    packet_begin(&f, 1);
    pb_put_varint(&f.w, TRACE_PACKET_SEQUENCE_FLAGS, 1);
    size_t data = pb_begin(&f.w, TRACE_PACKET_INTERNED_DATA);
    put_isolate(&f.w, PLAIN);
    for (uint64_t i = 0; i < GENERATIONS; i++) {
        put_isolate(&f.w, v8_number(i, INTERNED_DATA_V8_ISOLATE));
        size_t m = pb_begin(&f.w, INTERNED_DATA_V8_WASM_SCRIPT);
        pb_put_varint(&f.w, INTERNED_V8_WASM_SCRIPT_IID, v8_number(i, INTERNED_DATA_V8_WASM_SCRIPT));
        pb_put_varint(&f.w, INTERNED_V8_WASM_SCRIPT_SCRIPT_ID, 5 + i);
        pb_end(&f.w, m);
    }
    pb_end(&f.w, data);
    packet_end(&f);
    int64_t ts = 2;
    for (uint64_t i = 0; i < GENERATIONS; i++)
        put_code(&f, ts++, PLAIN, v8_number(i, INTERNED_DATA_V8_WASM_SCRIPT));
    for (uint64_t i = 0; i < GENERATIONS; i++)
        put_code(&f, ts++, v8_number(i, INTERNED_DATA_V8_ISOLATE), v8_number(i, INTERNED_DATA_V8_WASM_SCRIPT));
    trace_fixture_load(&f);
    ck_assert_uint_eq(f.st.t[T_v8_isolate].n_rows, 1);
    ck_assert_uint_eq(f.st.t[T_v8_wasm_script].n_rows, GENERATIONS);
    trace_fixture_close(&f);
}
END_TEST

/* The text of a build id was taken for the row of a mapping. */
START_TEST(texts_are_no_mappings)
{
    enum { FRAME = 1, MAPPING = 2, BUILD_ID = 4 }; /* of enum message_kind in stack_messages.c */
    static const char build_id[] = {[0 ... 299] = 'b'};
    struct trace_fixture f;
    trace_fixture_open(&f);
    packet_begin(&f, 1);
    size_t profile = pb_begin(&f.w, TRACE_PACKET_PROFILE_PACKET);
    const struct {
        uint64_t iid;
        const char *text;
        size_t len;
    } strings[] = {{hash_combine(0, BUILD_ID), build_id, sizeof build_id}, {50, "function", 8}};
    for (size_t i = 0; i < 2; i++) {
        size_t m = pb_begin(&f.w, PROFILE_PACKET_STRINGS);
        pb_put_varint(&f.w, INTERNED_STRING_IID, strings[i].iid);
        pb_put_bytes(&f.w, INTERNED_STRING_STR, strings[i].text, strings[i].len);
        pb_end(&f.w, m);
    }
    size_t m = pb_begin(&f.w, PROFILE_PACKET_MAPPINGS);
    pb_put_varint(&f.w, MAPPING_IID, 1);
    pb_put_varint(&f.w, MAPPING_BUILD_ID, strings[0].iid);
    pb_put_varint(&f.w, MAPPING_END, 0x2000);
    pb_end(&f.w, m);
    const uint64_t mappings[] = {1, hash_combine(0, MAPPING)};
    for (uint64_t i = 0; i < 2; i++) {
        m = pb_begin(&f.w, PROFILE_PACKET_FRAMES);
        pb_put_varint(&f.w, FRAME_IID, 1 + i);
        pb_put_varint(&f.w, FRAME_FUNCTION_NAME_ID, 50);
        pb_put_varint(&f.w, FRAME_MAPPING_ID, mappings[i]);
        pb_put_varint(&f.w, FRAME_REL_PC, 16 * (1 + i));
        pb_end(&f.w, m);
        m = pb_begin(&f.w, PROFILE_PACKET_CALLSTACKS);
        pb_put_varint(&f.w, CALLSTACK_IID, 1 + i);
        pb_put_varint(&f.w, CALLSTACK_FRAME_IDS, 1 + i);
        pb_end(&f.w, m);
    }
    size_t dump = pb_begin(&f.w, PROFILE_PACKET_PROCESS_DUMPS);
    pb_put_varint(&f.w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_PID, 1000);
    for (uint64_t i = 0; i < 2; i++) {
        m = pb_begin(&f.w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLES);
        pb_put_varint(&f.w, PROFILE_PACKET_HEAP_SAMPLE_CALLSTACK_ID, 1 + i);
        pb_put_varint(&f.w, PROFILE_PACKET_HEAP_SAMPLE_SELF_ALLOCATED, 100);
        pb_put_varint(&f.w, PROFILE_PACKET_HEAP_SAMPLE_ALLOC_COUNT, 1);
        pb_end(&f.w, m);
    }
    pb_end(&f.w, dump);
    pb_end(&f.w, profile);
    packet_end(&f);
    trace_fixture_load(&f);
    ck_assert_uint_eq(f.st.t[T_stack_profile_mapping].n_rows, 1);
    ck_assert_uint_ge(f.st.t[T_stack_profile_frame].n_rows, 1);
    for (uint32_t i = 0; i < f.st.t[T_stack_profile_frame].n_rows; i++)
        ck_assert_int_eq(ROW_GET(&f.st, stack_profile_frame, mapping, i), 0);
    trace_fixture_close(&f);
}
END_TEST

/* What tracebox shows of a profile while it is recorded: a text's number was taken for the place of a call stack. */
START_TEST(texts_are_no_stacks)
{
    enum { STRING = 0, STACK = 3 }; /* of enum kind in profile_stacks.c */
    struct profile_stacks t = {0};
    struct pb_writer w = {0};
    struct slice message;
    const uint64_t sequence = hash_combine(1, 1);
    uint64_t at;
    size_t packet = pb_begin(&w, 1);
    pb_put_varint(&w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    pb_put_varint(&w, TRACE_PACKET_SEQUENCE_FLAGS, 1);
    size_t data = pb_begin(&w, TRACE_PACKET_INTERNED_DATA);
    for (uint64_t i = 0; i < 8; i++) {
        size_t m = pb_begin(&w, INTERNED_DATA_CALLSTACKS);
        pb_put_varint(&w, CALLSTACK_IID, 1 + i);
        pb_end(&w, m);
    }
    size_t m = pb_begin(&w, INTERNED_DATA_FUNCTION_NAMES);
    pb_put_varint(&w, INTERNED_STRING_IID, hash_combine(sequence, STRING));
    pb_put_str(&w, INTERNED_STRING_STR, "function");
    pb_end(&w, m);
    pb_end(&w, data);
    pb_end(&w, packet);
    ck_assert(profile_stacks_packet(&t, pb_written(&w), &message));
    ck_assert_uint_eq(t.sequence, sequence);
    ck_assert(profile_stacks_take_interned(&t, message));
    ck_assert(profile_stacks_find(&t, 8, &at));
    ck_assert(!profile_stacks_find(&t, hash_combine(sequence, STACK), &at));
    profile_stacks_free(&t);
    pb_writer_free(&w);
}
END_TEST

/* The name of a render pass was taken for that of a framebuffer. */
START_TEST(objects_of_a_gpu_are_of_one_type)
{
    struct trace_fixture f;
    trace_fixture_open(&f);
    packet_begin(&f, 1);
    size_t event = pb_begin(&f.w, TRACE_PACKET_VULKAN_API_EVENT);
    size_t m = pb_begin(&f.w, VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME);
    pb_put_varint(&f.w, VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME_OBJECT_TYPE, GPU_OBJECT_RENDER_PASS);
    pb_put_varint(&f.w, VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME_OBJECT, hash_u64(GPU_OBJECT_RENDER_PASS));
    pb_put_str(&f.w, VULKAN_API_EVENT_VK_DEBUG_UTILS_OBJECT_NAME_OBJECT_NAME, "pass");
    pb_end(&f.w, m);
    pb_end(&f.w, event);
    packet_end(&f);
    trace_fixture_load(&f);
    const struct machine_ctx *machine = f.im->machines.p[0];
    ck_assert_str_eq(
        fixture_text(&f, gpu_object_name(machine, GPU_OBJECT_RENDER_PASS, hash_u64(GPU_OBJECT_RENDER_PASS))), "pass");
    ck_assert_uint_eq(gpu_object_name(machine, GPU_OBJECT_FRAMEBUFFER, hash_u64(GPU_OBJECT_FRAMEBUFFER)), 0);
    trace_fixture_close(&f);
}
END_TEST

/* Wakelocks of two sequences; the number of each is the hash of its sequence's. */
START_TEST(wakelocks_are_of_their_sequence)
{
    static const char *const names[] = {"first", "second"};
    struct trace_fixture f;
    trace_fixture_open(&f);
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 2; i++) {
            size_t packet = pb_begin(&f.w, 1);
            pb_put_varint(&f.w, TRACE_PACKET_TIMESTAMP, 10 + 10 * (uint64_t)round + i);
            pb_put_varint(&f.w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1 + i);
            pb_put_varint(&f.w, TRACE_PACKET_SEQUENCE_FLAGS, round ? 2 : 1);
            size_t data = pb_begin(&f.w, TRACE_PACKET_KERNEL_WAKELOCK_DATA);
            if (!round) {
                size_t lock = pb_begin(&f.w, KERNEL_WAKELOCK_DATA_WAKELOCK);
                pb_put_varint(&f.w, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_ID, hash_u64(i));
                pb_put_str(&f.w, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_NAME, names[i]);
                pb_end(&f.w, lock);
            }
            pb_put_varint(&f.w, KERNEL_WAKELOCK_DATA_WAKELOCK_ID, hash_u64(i));
            pb_put_varint(&f.w, KERNEL_WAKELOCK_DATA_TIME_HELD_MILLIS, 5);
            pb_end(&f.w, data);
            pb_end(&f.w, packet);
        }
    }
    trace_fixture_load(&f);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_kernel_wakelock_reused_id), 0);
    ck_assert_uint_eq(f.st.t[T_track].n_rows, 2);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_str_eq(fixture_text(&f, ROW_GET(&f.st, track, name, i)), names[i]);
    trace_fixture_close(&f);
}
END_TEST

Suite *crossed_keys_suite(void);
Suite *crossed_keys_suite(void)
{
    Suite *s = suite_create("crossed_keys");
    TCase *t = tcase_create("kinds");
    tcase_add_test(t, scripts_are_no_isolates);
    tcase_add_test(t, texts_are_no_mappings);
    tcase_add_test(t, texts_are_no_stacks);
    tcase_add_test(t, objects_of_a_gpu_are_of_one_type);
    tcase_add_test(t, wakelocks_are_of_their_sequence);
    suite_add_tcase(s, t);
    return s;
}
