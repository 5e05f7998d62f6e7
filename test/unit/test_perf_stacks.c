/* Tests what becomes of copied stacks: by unwind tables, with files that are slow, gone, replaced or damaged; and
 * counter groups, as a ring of hardware counters would hold them. */
#include "ck_slice.h"
#include "perf_records.h"

#include "capture/record/profile_top.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- a stack of this process ---- */

enum { COPY = 32768 };

static struct snapshot {
    uint64_t regs[17];
    uint8_t stack[COPY];
    size_t len;
} shot;

#if defined(__x86_64__)
/* In the order of perf's registers, as far as the sampler asks for them. */
__attribute__((no_sanitize("address"))) static void on_signal(int sig, siginfo_t *info, void *context)
{
    static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP};
    extern char **environ;
    const greg_t *g = ((const ucontext_t *)context)->uc_mcontext.gregs;
    (void)sig;
    (void)info;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        shot.regs[i] = (uint64_t)g[order[i]];
    for (int i = 0; i < 8; i++)
        shot.regs[9 + i] = (uint64_t)g[REG_R8 + i];
    uint64_t sp = (uint64_t)g[REG_RSP], end = (uint64_t)(uintptr_t)environ;
    shot.len = end - sp < COPY ? (size_t)(end - sp) & ~(size_t)7 : COPY;
    for (size_t i = 0; i < shot.len; i += 8)
        *(volatile uint64_t *)(shot.stack + i) = *(const volatile uint64_t *)(uintptr_t)(sp + i);
}

static int compare(const void *a, const void *b)
{
    raise(SIGUSR2);
    return *(const int *)a - *(const int *)b;
}

static void take_shot(void)
{
    int two[] = {2, 1};
    sigaction(SIGUSR2, &(struct sigaction){.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, NULL);
    qsort(two, 2, sizeof *two, compare);
}

static struct slice made_shot(struct bench *b, int32_t pid, uint64_t abi, size_t stack_len)
{
    uint64_t flags = 0;
    begin(&b->m, RECORD_SAMPLE, MISC_USER);
    put_u32(&b->m, (uint32_t)pid);
    put_u32(&b->m, (uint32_t)pid);
    put_u64(&b->m, 1000);
    put_u64(&b->m, 42);
    put_u64(&b->m, abi);
    put(&b->m, shot.regs, 9 * 8);
    put_u64(&b->m, flags); /* FLAGS, CS, SS lie between IP and R8 */
    put_u64(&b->m, 0);
    put_u64(&b->m, 0);
    put(&b->m, shot.regs + 9, 8 * 8);
    put_u64(&b->m, COPY);
    put(&b->m, shot.stack, COPY);
    put_u64(&b->m, stack_len);
    return made(&b->m);
}

static uint64_t last_error(const struct bench *b)
{
    return message_u64(last_sample(b), PERF_SAMPLE_UNWIND_ERROR);
}

START_TEST(a_copied_stack_is_unwound_by_tables)
{
    struct bench *b = stack_bench(PERF_USER_DWARF);
    take_shot();
    perf_sampler_take(&b->s, 0, made_shot(b, getpid(), 2, shot.len), 1000);
    ck_assert_uint_eq(last_error(b), 0);
    ck_assert_uint_ge(count_frames(b), 8); /* raise, compare, qsort, take_shot, the test, libcheck, main, libc */
    perf_sampler_take(&b->s, 0, made_shot(b, getpid(), 2, 64), 1000);
    ck_assert_uint_eq(last_error(b), PROFILING_STACK_UNWIND_ERROR_MEMORY_INVALID);
    perf_sampler_take(&b->s, 0, made_shot(b, getpid(), 1, shot.len), 1000);
    ck_assert_uint_eq(last_error(b), PROFILING_STACK_UNWIND_ERROR_UNSUPPORTED);
    shot.regs[8] = 0x10; /* a call into nothing: who called it is on top of the stack */
    perf_sampler_take(&b->s, 0, made_shot(b, getpid(), 2, 0), 1000);
    ck_assert_uint_eq(last_error(b), PROFILING_STACK_UNWIND_ERROR_INVALID_MAP);
    bench_free(b);
}
END_TEST

/* Files are read by threads: the sample waits for them, and is whole then. */
START_TEST(a_sample_waits_for_its_files)
{
    struct bench *b = stack_bench(PERF_USER_DWARF);
    b->shared.files.threads = true;
    take_shot();
    size_t before = b->sink.ends.n;
    perf_sampler_take(&b->s, 0, made_shot(b, getpid(), 2, shot.len), 1000);
    ck_assert_uint_eq(b->sink.ends.n, before);
    ck_assert_uint_gt(b->shared.queued_bytes, 0);
    perf_sampler_retry(&b->s, 1010, true); /* the end: it waits for the threads, once for each file that turns up */
    ck_assert_uint_eq(b->sink.ends.n, before + 1);
    ck_assert_uint_eq(b->shared.queued_bytes, 0);
    ck_assert_uint_eq(last_error(b), 0);
    ck_assert_uint_ge(count_frames(b), 8);
    bench_free(b);
}
END_TEST

/* The process has ended by the time its sample is looked at; what it had mapped is known from records. */
START_TEST(a_process_that_has_ended_keeps_its_stack)
{
    struct bench *b = stack_bench(PERF_USER_DWARF);
    take_shot();
    pid_t child = fork(); /* with this process's maps, and as many more as nobody needs */
    if (child == 0)
        _exit(0);
    begin(&b->m, RECORD_FORK, 0);
    put_u32(&b->m, (uint32_t)child);
    put_u32(&b->m, (uint32_t)getpid());
    put_u32(&b->m, (uint32_t)child);
    put_u32(&b->m, (uint32_t)getpid());
    put_u64(&b->m, 1000);
    perf_sampler_look_ahead(&b->s, made(&b->m), true);
    waitpid(child, NULL, 0);
    perf_sampler_take(&b->s, 0, made_shot(b, child, 2, shot.len), 1000);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_SAMPLE_SKIPPED_REASON), 0);
    ck_assert_uint_eq(last_error(b), 0);
    ck_assert_uint_ge(count_frames(b), 8);
    bench_free(b);
}
END_TEST
#endif

