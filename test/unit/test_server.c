/* Tests starts of the server that fail, without descriptors or threads: nothing is left open. */
#include "server/server.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_FILES = 128, LOOP_FILES = 4 /* libuv keeps some when it does not get all */, MOST_FREE = 40 };

static int held[MOST_FILES];

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void stop_soon(void *ctx)
{
    *(bool *)ctx = true;
    raise(SIGTERM);
}

/* Serves until the first moment that clients could come; true when that moment came. */
static bool serves(const char *socket, struct error *err)
{
    bool listened = false;
    struct server_config config = {
        .transport = SERVER_UNIX, .socket_path = socket, .on_listening = stop_soon, .on_listening_ctx = &listened};
    int rc = server_run(&config, err);
    ck_assert_int_eq(rc == 0, listened);
    return listened;
}

START_TEST(a_start_that_fails_leaves_nothing_open)
{
    char dir[] = "/tmp/mrd-server-XXXXXX", socket[64];
    struct error err = {0};
    struct rlimit limit = {MOST_FILES, MOST_FILES};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(socket, sizeof socket, "%s/s", dir);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0); /* the hard one, too: the server would raise the other */
    ck_assert_msg(serves(socket, &err), "%s", err.text);   /* libuv keeps some for the process */
    unsigned before = open_files(), failures = 0, free_files = LOOP_FILES;
    for (bool served = false; !served; free_files++) {
        ck_assert_uint_lt(free_files, MOST_FREE);
        unsigned n = 0;
        while (n < MOST_FILES && (held[n] = open("/dev/null", O_RDONLY)) >= 0)
            n++;
        ck_assert_uint_gt(n, free_files);
        for (unsigned i = 0; i < free_files; i++)
            close(held[--n]);
        served = serves(socket, &err);
        failures += !served;
        ck_assert_msg(served || err.text[0], "a failure without a text");
        while (n)
            close(held[--n]);
        ck_assert_msg(open_files() == before, "%u files free, %s: %u files are open, there were %u", free_files,
                      served ? "served" : err.text, open_files(), before);
    }
    ck_assert_uint_gt(failures, 0);
    unlink(socket);
    rmdir(dir);
}
END_TEST

START_TEST(a_worker_that_cannot_start_leaves_nothing_open)
{
    struct error err = {0};
    pthread_attr_t usual, huge;
    ck_assert(serves("@mrd-test-server", &err));
    unsigned before = open_files();
    ck_assert_int_eq(pthread_getattr_default_np(&usual), 0);
    pthread_attr_init(&huge);
    ck_assert_int_eq(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0); /* no address space is that large */
    ck_assert_int_eq(pthread_setattr_default_np(&huge), 0);
    ck_assert(!serves("@mrd-test-server", &err));
    ck_assert_ptr_nonnull(strstr(err.text, "cannot start the server"));
    ck_assert_uint_eq(open_files(), before);
    ck_assert_int_eq(pthread_setattr_default_np(&usual), 0);
    ck_assert(serves("@mrd-test-server", &err));
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&huge);
}
END_TEST

Suite *server_suite(void);

Suite *server_suite(void)
{
    Suite *s = suite_create("server");
    TCase *t = tcase_create("start");
    tcase_add_test(t, a_start_that_fails_leaves_nothing_open);
    tcase_add_test(t, a_worker_that_cannot_start_leaves_nothing_open);
    suite_add_tcase(s, t);
    return s;
}
