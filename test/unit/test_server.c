/* Tests starts of the server that fail, without descriptors or threads: nothing is left open. And requests for which
 * there is no memory: others are served. */
#include "base/alloc.h"
#include "server/server.h"
#include "sql/engine/heap.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
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

/* ---- memory runs out ---- */

static struct {
    atomic_uint calls;
    unsigned fail_at, n; /* so many calls fail, one after the other */
} memory;

/* Called by the loop and by the worker. */
static bool gate(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    unsigned call = atomic_fetch_add(&memory.calls, 1) + 1;
    return call < memory.fail_at || call >= memory.fail_at + memory.n;
}

struct running {
    struct server_config config;
    pthread_t thread;
    atomic_bool listens;
    int rc;
};

static void note_listening(void *ctx)
{
    atomic_store((atomic_bool *)ctx, true);
}

static void *run_server(void *ctx)
{
    struct running *r = ctx;
    struct error err = {0};
    r->rc = server_run(&r->config, &err);
    return NULL;
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void start_server(struct running *r)
{
    struct tp *tp;
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_int_eq(tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace"), 0);
    ck_assert_int_eq(tp_finish(tp), 0);
    *r = (struct running){.config = {.transport = SERVER_HTTP,
                                     .tp = tp,
                                     .host = "127.0.0.1",
                                     .port = free_port(),
                                     .on_listening = note_listening}};
    r->config.on_listening_ctx = &r->listens;
    ck_assert_int_eq(pthread_create(&r->thread, NULL, run_server, r), 0);
    for (int i = 0; i < 10000 && !atomic_load(&r->listens); i++)
        usleep(1000);
    ck_assert(atomic_load(&r->listens));
}

/* What the server answers until it closes; "" when it closes at once. */
static size_t ask(const struct running *r, const char *request, size_t len, char *answer, size_t room)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)r->config.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t n = 0;
    ssize_t got;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    if (send(fd, request, len, MSG_NOSIGNAL) == (ssize_t)len) {
        while (n < room - 1 && (got = recv(fd, answer + n, room - 1 - n, 0)) > 0)
            n += (size_t)got;
        ck_assert_msg(n == room - 1 || got == 0 || errno == ECONNRESET, "no answer and no end: %.100s", request);
    }
    answer[n] = 0;
    close(fd);
    return n;
}

#define SQL   "select 42 + count(*) from slice where name glob '*'"
#define QUERY "\x0a\x33" SQL /* QueryArgs: field 1 */
#define HEAD  "Host: localhost\r\nConnection: close\r\n"

static const struct {
    const char *text;
    const char *answer; /* a part of it */
} requests[] = {
    {"GET /status HTTP/1.1\r\n" HEAD "\r\n", "HTTP/1.1 200"},
    {"POST /query HTTP/1.1\r\n" HEAD "Content-Length: 53\r\n\r\n" QUERY, "HTTP/1.1 200"},
    {"POST /query HTTP/1.1\r\n" HEAD "Transfer-Encoding: chunked\r\n\r\n35\r\n" QUERY "\r\n0\r\n\r\n", "HTTP/1.1 200"},
    {"POST /rpc HTTP/1.1\r\n" HEAD "Content-Length: 62\r\n\r\n\x0a\x3c\x08\x01\x10\x03\xba\x06\x35" QUERY,
     "HTTP/1.1 200"},
    {"POST /restore_initial_tables HTTP/1.1\r\n" HEAD "Content-Length: 0\r\n\r\n", "HTTP/1.1 200"},
    {"GET /nowhere HTTP/1.1\r\n" HEAD "\r\n", "HTTP/1.1 404"},
};

/* Each allocation that a request needs fails, of the loop, the worker, the engine and SQLite: the client gets an answer
 * or the end of its connection, and the next one is served. */
START_TEST(requests_without_memory)
{
    struct running r;
    char answer[4096];
    const char *text = requests[_i].text;
    ck_assert_uint_eq(sizeof QUERY - 1, 53);
    start_server(&r);
    bool reached = true;
    for (unsigned k = 1; reached && k < 20000; k += 1 + k / 16) {
        memory.fail_at = k;
        memory.n = k % 2 ? 1 : 1000;
        atomic_store(&memory.calls, 0);
        sql_heap_set_gated(true);
        alloc_set_gate(gate, NULL);
        ask(&r, text, strlen(text), answer, sizeof answer);
        alloc_set_gate(NULL, NULL);
        sql_heap_set_gated(false);
        reached = atomic_load(&memory.calls) >= k;
        ask(&r, text, strlen(text), answer, sizeof answer);
        ck_assert_msg(strstr(answer, requests[_i].answer), "after allocation %u failed: %s", k, answer);
    }
    ck_assert(!reached);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    pthread_join(r.thread, NULL);
    ck_assert_int_eq(r.rc, 0);
}
END_TEST

Suite *server_suite(void);

Suite *server_suite(void)
{
    Suite *s = suite_create("server");
    TCase *t = tcase_create("start");
    tcase_add_test(t, a_start_that_fails_leaves_nothing_open);
    tcase_add_test(t, a_worker_that_cannot_start_leaves_nothing_open);
    tcase_add_loop_test(t, requests_without_memory, 0, (int)(sizeof requests / sizeof *requests));
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    return s;
}