/* ---- files ---- */

static char path[64];

static void write_file(const char *build_id, size_t cut)
{
    /* an ELF file of 64 bits with a note and nothing else */
    uint8_t bytes[512] = "\177ELF\2\1\1";
    uint16_t half = 3, machine = 62, row = 56, rows = 1;
    uint64_t at = 64, note = 120, size = 36;
    uint32_t type = 4, head[] = {4, 20, 3};
    memcpy(bytes + 16, &half, 2);
    memcpy(bytes + 18, &machine, 2);
    memcpy(bytes + 32, &at, 8);
    memcpy(bytes + 54, &row, 2);
    memcpy(bytes + 56, &rows, 2);
    memcpy(bytes + 64, &type, 4);
    memcpy(bytes + 72, &note, 8);
    memcpy(bytes + 96, &size, 8);
    memcpy(bytes + 120, head, 12);
    memcpy(bytes + 132, "GNU", 4);
    memcpy(bytes + 136, build_id, strlen(build_id));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(write(fd, bytes, cut), (ssize_t)cut);
    close(fd);
}

static struct perf_file_map map_of_path(void)
{
    struct stat st = {0};
    lstat(path, &st);
    return (struct perf_file_map){.pid = getpid(), .start = 0x1000, .end = 0x2000, .inode = st.st_ino, .path = path};
}

static const struct perf_file *look(struct perf_files *f, const struct perf_file_map *m, uint64_t now_ms)
{
    int32_t place = perf_files_find(f, m, true, now_ms);
    ck_assert_int_ge(place, 0);
    return &f->list.p[place];
}

