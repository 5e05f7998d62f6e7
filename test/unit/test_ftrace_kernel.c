/* Tests linux.ftrace against this machine's kernel, in instances of its own. */
#include "ftrace_lines.h"

#include "base/file.h"
#include "capture/probes/ftrace/ftrace_instance.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *root_of_tracefs(void)
{
    static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    for (int i = 0; i < 2; i++) {
        char path[100];
        snprintf(path, sizeof path, "%s/instances", roots[i]);
        if (access(path, W_OK) == 0)
            return roots[i];
    }
    return NULL;
}

static char instance_name[64], instance_path[200];

static bool usable(void)
{
    const char *root = root_of_tracefs();
    if (!root)
        return false;
    snprintf(instance_name, sizeof instance_name, "mrd-unit-%d", (int)getpid());
    snprintf(instance_path, sizeof instance_path, "%s/instances/%s", root, instance_name);
    return true;
}

static void write_text(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", instance_path, name);
    int fd = open(path, O_WRONLY | (strcmp(name, "set_event") == 0 ? O_APPEND : O_TRUNC));
    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_msg(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
    close(fd);
}

static char *read_text(const char *name)
{
    char path[300], *text;
    size_t len;
    struct error err = {0};
    snprintf(path, sizeof path, "%s/%s", instance_path, name);
    ck_assert_msg(file_read_all(path, 1u << 30, &text, &len, &err) == 0, "%s", err.text);
    return text;
}

/* A config in protobuf bytes; free the writer. */
static void config(struct pb_writer *w, const char *const *events, bool compact, bool legacy)
{
    memset(w, 0, sizeof *w);
    for (; *events; events++)
        pb_put_str(w, 1, *events);
    pb_put_varint(w, 10, 65536);
    pb_put_varint(w, 11, 60000); /* nothing is read before we say so */
    pb_put_str(w, 25, instance_name);
    size_t m = pb_begin(w, 12);
    pb_put_varint(w, 1, compact);
    pb_end(w, m);
    if (legacy)
        pb_put_varint(w, 32, 0);
}

/* Only this process and its children: the machine may be busy with other things. */
static void only_ours(struct pb_writer *w)
{
    pb_put_varint(w, 35, (uint64_t)getpid());
    size_t option = pb_begin(w, 36);
    pb_put_str(w, 1, "event-fork");
    pb_put_varint(w, 2, 1);
    pb_end(w, option);
}

/* A little of everything: processes, files, pipes, signals, timers, sockets. */
static void work(void)
{
    static const char script[] =
        "d=$(mktemp -d /var/tmp/mrdXXXXXX); cd $d; for i in 1 2 3; do echo $i > f$i; cat f$i | "
        "wc > /dev/null; mv f$i g$i; done; dd if=/dev/zero of=big bs=64k count=8 conv=fsync "
        "2>/dev/null; sleep 0.02 & kill $!; wait; sync -f .; rm -rf $d";
    int rc = system(script);
    ck_assert_int_ge(rc, 0);
}

static const char *const many_events[] = {"sched/*",      "irq/*",          "timer/*",   "workqueue/*", "ext4/*",
                                          "block/*",      "kmem/*",         "filemap/*", "writeback/*", "signal/*",
                                          "task/*",       "raw_syscalls/*", "jbd2/*",    "power/*",     "rcu/*",
                                          "exceptions/*", "ftrace/print",   "cgroup/*",  "net/*",       "sock/*",
                                          "oom/*",        "mmap/*",         "vmscan/*",  "csd/*",       NULL};

static const struct {
    bool compact, legacy;
    enum ring_mode mode;
} ways[] = {{false, false, RING_READ}, {true, false, RING_READ}, {false, true, RING_READ}, {true, false, RING_MAPPED}};

/* A recording of a little of everything in one of the `ways`, beside the kernel's own text of it. */
struct agreement {
    struct test_host *host;
    struct test_session session;
    decoded_list events;
    char *text; /* the kernel's own view of the same buffers */
};

static void begin_agreement(struct agreement *a, int way)
{
    struct error err = {0};
    struct pb_writer w;
    struct ftrace_session_counts counts;
    memset(a, 0, sizeof *a);
    a->host = test_host_new(ways[way].mode);
    struct test_session *s = &a->session;
    config(&w, many_events, ways[way].compact, ways[way].legacy);
    only_ours(&w);
    ck_assert_msg(test_session_start(s, a->host, &ftrace_data_source, pb_written(&w), &err) == 0, "%s", err.text);
    pb_writer_free(&w);
    write_text("options/fields", "1");
    write_text("options/hash-ptr", "0");
    write_text("trace_marker", "hello from the test");
    work();
    write_text("tracing_on", "0");
    a->text = read_text("trace");
    s->type->flush(s->state);
    ftrace_session_counts(s->state, &counts);
    decode_packets(&s->sink, &a->events);
    ck_assert_uint_gt(counts.records, 1000);
    ck_assert_uint_eq(counts.records, a->events.n);
    ck_assert_uint_eq(counts.lost, 0);
    test_session_stop(s);
}

static void end_of_agreement(struct agreement *a)
{
    vec_free(&a->events);
    mem_free(a->text);
    memory_sink_free(&a->session.sink);
    test_host_free(a->host);
    ck_assert_int_ne(access(instance_path, F_OK), 0);
}

START_TEST(agrees_with_the_text_trace)
{
    struct agreement a;
    struct comparison c;
    if (!usable())
        SKIP("no tracefs");
    begin_agreement(&a, _i);
    bool agree = compare_with_text(&a.events, a.text, &c);
    fprintf(stderr, "compared %zu events of %u types, %zu fields\n", c.lines, c.types, c.fields);
    ck_assert_msg(agree, "%s", c.difference);
    ck_assert_uint_ge(c.types, 50);
    ck_assert_uint_gt(c.fields, c.lines);
    end_of_agreement(&a);
}
END_TEST

/* One small lie about an event: the comparison above must see it. */
static void lie_about_name(decoded_list *l, struct decoded_event *e)
{
    (void)l;
    e->name[0] = e->name[0] == 'x' ? 'y' : 'x';
}

static void lie_about_time(decoded_list *l, struct decoded_event *e)
{
    (void)l;
    e->ts += 1500;
}

static void lie_about_thread(decoded_list *l, struct decoded_event *e)
{
    (void)l;
    e->pid++;
}

static void lie_about_cpu(decoded_list *l, struct decoded_event *e)
{
    (void)l;
    e->cpu ^= 1;
}

static void lie_about_number(decoded_list *l, struct decoded_event *e)
{
    (void)l;
    e->fields[1].value += 3;
}

static void lie_about_text(decoded_list *l, struct decoded_event *e)
{
    (void)l;
    e->fields[0].text = slice_of("no such text", 12);
}

static void leave_out(decoded_list *l, struct decoded_event *e)
{
    *e = l->p[--l->n];
}

static void say_twice(decoded_list *l, struct decoded_event *e)
{
    struct decoded_event copy = *e;
    ck_assert(vec_push(l, copy));
}

static const struct {
    const char *what;
    void (*lie)(decoded_list *l, struct decoded_event *e);
    const char *event; /* NULL: any */
} lies[] = {
    {"name", lie_about_name, NULL},
    {"time", lie_about_time, NULL},
    {"thread", lie_about_thread, NULL},
    {"cpu", lie_about_cpu, NULL},
    {"number", lie_about_number, "sched_waking"}, /* comm, pid, ... */
    {"text", lie_about_text, "sched_waking"},
    {"leaving out", leave_out, NULL},
    {"saying twice", say_twice, NULL},
};

static size_t find_event(const decoded_list *l, const char *name)
{
    for (size_t i = l->n / 2; i < l->n && name; i++)
        if (strcmp(l->p[i].name, name) == 0)
            return i;
    for (size_t i = 0; i < l->n / 2 && name; i++)
        if (strcmp(l->p[i].name, name) == 0)
            return i;
    ck_assert_msg(!name, "no event %s", name);
    return l->n / 2;
}

START_TEST(a_lie_does_not_agree_with_the_text_trace)
{
    struct agreement a;
    struct comparison c;
    if (!usable())
        SKIP("no tracefs");
    begin_agreement(&a, 0);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        decoded_list copy = {0};
        char *text = mem_strdup(a.text);
        ck_assert(vec_reserve(&copy, a.events.n + 1));
        memcpy(copy.p, a.events.p, a.events.n * sizeof *copy.p);
        copy.n = a.events.n;
        size_t at = find_event(&copy, lies[i].event);
        lies[i].lie(&copy, &copy.p[at]);
        ck_assert_msg(!compare_with_text(&copy, text, &c), "a lie about %s was not seen", lies[i].what);
        ck_assert_uint_gt(strlen(c.difference), 10);
        vec_free(&copy);
        mem_free(text);
    }
    end_of_agreement(&a);
}
END_TEST

