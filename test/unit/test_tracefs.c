/* Tests finding tracefs, choosing events in it, and the journal of what was changed there, on made-up files. */
#include "made_up_files.h"
#include "probes_fixture.h"

#include "capture/probes/ftrace/event_set.h"
#include "capture/probes/ftrace/undo_log.h"

#include <sched.h>
#include <sys/mount.h>

/* ---- a made-up tracefs ---- */

#define COMMON                                                                                                         \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                     \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static void make_event(const char *name, const char *format)
{
    char path[300], text[4096];
    snprintf(path, sizeof path, "/tracefs/events/%s/format", name);
    snprintf(text, sizeof text, "name: %s\n%s", strchr(name, '/') + 1, format);
    make_file(path, text);
    snprintf(path, sizeof path, "/tracefs/events/%s/enable", name);
    make_file(path, "0\n");
}

/* A lying format file costs its own event, told in `failed`; all others are there and enabled. */
START_TEST(a_lying_event_is_disabled_alone)
{
    struct tracefs fs;
    struct event_set set;
    struct event_selection sel;
    struct ftrace_config c;
    struct pb_writer w = {0};
    struct error err = {0};
    uint32_t dynamic = FTRACE_EVENT_FIRST_DYNAMIC;
    char root[100], text[64];
    make_root();
    make_file("/tracefs/tracing_on", "0\n");
    make_event("mine/good", "ID: 10\nformat:\n" COMMON "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n");
    make_event("mine/fine", "ID: 11\nformat:\n" COMMON);
    make_event("mine/overlaps", "ID: 12\nformat:\n" COMMON "\tfield:int a;\toffset:8;\tsize:8;\tsigned:1;\n"
                                "\tfield:int b;\toffset:12;\tsize:4;\tsigned:1;\n");
    make_event("mine/huge", "ID: 13\nformat:\n" COMMON "\tfield:char a[99999];\toffset:8;\tsize:99999;\tsigned:1;\n");
    make_event("mine/twin", "ID: 10\nformat:\n" COMMON);
    make_event("mine/shifted", "ID: 14\nformat:\n\tfield:unsigned short common_type;\toffset:4;\tsize:2;\tsigned:0;\n");
    make_event("mine/unknown_types",
               "ID: 15\nformat:\n" COMMON "\tfield:struct odd thing;\toffset:8;\tsize:24;\tsigned:0;\n"
               "\tfield:int a;\toffset:32;\tsize:4;\tsigned:1;\n");
    make_file("/tracefs/events/mine/enable", "0\n");
    snprintf(root, sizeof root, "%s/tracefs", made_up);
    ck_assert_msg(tracefs_open(&fs, root, NULL, &err) == 0, "%s", err.text);
    pb_put_str(&w, 1, "mine/good"); /* first, so that the twin is the one that is refused */
    pb_put_str(&w, 1, "mine/*");
    ck_assert_int_eq(ftrace_config_parse(&c, pb_written(&w), &err), 0);
    event_set_init(&set, &fs, &dynamic);
    memset(&sel, 0, sizeof sel);
    ck_assert_int_eq(event_selection_resolve(&sel, &set, &c, &err), 0);
    ck_assert_uint_eq(sel.events.n, 3); /* good, fine, unknown_types without its odd field */
    ck_assert_uint_eq(sel.failed.n, 4);
    for (size_t i = 0; i < sel.events.n; i++)
        ck_assert_int_eq(event_set_enable(&set, sel.events.p[i], &err), 0);
    read_made_up("/tracefs/events/mine/good/enable", text, sizeof text);
    ck_assert_int_eq(text[0], '1');
    read_made_up("/tracefs/events/mine/overlaps/enable", text, sizeof text);
    ck_assert_int_eq(text[0], '0');
    event_selection_free(&sel);
    event_set_free(&set);
    ftrace_config_free(&c);
    pb_writer_free(&w);
    remove_root();
}
END_TEST

START_TEST(tracefs_that_is_not_there_says_what_to_do)
{
    struct tracefs fs;
    struct error err = {0};
    ck_assert_int_eq(tracefs_open(&fs, "/nowhere", NULL, &err), -MRD_ENOTFOUND);
    make_root();
    make_file("/tracefs/tracing_on", "0\n");
    char root[100];
    snprintf(root, sizeof root, "%s/tracefs", made_up);
    ck_assert_int_eq(tracefs_open(&fs, root, "../up", &err), -MRD_EINVALID);
    ck_assert_int_eq(tracefs_open(&fs, root, ".hidden", &err), -MRD_EINVALID);
    ck_assert_int_eq(tracefs_open(&fs, root, "name", &err), 0);
    remove_root();
}
END_TEST