START_TEST(a_file_that_changes_is_read_again)
{
    struct perf_files f = {0};
    snprintf(path, sizeof path, "/tmp/perf-file-%d", (int)getpid());
    unlink(path);
    write_file("first", 512);
    struct perf_file_map m = map_of_path();
    ck_assert_slice_eq(slice_of(look(&f, &m, 1000)->elf.build_id, 5), "first");
    write_file("other", 512); /* the same number, as a new file may get */
    ck_assert_slice_eq(slice_of(look(&f, &m, 1500)->elf.build_id, 5), "first");
    ck_assert_slice_eq(slice_of(look(&f, &m, 2000)->elf.build_id, 5), "other");
    m.generation = 7; /* the kernel says which file of that number it was: it is one by itself, and stays */
    ck_assert_slice_eq(slice_of(look(&f, &m, 2000)->elf.build_id, 5), "other");
    ck_assert_uint_eq(f.list.n, 2);
    write_file("third", 512);
    ck_assert_slice_eq(slice_of(look(&f, &m, 9000)->elf.build_id, 5), "other");
    unlink(path);
    perf_files_free(&f);
}
END_TEST

START_TEST(another_file_at_the_path_is_not_read)
{
    struct perf_files f = {0};
    snprintf(path, sizeof path, "/tmp/perf-file-%d", (int)getpid());
    unlink(path);
    write_file("first", 512);
    struct perf_file_map m = map_of_path();
    m.inode++; /* what ran was replaced */
    ck_assert(!look(&f, &m, 1000)->known);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* which nobody opens, as that would wait */
    m = map_of_path();
    ck_assert(!look(&f, &m, 1000)->known);
    unlink(path);
    perf_files_free(&f);
}
END_TEST

START_TEST(cut_files_do_without_tables)
{
    snprintf(path, sizeof path, "/tmp/perf-file-%d", (int)getpid());
    for (size_t cut = 0; cut < 200; cut += 3) {
        struct perf_files f = {0};
        unlink(path);
        write_file("first", cut);
        struct perf_file_map m = map_of_path();
        const struct perf_file *x = look(&f, &m, 1000);
        ck_assert(x->known && x->tables_tried);
        ck_assert_uint_eq(x->elf.build_id_len, cut >= 156 ? 20 : 0);
        perf_files_free(&f);
    }
    unlink(path);
}
END_TEST

/* ---- groups of counters ---- */

START_TEST(followers_are_counted_with_each_sample)
{
    struct bench *b = bench_new();
    b->config.n_followers = 2;
    b->config.timebase.counter = PERF_EVENTS_COUNTER_HW_CPU_CYCLES;
    b->config.followers[0].counter = PERF_EVENTS_COUNTER_HW_INSTRUCTIONS;
    b->config.followers[1] = (struct perf_event_spec){.kind = PERF_EVENT_RAW, .type = 4, .config = 0x1cd, .config1 = 3};
    b->config.followers[1].modifiers = PERF_COUNTS_USER;
    b->s.layout.group = true;
    perf_sampler_begin(&b->s);
    struct slice first = memory_sink_packet(&b->sink, b->sink.ends.n - 2);
    struct slice defaults = message_bytes(message_bytes(first, TRACE_PACKET_TRACE_PACKET_DEFAULTS),
                                          TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS);
    struct slice timebase = message_bytes(defaults, PERF_SAMPLE_DEFAULTS_TIMEBASE);
    ck_assert_uint_eq(message_u64(timebase, PERF_EVENTS_TIMEBASE_COUNTER), PERF_EVENTS_COUNTER_HW_CPU_CYCLES);
    struct pb_cursor c = pb_cursor(defaults);
    struct pb_field f;
    unsigned followers = 0;
    while (pb_next(&c, &f)) {
        if (f.id != PERF_SAMPLE_DEFAULTS_FOLLOWERS)
            continue;
        struct slice raw = message_bytes(pb_bytes(&f), FOLLOWER_EVENT_RAW_EVENT);
        if (followers++ == 0) {
            ck_assert_uint_eq(message_u64(pb_bytes(&f), FOLLOWER_EVENT_COUNTER), PERF_EVENTS_COUNTER_HW_INSTRUCTIONS);
            continue;
        }
        ck_assert_uint_eq(message_u64(raw, PERF_EVENTS_RAW_EVENT_TYPE), 4);
        ck_assert_uint_eq(message_u64(raw, PERF_EVENTS_RAW_EVENT_CONFIG), 0x1cd);
        ck_assert_uint_eq(message_u64(raw, PERF_EVENTS_RAW_EVENT_CONFIG1), 3);
        ck_assert(message_has(raw, PERF_EVENTS_RAW_EVENT_CONFIG2));
        ck_assert(!message_has(raw, PERF_EVENTS_RAW_EVENT_PMU_NAME));
        ck_assert_uint_eq(message_u64(pb_bytes(&f), FOLLOWER_EVENT_MODIFIERS),
                          PERF_EVENTS_EVENT_MODIFIER_COUNT_USERSPACE);
    }
    ck_assert_uint_eq(followers, 2);

    begin(&b->m, RECORD_SAMPLE, MISC_KERNEL); /* as the ring of a machine with such counters has it */
    put_u32(&b->m, 2);
    put_u32(&b->m, 2);
    put_u64(&b->m, 1000);
    put_u64(&b->m, 3); /* the leader and two */
    put_u64(&b->m, 1000000);
    put_u64(&b->m, 2500000);
    put_u64(&b->m, 17);
    put_u64(&b->m, 0); /* an empty chain */
    perf_sampler_take(&b->s, 1, made(&b->m), 1000);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_TIMEBASE_COUNT), 1000000);
    struct pb_numbers n = pb_numbers(last_sample(b), PERF_SAMPLE_FOLLOWER_COUNTS);
    uint64_t v;
    ck_assert(pb_next_number(&n, &v) && v == 2500000);
    ck_assert(pb_next_number(&n, &v) && v == 17);
    ck_assert(!pb_next_number(&n, &v));
    bench_free(b);
}
END_TEST