/* The END packet's numbers of one cpu. */
static struct slice end_stats(const struct memory_sink *m, uint32_t cpu)
{
    for (size_t i = memory_sink_count(m); i-- > 0;) {
        struct slice stats = memory_sink_field(m, i, 34);
        if (message_u64(stats, 1) != 2)
            continue;
        struct pb_cursor c = pb_cursor(stats);
        struct pb_field f;
        while (pb_next(&c, &f))
            if (f.id == 2 && message_u64(pb_bytes(&f), 1) == cpu)
                return pb_bytes(&f);
    }
    ck_abort_msg("no FtraceStats of cpu %u", cpu);
    return slice_of(NULL, 0);
}

/* Events seen + events lost = events the kernel wrote, cpu by cpu, with and without loss. */
START_TEST(nothing_is_lost_unseen)
{
    static const char *const events[] = {
        "sched/sched_switch", "sched/sched_waking", "task/*", "irq/*", "raw_syscalls/*", NULL};
    uint64_t seen[64] = {0}, lost_told = 0, overrun = 0;
    struct error err = {0};
    struct test_session s;
    struct pb_writer w;
    struct ftrace_session_counts counts;
    decoded_list decoded = {0};
    bool small = _i == 1;
    if (!usable())
        SKIP("no tracefs");
    struct test_host *t = test_host_new(RING_READ);
    config(&w, events, true, false);
    only_ours(&w);
    pb_put_varint(&w, 10, small ? 64 : 32768); /* the last one counts */
    pb_put_varint(&w, 11, 50);
    ck_assert_msg(test_session_start(&s, t, &ftrace_data_source, pb_written(&w), &err) == 0, "%s", err.text);
    if (small) { /* more than the buffer holds, while nobody reads */
        ck_assert_int_ge(system("for i in $(seq 400); do cat /dev/null; done"), 0);
    } else {
        pid_t pid = fork();
        if (pid == 0)
            _exit(system("for i in $(seq 200); do cat /dev/null; done; dd if=/dev/zero of=/dev/null bs=1 count=50000 "
                         "2>/dev/null") != 0);
        for (int status = 0, i = 0; i < 100 && waitpid(pid, &status, WNOHANG) == 0; i++)
            test_host_run(t, 100);
    }
    s.type->stop(s.state);
    ftrace_session_counts(s.state, &counts);
    decode_packets(&s.sink, &decoded);
    for (size_t i = 0; i < decoded.n; i++)
        seen[decoded.p[i].cpu]++;
    for (uint32_t cpu = 0; cpu < 64; cpu++) {
        if (!seen[cpu])
            continue;
        struct slice stats = end_stats(&s.sink, cpu);
        ck_assert_uint_eq(message_u64(stats, 2), 0); /* nothing unread */
        ck_assert_uint_eq(message_u64(stats, 9), seen[cpu]);
        overrun += message_u64(stats, 3) + message_u64(stats, 4) + message_u64(stats, 8);
    }
    for (size_t i = 0; i < memory_sink_count(&s.sink); i++)
        lost_told += message_u64(memory_sink_field(&s.sink, i, 1), 3);
    ck_assert_uint_le(counts.lost, overrun); /* a full page has no room for its number: then only the flag is there */
    ck_assert_uint_eq(counts.records, decoded.n);
    ck_assert_int_eq(overrun > 0, small);
    ck_assert_int_eq(lost_told > 0, small);
    s.type->free(s.state);
    vec_free(&decoded);
    pb_writer_free(&w);
    memory_sink_free(&s.sink);
    test_host_free(t);
}
END_TEST