/* In a mount namespace of our own; Check runs each test in a process of its own. */
START_TEST(what_to_do_about_tracefs_is_told)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing", "/sys/kernel/debug"};
    struct tracefs fs;
    struct error err = {0};
    bool mounted = _i == 0;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        SKIP("needs root");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        while (umount2(places[i], MNT_DETACH) == 0)
            ;
    if (mounted && mount("none", places[0], "tracefs", 0, NULL))
        SKIP("no tracefs");
    if (mounted)
        ck_assert_int_eq(setuid(65534), 0);
    ck_assert_int_eq(tracefs_open(&fs, NULL, NULL, &err), mounted ? -MRD_EDENIED : -MRD_ENOTFOUND);
    ck_assert_msg(strstr(err.text, mounted ? "run as root" : "mount -t tracefs none /sys/kernel/tracing") != NULL, "%s",
                  err.text);
}
END_TEST

/* ---- the undo log ---- */

START_TEST(undo_takes_back_last_first)
{
    struct tracefs fs = {0};
    struct undo_log log;
    struct error err = {0};
    char text[200];
    make_root();
    strcpy(fs.base, made_up);
    make_file("/clock", "[local] global boot\n");
    make_file("/size", "7 (expanded: 1408)\n");
    make_file("/list", "a:b\nc:d\n");
    make_file("/filter", "none\n");
    make_file("/odd", "tab\tand\\slash\n");
    ck_assert_int_eq(undo_log_open(&log, made_up, "x", made_up, &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "clock", UNDO_WRITE, "boot", &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "clock", UNDO_WRITE, "global", &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "size", UNDO_WRITE, "64", &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "list", UNDO_TRUNCATE, "", &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "filter", UNDO_WRITE, "pid == 1", &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "odd", UNDO_TRUNCATE, "x", &err), 0);
    ck_assert_int_eq(undo_log_change(&log, &fs, "missing", UNDO_WRITE, "1", &err), -MRD_ENOTFOUND);
    ck_assert_uint_eq(log.n, 5);
    read_made_up("/list", text, sizeof text);
    ck_assert_str_eq(text, "");
    /* as a crash would leave it: the lock is gone, the file is not */
    char file[PATH_MAX];
    strcpy(file, log.file);
    close(log.fd);
    for (size_t i = 0; i < log.n; i++) {
        mem_free(log.steps[i].path);
        mem_free(log.steps[i].text);
    }
    mem_free(log.steps);
    struct undo_log next;
    ck_assert_int_eq(undo_log_open_file(&next, file, made_up, &err), 0);
    ck_assert(next.stale);
    ck_assert_uint_eq(next.n, 5);
    ck_assert_int_eq(undo_log_restore(&next, &err), 0);
    read_made_up("/list", text, sizeof text);
    ck_assert_str_eq(text, "a:bc:d"); /* two writes; tracefs ends a line itself */
    read_made_up("/odd", text, sizeof text);
    ck_assert_str_eq(text, "tab\tand\\slash");
    read_made_up("/clock", text, sizeof text);
    ck_assert_int_eq(strncmp(text, "local", 5), 0);
    read_made_up("/size", text, sizeof text);
    ck_assert_int_eq(strncmp(text, "1408", 4), 0);
    read_made_up("/filter", text, sizeof text);
    ck_assert_int_eq(text[0], '0');
    undo_log_close(&next);
    ck_assert_int_ne(access(file, F_OK), 0);
    remove_root();
}
END_TEST

START_TEST(undo_ignores_a_line_that_was_cut_off)
{
    struct undo_log log;
    struct error err = {0};
    char file[200];
    make_root();
    make_file("/a", "new");
    snprintf(file, sizeof file, "%s/ftrace-x.undo", made_up);
    char text[300];
    snprintf(text, sizeof text, "W\t%s/a\told\nW\t%s/a\tnot wri", made_up, made_up);
    make_file("/ftrace-x.undo", text);
    ck_assert_int_eq(undo_log_open_file(&log, file, made_up, &err), 0);
    ck_assert_uint_eq(log.n, 1);
    ck_assert_int_eq(undo_log_restore(&log, &err), 0);
    read_made_up("/a", text, sizeof text);
    ck_assert_str_eq(text, "old");
    undo_log_close(&log);
    remove_root();
}
END_TEST