/* {value, lost} of one event, and {n, {value, lost} …} of a group. */
START_TEST(counts_have_losses_between_them)
{
    struct made_record m;
    struct perf_record x;
    for (int group = 0; group < 2; group++) {
        struct perf_layout layout = {.lost = true, .group = group};
        begin(&m, RECORD_SAMPLE, MISC_USER);
        put_u32(&m, 7);
        put_u32(&m, 8);
        put_u64(&m, 1000);
        if (group)
            put_u64(&m, 2);
        for (uint64_t i = 0; i < 2U * (1U + (unsigned)group); i++)
            put_u64(&m, 40 + i);
        perf_record_read(&x, made(&m), &layout);
        ck_assert_int_eq(x.kind, PERF_KIND_SAMPLE);
        ck_assert_uint_eq(x.n_counts, 1 + (unsigned)group);
        ck_assert_uint_eq(perf_record_count(&x, 0), 40);
        if (group)
            ck_assert_uint_eq(perf_record_count(&x, 1), 42);
        perf_record_read(&x, slice_of(m.bytes, m.n - 8), &layout);
        ck_assert_int_eq(x.kind, PERF_KIND_BROKEN);
    }
    begin(&m, RECORD_SAMPLE, MISC_USER);
    put_u64(&m, 0);
    put_u64(&m, 0);
    put_u64(&m, UINT64_C(1) << 63); /* twice that is nothing */
    perf_record_read(&x, made(&m), &(struct perf_layout){.lost = true, .group = true});
    ck_assert_int_eq(x.kind, PERF_KIND_BROKEN);
}
END_TEST

/* ---- losses ---- */

/* What the packets say cpu 3 has lost. */
static uint64_t told_losses(const struct bench *b)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < b->sink.ends.n; i++) {
        struct pb_field f;
        struct slice sample = memory_sink_field(&b->sink, i, TRACE_PACKET_PERF_SAMPLE);
        if (pb_find(sample, PERF_SAMPLE_KERNEL_RECORDS_LOST, &f))
            lost += pb_u64(&f);
    }
    return lost;
}

/* By the ring's records and by the event's own count, whichever comes first; each loss once. */
START_TEST(losses_are_told_once)
{
    static const struct {
        bool record;
        uint64_t n, told; /* of a record: how many; of the count: all so far */
    } steps[] = {{true, 5, 5},  {false, 5, 5},  {false, 12, 12}, {false, 12, 12}, {true, 7, 12},
                 {true, 3, 15}, {false, 0, 15}, {false, 20, 20}, {true, 2, 20},   {true, 4, 21}};
    struct bench *b = bench_new();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].record) {
            begin(&b->m, RECORD_LOST, 0);
            put_u64(&b->m, 1); /* the event's id */
            put_u64(&b->m, steps[i].n);
            perf_sampler_take(&b->s, 3, made(&b->m), 1000);
        } else {
            perf_sampler_lost(&b->s, 3, steps[i].n);
        }
        ck_assert_msg(told_losses(b) == steps[i].told, "step %zu", i);
    }
    bench_free(b);
}
END_TEST