START_TEST(threads_are_reported_once)
{
    decoded_list switches = {0};
    static const char *const events[] = {"sched/sched_switch", NULL};
    struct error err = {0};
    struct test_session s;
    struct pb_writer w;
    if (!usable())
        SKIP("no tracefs");
    struct test_host *t = test_host_new(RING_READ);
    config(&w, events, true, false);
    ck_assert_msg(test_session_start(&s, t, &ftrace_data_source, pb_written(&w), &err) == 0, "%s", err.text);
    work();
    s.type->flush(s.state);
    decode_packets(&s.sink, &switches);
    ck_assert_uint_gt(switches.n, 10);
    for (size_t i = 0; i < t->tids.n; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_int_ne(t->tids.p[i], t->tids.p[k]);
    for (size_t i = 0; i < switches.n; i++) { /* whoever was switched to was reported */
        bool found = switches.p[i].fields[1].value == 0;
        for (size_t k = 0; k < t->tids.n; k++)
            found |= (uint64_t)t->tids.p[k] == switches.p[i].fields[1].value;
        ck_assert_str_eq(switches.p[i].fields[1].name, "next_pid");
        ck_assert(found);
    }
    vec_free(&switches);
    test_session_stop(&s);
    pb_writer_free(&w);
    memory_sink_free(&s.sink);
    test_host_free(t);
}
END_TEST

START_TEST(sessions_share_an_instance)
{
    static const char *const one[] = {"sched/sched_switch", NULL}, *const two[] = {"raw_syscalls/*", "no/such_event",
                                                                                   NULL};
    struct error err = {0};
    struct test_session a, b;
    struct pb_writer w, v;
    decoded_list events = {0};
    if (!usable())
        SKIP("no tracefs");
    struct test_host *t = test_host_new(RING_READ);
    config(&w, one, false, false);
    config(&v, two, false, false);
    ck_assert_msg(test_session_start(&a, t, &ftrace_data_source, pb_written(&w), &err) == 0, "%s", err.text);
    work();
    ck_assert_msg(test_session_start(&b, t, &ftrace_data_source, pb_written(&v), &err) == 0, "%s", err.text);
    work();
    test_session_stop(&a);
    char *enabled = read_text("set_event");
    ck_assert_ptr_null(strstr(enabled, "sched_switch"));
    ck_assert_ptr_nonnull(strstr(enabled, "sys_enter"));
    mem_free(enabled);
    uint64_t stopped_at = probes_boot_ns();
    work();
    test_session_stop(&b);
    ck_assert_int_ne(access(instance_path, F_OK), 0);
    decode_packets(&a.sink, &events);
    ck_assert_uint_gt(events.n, 10);
    for (size_t i = 0; i < events.n; i++)
        ck_assert_str_eq(events.p[i].name, "sched_switch");
    vec_clear(&events);
    decode_packets(&b.sink, &events);
    ck_assert_uint_gt(events.n, 10);
    uint64_t last = 0;
    for (size_t i = 0; i < events.n; i++) {
        ck_assert_msg(strncmp(events.p[i].name, "sys_e", 5) == 0, "%s", events.p[i].name);
        ck_assert_uint_ne(events.p[i].pid, (uint32_t)getpid()); /* the recorder does not trace itself */
        last = events.p[i].ts > last ? events.p[i].ts : last;
    }
    ck_assert_uint_gt(last, stopped_at);
    bool unknown = false;
    for (size_t i = 0; i < memory_sink_count(&b.sink); i++)
        unknown |= slice_eq_str(message_bytes(memory_sink_field(&b.sink, i, 34), 6), "no/such_event");
    ck_assert(unknown);
    vec_free(&events);
    pb_writer_free(&w);
    pb_writer_free(&v);
    memory_sink_free(&a.sink);
    memory_sink_free(&b.sink);
    test_host_free(t);
}
END_TEST

/* ---- leaving tracefs as it was ---- */

static const char *const watched[] = {"tracing_on",
                                      "trace_clock",
                                      "set_event",
                                      "buffer_size_kb",
                                      "buffer_percent",
                                      "tracing_cpumask",
                                      "set_event_pid",
                                      "set_event_notrace_pid",
                                      "current_tracer",
                                      "options/overwrite",
                                      "events/raw_syscalls/sys_enter/filter",
                                      "events/sched/sched_waking/filter"};
enum { WATCHED = sizeof watched / sizeof *watched };

static void snapshot(char *state[WATCHED])
{
    for (int i = 0; i < WATCHED; i++)
        state[i] = read_text(watched[i]);
}

static void compare_snapshot(char *state[WATCHED])
{
    for (int i = 0; i < WATCHED; i++) {
        char *now = read_text(watched[i]);
        ck_assert_msg(strcmp(now, state[i]) == 0, "%s was \"%s\" and is \"%s\"", watched[i], state[i], now);
        mem_free(now);
        mem_free(state[i]);
    }
}

/* An instance of somebody else, with settings that a recording has to change. */
static void make_foreign_instance(void)
{
    ck_assert_int_eq(mkdir(instance_path, 0755), 0);
    write_text("trace_clock", "global");
    write_text("buffer_size_kb", "72");
    write_text("buffer_percent", "33");
    write_text("set_event", "sched:sched_waking");
    write_text("set_event", "irq:irq_handler_entry");
    write_text("events/raw_syscalls/sys_enter/filter", "id == 3");
    write_text("events/sched/sched_waking/filter", "pid == 1");
}

static void foreign_config(struct pb_writer *w)
{
    static const char *const events[] = {"sched/*", "raw_syscalls/*", NULL};
    config(w, events, true, false);
    size_t option = pb_begin(w, 36);
    pb_put_str(w, 1, "overwrite");
    pb_put_varint(w, 2, 2);
    pb_end(w, option);
    pb_put_str(w, 37, "1");
}

START_TEST(tracefs_is_left_as_it_was)
{
    char *state[WATCHED];
    struct error err = {0};
    struct test_session s;
    struct pb_writer w;
    if (!usable())
        SKIP("no tracefs");
    make_foreign_instance();
    snapshot(state);
    struct test_host *t = test_host_new(RING_READ);
    foreign_config(&w);
    ck_assert_msg(test_session_start(&s, t, &ftrace_data_source, pb_written(&w), &err) == 0, "%s", err.text);
    char *clock = read_text("trace_clock"), *option = read_text("options/overwrite");
    ck_assert_ptr_nonnull(strstr(clock, "[boot]"));
    ck_assert_str_eq(option, "0\n");
    mem_free(clock);
    mem_free(option);
    work();
    test_session_stop(&s);
    compare_snapshot(state);
    pb_writer_free(&w);
    memory_sink_free(&s.sink);
    test_host_free(t);
    ck_assert_int_eq(rmdir(instance_path), 0);
}
END_TEST

/* A recorder that is killed in the middle: the next one takes everything back. */
START_TEST(a_killed_recorder_is_cleaned_up_after)
{
    char *state[WATCHED], directory[] = "/tmp/mrd-undo-XXXXXX";
    struct error err = {0};
    bool foreign = _i == 0;
    if (!usable())
        SKIP("no tracefs");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    if (foreign) {
        make_foreign_instance();
        snapshot(state);
    }
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        uint32_t dynamic = FTRACE_EVENT_FIRST_DYNAMIC;
        struct ftrace_instance in;
        struct ftrace_instance_options o = {.run_directory = directory, .next_dynamic_id = &dynamic};
        struct ftrace_config c;
        struct event_selection sel;
        struct pb_writer w;
        bool recovered;
        foreign_config(&w);
        if (ftrace_config_parse(&c, pb_written(&w), &err) ||
            ftrace_instance_open(&in, instance_name, &o, &recovered, &err) ||
            ftrace_instance_add(&in, &c, &sel, &err) || ftrace_instance_start(&in, &err)) {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        ck_assert_int_eq(write(ready[1], "x", 1), 1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    ck_assert_int_eq(ftrace_recover_all(NULL, directory, &err), 0); /* it lives: hands off */
    ck_assert_int_eq(access(instance_path, F_OK), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(ftrace_recover_all(NULL, directory, &err), 1);
    ck_assert_msg(err.code == 0, "%s", err.text);
    if (foreign) {
        compare_snapshot(state);
        ck_assert_int_eq(rmdir(instance_path), 0);
    }
    ck_assert_int_ne(access(instance_path, F_OK), 0);
    ck_assert_int_eq(ftrace_recover_all(NULL, directory, &err), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(two_recorders_cannot_share_an_instance)
{
    char directory[] = "/tmp/mrd-undo-XXXXXX";
    struct undo_log a, b;
    struct error err = {0};
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(undo_log_open(&a, directory, "x", NULL, &err), 0);
    ck_assert_int_eq(undo_log_open(&b, directory, "x", NULL, &err), -MRD_EEXISTS);
    ck_assert_int_eq(undo_log_open(&b, directory, "y", NULL, &err), 0);
    undo_log_close(&a);
    undo_log_close(&b);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* The compiled formats of every event of this kernel: none is refused, and none overlaps. */
START_TEST(every_format_of_this_kernel_compiles)
{
    struct tracefs fs;
    struct event_set set;
    struct event_selection sel;
    struct ftrace_config c;
    struct pb_writer w = {0};
    struct error err = {0};
    uint32_t dynamic = FTRACE_EVENT_FIRST_DYNAMIC;
    if (!usable())
        SKIP("no tracefs");
    ck_assert_int_eq(tracefs_open(&fs, NULL, NULL, &err), 0);
    FILE *list = popen("cut -d: -f1 /sys/kernel/tracing/available_events /sys/kernel/debug/tracing/available_events "
                       "2>/dev/null | sort -u",
                       "r");
    char group[200], pattern[210];
    while (list && fscanf(list, "%199s", group) == 1) {
        snprintf(pattern, sizeof pattern, "%s/*", group);
        pb_put_str(&w, 1, pattern);
    }
    pclose(list);
    ck_assert_int_eq(ftrace_config_parse(&c, pb_written(&w), &err), 0);
    event_set_init(&set, &fs, &dynamic);
    memset(&sel, 0, sizeof sel);
    ck_assert_int_eq(event_selection_resolve(&sel, &set, &c, &err), 0);
    ck_assert_uint_gt(sel.events.n, 500);
    ck_assert_msg(sel.failed.n == 0, "%s", sel.failed.n ? sel.failed.p[0] : "");
    unsigned typed = 0;
    for (size_t i = 0; i < sel.events.n; i++)
        typed += sel.events.p[i]->typed;
    ck_assert_uint_gt(typed, 100);
    event_selection_free(&sel);
    event_set_free(&set);
    ftrace_config_free(&c);
    pb_writer_free(&w);
}
END_TEST

Suite *ftrace_kernel_suite(void);
Suite *ftrace_kernel_suite(void)
{
    Suite *s = suite_create("ftrace_kernel");
    TCase *c = tcase_create("kernel");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, agrees_with_the_text_trace, 0, (int)(sizeof ways / sizeof *ways));
    tcase_add_test(c, a_lie_does_not_agree_with_the_text_trace);
    tcase_add_loop_test(c, nothing_is_lost_unseen, 0, 2);
    tcase_add_test(c, threads_are_reported_once);
    tcase_add_test(c, sessions_share_an_instance);
    tcase_add_test(c, tracefs_is_left_as_it_was);
    tcase_add_loop_test(c, a_killed_recorder_is_cleaned_up_after, 0, 2);
    tcase_add_test(c, two_recorders_cannot_share_an_instance);
    tcase_add_test(c, every_format_of_this_kernel_compiles);
    suite_add_tcase(s, c);
    return s;
}
