/* The relay between a producer and a host that the test plays: identity first, then every byte both ways; the control
 * connection introduces the machine and keeps comparing clocks. */
#include "capture/common/applet.h"
#include "capture/common/machine.h"
#include "capture/ipc/frame.h"
#include "wire/pb_cursor.h"

#include "ck_slice.h"

#include <arpa/inet.h>

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct rig {
    pid_t relay;
    int listener; /* the host */
    char socket_path[64];
};

static void start(struct rig *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(r->listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(r->listener, 16), 0);
    getsockname(r->listener, (struct sockaddr *)&a, &len);
    snprintf(r->socket_path, sizeof r->socket_path, "/tmp/meridian-relay-test-%d", (int)getpid());
    r->relay = fork();
    if (r->relay == 0) {
        char host[32], *argv[] = {(char[]){"traced_relay"}, NULL};
        snprintf(host, sizeof host, "127.0.0.1:%d", ntohs(a.sin_port));
        setenv("PERFETTO_RELAY_SOCK_NAME", host, 1);
        setenv("PERFETTO_PRODUCER_SOCK_NAME", r->socket_path, 1);
        setenv("PERFETTO_MACHINE_NAME", "guest", 1);
        _exit(traced_relay_main(1, argv));
    }
}

static void stop(struct rig *r)
{
    int status = 0;
    kill(r->relay, SIGTERM);
    waitpid(r->relay, &status, 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    close(r->listener);
    unlink(r->socket_path);
}

static int accept_soon(int listener)
{
    struct pollfd p = {listener, POLLIN, 0};
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    return accept(listener, NULL, NULL);
}

static int connect_local(const struct rig *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", r->socket_path);
    for (int i = 0; i < 500; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
            return fd;
        close(fd);
        usleep(10000);
    }
    ck_abort_msg("the relay does not listen");
    return -1;
}

static void read_exactly(int fd, void *buf, size_t len)
{
    for (size_t n = 0; n < len;) {
        struct pollfd p = {fd, POLLIN, 0};
        ck_assert_int_eq(poll(&p, 1, 5000), 1);
        ssize_t got = read(fd, (char *)buf + n, len - n);
        ck_assert_int_gt(got, 0);
        n += (size_t)got;
    }
}

static struct ipc_frame read_frame(int fd, uint8_t *buf, size_t size)
{
    uint32_t len;
    struct ipc_frame f;
    read_exactly(fd, &len, 4);
    ck_assert_uint_le(len, size);
    read_exactly(fd, buf, len);
    ck_assert(ipc_frame_decode(slice_of(buf, len), &f));
    return f;
}

static void send_frame(int fd, struct pb_writer *w)
{
    uint32_t len = (uint32_t)w->n;
    ck_assert_int_eq(write(fd, &len, 4), 4);
    ck_assert_int_eq(write(fd, w->p, w->n), (ssize_t)w->n);
    pb_writer_clear(w);
}

static void check_identity(const struct ipc_frame *f, pid_t pid)
{
    char hint[MACHINE_TEXT_MAX];
    machine_id_hint(hint, sizeof hint);
    ck_assert_int_eq(f->kind, IPC_PEER_IDENTITY);
    ck_assert_slice_eq(f->name, hint);
    ck_assert_slice_eq(f->name2, "guest");
    ck_assert_int_eq(f->pid, pid);
    ck_assert_int_eq(f->uid, (int)getuid());
}

/* Takes the relay's two first connections; the one that binds is the control connection. */
START_TEST(forwards_bytes_both_ways)
{
    struct rig r;
    static uint8_t buf[1 << 17], up[3 << 20], got[3 << 20];
    start(&r);
    int control = accept_soon(r.listener);
    struct ipc_frame f = read_frame(control, buf, sizeof buf);
    check_identity(&f, r.relay);
    int producer = connect_local(&r);
    int forwarded = accept_soon(r.listener);
    f = read_frame(forwarded, buf, sizeof buf);
    check_identity(&f, getpid());
    for (size_t i = 0; i < sizeof up; i++)
        up[i] = (uint8_t)(i * 2654435761u >> 13);
    pid_t writer = fork(); /* more than any window holds, both ways at once */
    if (writer == 0) {
        for (size_t n = 0; n < sizeof up;) {
            ssize_t w = write(producer, up + n, sizeof up - n);
            if (w <= 0)
                _exit(1);
            n += (size_t)w;
        }
        _exit(0);
    }
    pid_t other = fork();
    if (other == 0) {
        for (size_t n = 0; n < sizeof up;) {
            ssize_t w = write(forwarded, up + n, sizeof up - n);
            if (w <= 0)
                _exit(1);
            n += (size_t)w;
        }
        _exit(0);
    }
    read_exactly(forwarded, got, sizeof got);
    ck_assert_mem_eq(got, up, sizeof up);
    memset(got, 0, sizeof got);
    read_exactly(producer, got, sizeof got);
    ck_assert_mem_eq(got, up, sizeof up);
    int status;
    waitpid(writer, &status, 0);
    ck_assert_int_eq(status, 0);
    waitpid(other, &status, 0);
    ck_assert_int_eq(status, 0);
    /* The last bytes of a producer that goes away still arrive, then the end does. */
    ck_assert_int_eq(write(producer, "last", 4), 4);
    close(producer);
    read_exactly(forwarded, got, 4);
    ck_assert_mem_eq(got, "last", 4);
    ck_assert_int_eq(read(forwarded, got, 1), 0);
    close(forwarded);
    close(control);
    stop(&r);
}
END_TEST

START_TEST(compares_clocks)
{
    struct rig r;
    static uint8_t buf[1 << 17];
    static const char *const methods[] = {"InitRelay", "SyncClock"};
    struct pb_writer w = {0};
    start(&r);
    int c = accept_soon(r.listener);
    struct ipc_frame f = read_frame(c, buf, sizeof buf);
    check_identity(&f, r.relay);
    f = read_frame(c, buf, sizeof buf);
    ck_assert_int_eq(f.kind, IPC_BIND);
    ck_assert_slice_eq(f.name, "RelayPort");
    ipc_put_bind_reply(&w, f.request_id, 2, methods, 2);
    send_frame(c, &w);
    f = read_frame(c, buf, sizeof buf);
    ck_assert_int_eq(f.kind, IPC_INVOKE);
    ck_assert_uint_eq(f.method_id, 1);
    ipc_put_invoke_reply(&w, f.request_id, true, false, slice_of(NULL, 0));
    send_frame(c, &w);
    for (int i = 0; i < 12; i++) { /* six rounds: the burst of five and the next one */
        f = read_frame(c, buf, sizeof buf);
        ck_assert_uint_eq(f.method_id, 2);
        struct pb_cursor cur = pb_cursor(f.payload);
        struct pb_field field;
        int clocks = 0;
        uint64_t phase = 0;
        while (pb_next(&cur, &field)) {
            phase = field.id == 1 ? field.u : phase;
            clocks += field.id == 2;
        }
        ck_assert_uint_eq(phase, i % 2 ? 2 : 1);
        ck_assert_int_ge(clocks, 6);
        ipc_put_invoke_reply(&w, f.request_id, true, false, slice_of(NULL, 0));
        send_frame(c, &w);
    }
    /* The host goes away: the relay comes back by itself. */
    close(c);
    c = accept_soon(r.listener);
    f = read_frame(c, buf, sizeof buf);
    check_identity(&f, r.relay);
    close(c);
    pb_writer_free(&w);
    stop(&r);
}
END_TEST

START_TEST(needs_a_host)
{
    char *argv[] = {(char[]){"traced_relay"}, NULL};
    pid_t child = fork();
    if (child == 0) {
        unsetenv("PERFETTO_RELAY_SOCK_NAME");
        _exit(traced_relay_main(1, argv));
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
}
END_TEST

Suite *relay_suite(void);

Suite *relay_suite(void)
{
    Suite *s = suite_create("relay");
    TCase *t = tcase_create("relay");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, forwards_bytes_both_ways);
    tcase_add_test(t, compares_clocks);
    tcase_add_test(t, needs_a_host);
    suite_add_tcase(s, t);
    return s;
}