/* ---- what is known is bounded ---- */

enum { SOMEBODY = 0x400000 /* above pid_max */ };

static void look_at_map(struct bench *b, int32_t pid, uint64_t start, const char *name)
{
    begin(&b->m, RECORD_MMAP2, MISC_USER);
    put_u32(&b->m, (uint32_t)pid);
    put_u32(&b->m, (uint32_t)pid);
    put_u64(&b->m, start);
    put_u64(&b->m, 0x1000);
    for (int i = 0; i < 5; i++) /* offset, device, inode and its generation, protection */
        put_u64(&b->m, 0);
    put(&b->m, name, strlen(name) + 1);
    perf_sampler_look_ahead(&b->s, made(&b->m), false);
    perf_sampler_bound(&b->s);
}

/* One process maps code under ever new names; and ever new processes have some maps each. */
START_TEST(maps_of_all_processes_are_bounded)
{
    struct bench *b = bench_new();
    const struct perf_processes *ps = &b->s.processes;
    char name[256];
    size_t most = 0, largest = 0;
    memset(name, 'x', sizeof name);
    for (uint64_t i = 0; i < 200000; i++) {
        snprintf(name + 230, 20, "%llu", (unsigned long long)i);
        look_at_map(b, SOMEBODY, 0x10000, name);
        largest = ps->paths.bytes.total_bytes > largest ? ps->paths.bytes.total_bytes : largest;
    }
    for (int32_t i = 0; i < PERF_PROCESSES_MAX + 10000; i++) {
        look_at_map(b, SOMEBODY + i, 0x10000, "/same");
        most = ps->index.n > most ? ps->index.n : most;
        ck_assert_uint_le(ps->map_room, PERF_MAPS_MAX + 64);
    }
    ck_assert_uint_gt(largest, PERF_PATHS_MAX_BYTES / 2);
    ck_assert_uint_le(largest, PERF_PATHS_MAX_BYTES + (4 << 20));
    ck_assert_uint_gt(most, 1000);
    ck_assert_uint_le(most, PERF_PROCESSES_MAX + 1);
    bench_free(b);
}
END_TEST

/* Each sample has a frame that no other has. When too many are numbered, the sequence begins anew, and later stacks
 * bring along what they refer to. */
START_TEST(numbers_of_frames_are_bounded)
{
    struct bench *b = bench_new();
    uint64_t began = 0;
    uint32_t most = 0;
    b->config.kernel_frames = false;
    look_at_map(b, SOMEBODY, 0x10000, "/file");
    perf_process_get(&b->s.processes, SOMEBODY)->verdict = PERF_IN;
    for (uint64_t i = 0; i < PERF_INTERN_MAX && !began; i++) {
        uint64_t chain[] = {CONTEXT_USER, (i + 1) << 20};
        begin(&b->m, RECORD_SAMPLE, MISC_USER);
        put_u32(&b->m, SOMEBODY);
        put_u32(&b->m, SOMEBODY);
        put_u64(&b->m, 1000 + i);
        put_u64(&b->m, i);
        put_u64(&b->m, 2);
        put(&b->m, chain, sizeof chain);
        perf_sampler_take(&b->s, 0, made(&b->m), 1000);
        most = b->s.packets.in.frames.n > most ? b->s.packets.in.frames.n : most;
        uint32_t before = b->s.generation;
        perf_sampler_bound(&b->s);
        began += b->s.generation != before;
        if (b->sink.ends.n > 1000)
            memory_sink_free(&b->sink);
    }
    ck_assert_uint_eq(began, 1);
    ck_assert_uint_gt(most, 1000);
    ck_assert_uint_le(most, PERF_INTERN_MAX);
    bench_free(b);
}
END_TEST

/* ---- the table of profile ---- */