/* What may be written, and what a journal that somebody else has written says. */
START_TEST(undo_writes_into_tracefs_alone)
{
    struct undo_log log;
    struct error err = {0};
    char file[200], text[600], root[100];
    make_root();
    make_file("/victim", "mine");
    make_file("/tracefs/a", "new");
    snprintf(root, sizeof root, "%s/tracefs", made_up);
    snprintf(file, sizeof file, "%s/ftrace-x.undo", made_up);
    snprintf(text, sizeof text,
             "W\t%s/a\told\nT\t%s/victim\towned\nW\t%s/../victim\towned\nA\t/proc/self/comm\towned\nR\t%s/empty\t\n",
             root, made_up, root, made_up);
    make_file("/ftrace-x.undo", text);
    snprintf(text, sizeof text, "%s/empty", made_up);
    ck_assert_int_eq(mkdir(text, 0755), 0);
    ck_assert_int_eq(undo_log_open_file(&log, file, root, &err), 0);
    ck_assert_int_eq(undo_log_restore(&log, &err), -MRD_EDENIED);
    ck_assert_ptr_nonnull(strstr(err.text, "not in a tracefs"));
    undo_log_close(&log);
    ck_assert_int_eq(rmdir(text), 0);
    read_made_up("/victim", text, sizeof text);
    ck_assert_str_eq(text, "mine");
    read_made_up("/tracefs/a", text, sizeof text);
    ck_assert_str_eq(text, "old");
    /* without a root of its own not even there */
    snprintf(text, sizeof text, "W\t%s/a\towned\n", root);
    make_file("/ftrace-x.undo", text);
    ck_assert_int_eq(undo_log_open_file(&log, file, NULL, &err), 0);
    ck_assert_int_eq(undo_log_restore(&log, &err), -MRD_EDENIED);
    undo_log_close(&log);
    read_made_up("/tracefs/a", text, sizeof text);
    ck_assert_str_eq(text, "old");
    remove_root();
}
END_TEST

START_TEST(undo_refuses_what_others_can_have_written)
{
    struct undo_log log;
    struct error err = {0};
    char file[200], other[200], dir[PATH_MAX], text[64];
    make_root();
    snprintf(file, sizeof file, "%s/ftrace-x.undo", made_up);
    snprintf(other, sizeof other, "%s/other", made_up);
    make_file("/ftrace-x.undo", "W\t/a\tb\n");
    ck_assert_int_eq(chmod(file, 0666), 0);
    ck_assert_int_eq(undo_log_open_file(&log, file, NULL, &err), -MRD_EDENIED);
    ck_assert_int_eq(chmod(file, 0600), 0);
    ck_assert_int_eq(link(file, other), 0);
    ck_assert_int_eq(undo_log_open_file(&log, file, NULL, &err), -MRD_EDENIED);
    read_made_up("/ftrace-x.undo", text, sizeof text);
    ck_assert_str_eq(text, "W\t/a\tb\n"); /* as it was */
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(symlink(other, file), 0);
    ck_assert_int_ne(undo_log_open_file(&log, file, NULL, &err), 0);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(mkfifo(file, 0600), 0);
    ck_assert_int_eq(undo_log_open_file(&log, file, NULL, &err), -MRD_EDENIED);
    if (geteuid() == 0) {
        ck_assert_int_eq(unlink(file), 0);
        make_file("/ftrace-x.undo", "W\t/a\tb\n");
        ck_assert_int_eq(chown(file, 65534, 65534), 0);
        ck_assert_int_eq(undo_log_open_file(&log, file, NULL, &err), -MRD_EDENIED);
    }
    /* the directory */
    setenv("MERIDIAN_RUN_DIR", made_up, 1);
    ck_assert_int_eq(chmod(made_up, 0700), 0);
    ck_assert_int_eq(undo_log_directory(dir, &err), 0);
    ck_assert_int_eq(chmod(made_up, 0777), 0);
    ck_assert_int_eq(undo_log_directory(dir, &err), -MRD_EDENIED);
    ck_assert_ptr_nonnull(strstr(err.text, "MERIDIAN_RUN_DIR"));
    ck_assert_int_eq(chmod(made_up, 0700), 0);
    snprintf(text, sizeof text, "%s/link", made_up);
    ck_assert_int_eq(symlink(made_up, text), 0);
    setenv("MERIDIAN_RUN_DIR", text, 1);
    ck_assert_int_eq(undo_log_directory(dir, &err), -MRD_EDENIED);
    ck_assert_int_eq(unlink(text), 0);
    if (geteuid() == 0) {
        setenv("MERIDIAN_RUN_DIR", made_up, 1);
        ck_assert_int_eq(chown(made_up, 65534, 65534), 0);
        ck_assert_int_eq(undo_log_directory(dir, &err), -MRD_EDENIED);
    }
    remove_root();
}
END_TEST

Suite *tracefs_suite(void);
Suite *tracefs_suite(void)
{
    Suite *s = suite_create("tracefs");
    TCase *c = tcase_create("tracefs");
    tcase_add_test(c, a_lying_event_is_disabled_alone);
    tcase_add_test(c, tracefs_that_is_not_there_says_what_to_do);
    tcase_add_loop_test(c, what_to_do_about_tracefs_is_told, 0, 2);
    tcase_add_test(c, undo_takes_back_last_first);
    tcase_add_test(c, undo_writes_into_tracefs_alone);
    tcase_add_test(c, undo_refuses_what_others_can_have_written);
    tcase_add_test(c, undo_ignores_a_line_that_was_cut_off);
    suite_add_tcase(s, c);
    return s;
}
