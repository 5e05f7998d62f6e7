/* A handle whose trace a server holds, against servers that the test plays: any bytes may come from there. */
#include "meridian/tp.h"
#include "rpc/wire.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct impostor {
    pid_t pid;
    char path[64];
};

static int listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    unlink(path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    return fd;
}

/* A server that gives the n-th request (whatever it asks) the n-th answer, and keeps the connection open. */
static void impostor_start(struct impostor *p, const struct pb_writer *answers, size_t n)
{
    snprintf(p->path, sizeof p->path, "/tmp/meridian-impostor-%d", (int)getpid());
    int listener = listen_at(p->path);
    p->pid = fork();
    if (p->pid == 0) {
        char request[4096];
        int c = accept(listener, NULL, NULL);
        for (size_t i = 0; i < n; i++)
            if (read(c, request, sizeof request) <= 0 || write(c, answers[i].p, answers[i].n) != (ssize_t)answers[i].n)
                _exit(1);
        pause();
    }
    close(listener);
}

static void impostor_stop(struct impostor *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    unlink(p->path);
}

static void put_status(struct pb_writer *w)
{
    size_t mark = pb_begin(w, STREAM_MSG);
    pb_put_varint(w, RPC_RESPONSE, RPC_GET_STATUS);
    pb_end(w, mark);
}

/* One row of doubles, and the end. */
static void put_doubles(struct pb_writer *w, const double *values, size_t n)
{
    uint8_t kinds[16];
    memset(kinds, CELL_DOUBLE, sizeof kinds);
    size_t message = pb_begin(w, STREAM_MSG);
    pb_put_varint(w, RPC_RESPONSE, RPC_QUERY_STREAMING);
    size_t result = pb_begin(w, RPC_QUERY_RESULT);
    for (size_t i = 0; i < n; i++)
        pb_put_str(w, QUERY_COLUMN_NAMES, "d");
    size_t batch = pb_begin(w, QUERY_BATCH);
    pb_put_bytes(w, BATCH_CELLS, kinds, n);
    pb_put_bytes(w, BATCH_DOUBLES, values, n * sizeof *values);
    pb_put_varint(w, BATCH_IS_LAST, 1);
    pb_end(w, batch);
    pb_end(w, result);
    pb_end(w, message);
}

/* As SQLite reads a double as an integer: towards zero, and no further than the integers go. */
START_TEST(doubles_beyond_the_integers_saturate)
{
    static const struct {
        double d;
        int64_t i;
    } cases[] = {
        {1.9, 1},
        {-1.9, -1},
        {1e300, INT64_MAX},
        {-1e300, INT64_MIN},
        {INFINITY, INT64_MAX},
        {-INFINITY, INT64_MIN},
        {9223372036854775808.0, INT64_MAX},
        {-9223372036854775808.0, INT64_MIN},
        {9223372036854774784.0, 9223372036854774784},
        {NAN, 0},
    };
    enum { N = sizeof cases / sizeof *cases };
    struct pb_writer answers[2] = {0};
    struct impostor server;
    struct tp *tp;
    struct tp_result *r;
    double values[N];
    for (int i = 0; i < N; i++)
        values[i] = cases[i].d;
    put_status(&answers[0]);
    put_doubles(&answers[1], values, N);
    impostor_start(&server, answers, 2);
    ck_assert_msg(tp_connect(&tp, server.path) == 0, "%s", tp_error(tp));
    ck_assert_msg(tp_query(tp, "anything", &r) == 0, "%s", tp_error(tp));
    ck_assert_int_eq(tp_step(r), 1);
    ck_assert_int_eq(tp_columns(r), N);
    for (int i = 0; i < N; i++)
        ck_assert_msg(tp_int64(r, i) == cases[i].i, "%g: %lld", cases[i].d, (long long)tp_int64(r, i));
    ck_assert_int_eq(tp_step(r), 0);
    tp_result_close(r);
    tp_close(tp);
    impostor_stop(&server);
    pb_writer_free(&answers[0]);
    pb_writer_free(&answers[1]);
}
END_TEST

Suite *remote_suite(void);
Suite *remote_suite(void)
{
    Suite *s = suite_create("remote");
    TCase *t = tcase_create("impostors");
    tcase_add_test(t, doubles_beyond_the_integers_saturate);
    suite_add_tcase(s, t);
    return s;
}