static void put_string(struct pb_writer *w, uint64_t iid, const char *text)
{
    size_t m = pb_begin(w, INTERNED_DATA_FUNCTION_NAMES);
    pb_put_varint(w, INTERNED_STRING_IID, iid);
    pb_put_str(w, INTERNED_STRING_STR, text);
    pb_end(w, m);
    m = pb_begin(w, INTERNED_DATA_FRAMES);
    pb_put_varint(w, FRAME_IID, iid);
    pb_put_varint(w, FRAME_FUNCTION_NAME_ID, iid);
    pb_end(w, m);
    m = pb_begin(w, INTERNED_DATA_CALLSTACKS);
    pb_put_varint(w, CALLSTACK_IID, iid);
    pb_put_varint(w, CALLSTACK_FRAME_IDS, iid);
    pb_end(w, m);
}

static void put_sample_of(struct pb_writer *w, uint64_t stack)
{
    size_t packet = pb_begin(w, TRACE_PACKET);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    size_t sample = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    pb_put_varint(w, PERF_SAMPLE_TID, 5);
    pb_put_varint(w, PERF_SAMPLE_CALLSTACK_IID, stack);
    pb_end(w, sample);
    pb_end(w, packet);
}

/* Functions of C++ and Rust as their source has them; what is no such name stays, and nothing of it reaches the
 * terminal as a command. */
START_TEST(the_table_has_readable_names)
{
    static const char *const names[] = {"_ZN3foo3barEv", "_ZN4core3fmt3pad17h0123456789abcdefE", "_Zno", "\033[2Jhot"};
    struct pb_writer w = {0};
    struct profile_counts counts = {0};
    char trace[] = "/tmp/mrd-top-XXXXXX", *text = NULL;
    size_t len, packet = pb_begin(&w, TRACE_PACKET);
    pb_put_varint(&w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    pb_put_varint(&w, TRACE_PACKET_SEQUENCE_FLAGS, 1);
    size_t interned = pb_begin(&w, TRACE_PACKET_INTERNED_DATA);
    for (uint64_t i = 0; i < 4; i++)
        put_string(&w, i + 1, names[i]);
    pb_end(&w, interned);
    pb_end(&w, packet);
    for (uint64_t i = 0; i < 4; i++)
        for (uint64_t n = 0; n < 4 - i; n++)
            put_sample_of(&w, i + 1);
    int fd = mkstemp(trace);
    ck_assert_int_eq(write(fd, w.p, w.n), (ssize_t)w.n);
    close(fd);
    FILE *to = open_memstream(&text, &len);
    ck_assert_int_eq(profile_top(trace, 10, false, to, &counts, NULL), 0);
    fclose(to);
    ck_assert_uint_eq(counts.samples, 10);
    ck_assert_str_eq(
        text, "   self  function\n  40.0%  foo::bar()\n  30.0%  core::fmt::pad\n  20.0%  _Zno\n  10.0%  ?[2Jhot\n");
    free(text);
    unlink(trace);
    pb_writer_free(&w);
}
END_TEST

Suite *perf_stacks_suite(void);
Suite *perf_stacks_suite(void)
{
    Suite *s = suite_create("perf_stacks");
    TCase *t = tcase_create("perf_stacks");
    tcase_set_timeout(t, 120);
#if defined(__x86_64__)
    tcase_add_test(t, a_copied_stack_is_unwound_by_tables);
    tcase_add_test(t, counts_have_losses_between_them);
    tcase_add_test(t, the_table_has_readable_names);
    tcase_add_test(t, losses_are_told_once);
    tcase_add_test(t, maps_of_all_processes_are_bounded);
    tcase_add_test(t, numbers_of_frames_are_bounded);
    tcase_add_test(t, a_sample_waits_for_its_files);
    tcase_add_test(t, a_process_that_has_ended_keeps_its_stack);
#endif
    tcase_add_test(t, a_file_that_changes_is_read_again);
    tcase_add_test(t, another_file_at_the_path_is_not_read);
    tcase_add_test(t, cut_files_do_without_tables);
    tcase_add_test(t, followers_are_counted_with_each_sample);
    suite_add_tcase(s, t);
    return s;
}
