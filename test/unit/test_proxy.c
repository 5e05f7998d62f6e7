/* Tests the forwarding of producers to a host that the test plays: identity first, every byte both ways, no more held
 * than a window, and what is lost is told. */
#include "capture/ipc/addr.h"
#include "capture/ipc/frame.h"
#include "capture/relay/proxy.h"

#include "ck_slice.h"
#include "loop_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static uv_loop_t loop;
static struct log_limit log_limit;
static struct relay_proxy *proxy;
static char local_address[64], host_address[64];
static int host; /* listens */
static uint64_t lost;
static unsigned losses;

static void on_lost(void *ctx, uint64_t bytes)
{
    ck_assert_ptr_eq(ctx, &lost);
    lost += bytes;
    losses++;
}

static void begin(unsigned max_connections)
{
    struct ipc_addr a;
    struct error err = {0};
    signal(SIGPIPE, SIG_IGN); /* as the relay does */
    uv_loop_init(&loop);
    snprintf(local_address, sizeof local_address, "@meridian-proxy-test-%d-local", (int)getpid());
    snprintf(host_address, sizeof host_address, "@meridian-proxy-test-%d-host", (int)getpid());
    host = ipc_addr_listen(host_address, &a, &err);
    ck_assert_msg(host >= 0, "%s", err.text);
    struct relay_proxy_options o = {.listen = local_address,
                                    .host = {.loop = &loop, .host = host_address, .log = &log_limit},
                                    .machine_id_hint = "hint",
                                    .machine_name = "guest",
                                    .max_connections = max_connections,
                                    .lost = on_lost,
                                    .ctx = &lost};
    ck_assert_msg(relay_proxy_open(&proxy, &loop, &o, &err) == 0, "%s", err.text);
}

static void end(void)
{
    relay_proxy_close(proxy);
    loop_end(&loop);
    if (host >= 0)
        close(host);
}

/* One forwarded producer: its socket, and the host's end. */
struct pair {
    int local, remote;
};

static int connect_local(void)
{
    bool in_progress;
    struct ipc_addr a;
    struct error err = {0};
    int fd = ipc_addr_connect(local_address, &in_progress, &a, &err);
    ck_assert_msg(fd >= 0, "%s", err.text);
    return fd;
}

static struct pair connect_both(void)
{
    struct pair p = {.local = connect_local(), .remote = -1};
    RUN_UNTIL(&loop, (p.remote = accept4(host, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return p;
}

static void close_pair(struct pair *p)
{
    close(p->local);
    close(p->remote);
}

static void receive(int fd, void *bytes, size_t n)
{
    size_t got = 0;
    RUN_UNTIL(&loop, ({
        ssize_t r = recv(fd, (char *)bytes + got, n - got, MSG_DONTWAIT);
        ck_assert_msg(r != 0, "it ended after %zu of %zu bytes", got, n);
        got += r > 0 ? (size_t)r : 0;
        got == n;
    }));
}

/* Takes the identity frame off a new connection. */
static void skip_identity(int fd)
{
    uint8_t head[4], body[256];
    receive(fd, head, 4);
    ck_assert_uint_le(head[0], sizeof body);
    receive(fd, body, head[0]);
}

static bool has_ended(int fd)
{
    char c;
    return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 2654435761u >> 13);
}

/* Writes as long as the socket takes something; the bytes go on from `from`. Returns how many were taken. */
static size_t fill(int fd, size_t from)
{
    static uint8_t buf[1 << 14];
    size_t n = 0;
    for (int idle = 0; idle < 3;) {
        for (size_t i = 0; i < sizeof buf; i++)
            buf[i] = byte_at(from + n + i);
        ssize_t w = send(fd, buf, sizeof buf, MSG_DONTWAIT | MSG_NOSIGNAL);
        n += w > 0 ? (size_t)w : 0;
        idle = w > 0 ? 0 : idle + 1;
        if (idle)
            loop_settle(&loop);
        else
            uv_run(&loop, UV_RUN_NOWAIT);
        ck_assert_msg(n < 16 << 20, "nothing stops the writer");
    }
    return n;
}

/* Takes `n` bytes, which go on from `from`. */
static void take(int fd, size_t from, size_t n)
{
    static uint8_t got[16 << 20];
    receive(fd, got, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != byte_at(from + i))
            ck_abort_msg("byte %zu is wrong", i);
}

START_TEST(the_identity_comes_first)
{
    uint8_t head[4], body[256];
    struct ipc_frame f;
    begin(0);
    struct pair p = {.local = connect_local()};
    ck_assert_int_eq(write(p.local, "bytes of the producer", 21), 21); /* before the host has accepted */
    RUN_UNTIL(&loop, (p.remote = accept(host, NULL, NULL)) >= 0);
    receive(p.remote, head, 4);
    receive(p.remote, body, head[0]);
    ck_assert(ipc_frame_decode(slice_of(body, head[0]), &f));
    ck_assert_int_eq(f.kind, IPC_PEER_IDENTITY);
    ck_assert_int_eq(f.pid, (int)getpid());
    ck_assert_int_eq(f.uid, (int)getuid());
    ck_assert_slice_eq(f.name, "hint");
    ck_assert_slice_eq(f.name2, "guest");
    receive(p.remote, body, 21);
    ck_assert_mem_eq(body, "bytes of the producer", 21);
    close_pair(&p);
    end();
}
END_TEST

START_TEST(producers_are_kept_apart)
{
    char text[8] = "";
    begin(0);
    struct pair a = connect_both(), b = connect_both();
    skip_identity(a.remote);
    skip_identity(b.remote);
    ck_assert_int_eq(write(a.local, "from a", 6), 6);
    ck_assert_int_eq(write(b.local, "from b", 6), 6);
    ck_assert_int_eq(write(b.remote, "to b", 4), 4);
    receive(a.remote, text, 6);
    ck_assert_str_eq(text, "from a");
    receive(b.remote, text, 6);
    ck_assert_str_eq(text, "from b");
    receive(b.local, text, 4);
    ck_assert_str_eq(text, "to b b");
    ck_assert_int_eq(recv(a.local, text, 1, MSG_DONTWAIT), -1);
    close_pair(&a);
    RUN_UNTIL(&loop, (loop_settle(&loop), true));
    ck_assert_int_eq(write(b.local, "still", 5), 5); /* the end of one is not the end of the other */
    receive(b.remote, text, 5);
    close_pair(&b);
    end();
}
END_TEST

/* A side that does not read stops the other one; once it reads, every byte is there. Row 0: up, 1: down. */
START_TEST(a_full_window_stops_the_writer)
{
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    int from = _i ? p.remote : p.local, to = _i ? p.local : p.remote;
    size_t n = fill(from, 0);
    ck_assert_uint_ge(n, RELAY_WINDOW_BYTES);
    ck_assert_uint_le(n, 4 << 20); /* the sockets' own buffers and one window */
    char c = 'x';
    ck_assert_int_eq(write(to, &c, 1), 1); /* the other way is open */
    receive(from, &c, 1);
    take(to, 0, n / 2);
    size_t more = fill(from, n); /* there is room again */
    ck_assert_uint_gt(more, 0);
    take(to, n / 2, n - n / 2 + more);
    ck_assert_uint_eq(losses, 0);
    close_pair(&p);
    end();
}
END_TEST

START_TEST(the_last_bytes_of_a_producer_arrive)
{
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    size_t n = fill(p.local, 0); /* more than fits behind the relay */
    close(p.local);
    loop_settle(&loop);
    take(p.remote, 0, n);
    RUN_UNTIL(&loop, has_ended(p.remote));
    close(p.remote);
    end();
    ck_assert_uint_eq(losses, 0);
}
END_TEST

/* The host goes with a producer's bytes on their way: so many are lost as it has not got. */
START_TEST(lost_bytes_are_told)
{
    int unread = 0;
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    size_t n = fill(p.local, 0);
    ck_assert_int_eq(ioctl(p.remote, FIONREAD, &unread), 0);
    ck_assert_uint_gt(n, (size_t)unread);
    close(p.remote);
    RUN_UNTIL(&loop, losses);
    ck_assert_uint_eq(losses, 1);
    ck_assert_uint_eq(lost, n - (size_t)unread);
    RUN_UNTIL(&loop, has_ended(p.local) || errno == ECONNRESET);
    close(p.local);
    end();
}
END_TEST

/* … also of one that ends its half, and takes no more. */
START_TEST(lost_bytes_of_a_host_that_only_ends)
{
    int unread = 0;
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    size_t n = fill(p.local, 0);
    ck_assert_int_eq(ioctl(p.remote, FIONREAD, &unread), 0);
    ck_assert_int_eq(shutdown(p.remote, SHUT_WR), 0);
    RUN_UNTIL(&loop, losses);
    ck_assert_uint_eq(losses, 1);
    ck_assert_uint_ge(lost, n - (size_t)unread);
    close_pair(&p);
    end();
}
END_TEST

/* A host that has got everything and goes loses nothing; nor does one that cannot be reached. */
START_TEST(a_host_that_goes_after_all_was_said)
{
    char text[8];
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    ck_assert_int_eq(write(p.local, "all", 3), 3);
    receive(p.remote, text, 3);
    close(p.remote);
    RUN_UNTIL(&loop, has_ended(p.local));
    close(p.local);
    close(host);
    host = -1;
    int second = connect_local();
    RUN_UNTIL(&loop, has_ended(second));
    close(second);
    end();
    ck_assert_uint_eq(losses, 0);
}
END_TEST

/* A producer that does not read its answers any more is still heard. Row 0: some of them wait in the relay then. */
START_TEST(answers_that_nobody_reads_do_no_harm)
{
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    if (_i == 0)
        fill(p.remote, 0);
    ck_assert_int_eq(shutdown(p.local, SHUT_RD), 0);
    size_t up = fill(p.local, 0);
    ck_assert_uint_gt(up, RELAY_WINDOW_BYTES);
    take(p.remote, 0, up);
    static const uint8_t zeros[1 << 20]; /* far more than a window holds: it is dropped */
    size_t dropped = 0;
    RUN_UNTIL(&loop, ({
        ssize_t w = send(p.remote, zeros, sizeof zeros - dropped, MSG_DONTWAIT | MSG_NOSIGNAL);
        dropped += w > 0 ? (size_t)w : 0;
        dropped == sizeof zeros;
    }));
    ck_assert_int_eq(write(p.local, "more", 4), 4);
    char text[5] = "";
    receive(p.remote, text, 4);
    ck_assert_str_eq(text, "more");
    close_pair(&p);
    end();
}
END_TEST

/* The relay is told to stop: what was said so far is handed over, then both sides see the end. */
START_TEST(close_hands_over_what_was_said)
{
    begin(0);
    struct pair p = connect_both();
    skip_identity(p.remote);
    size_t n = fill(p.local, 0);
    relay_proxy_close(proxy);
    loop_settle(&loop);
    take(p.remote, 0, n);
    RUN_UNTIL(&loop, has_ended(p.remote));
    ck_assert_int_eq(send(p.local, "x", 1, MSG_NOSIGNAL), -1);
    close_pair(&p);
    loop_end(&loop);
    close(host);
    ck_assert_uint_eq(losses, 0);
}
END_TEST

/* A host that takes nothing more does not hold the relay back for ever. */
START_TEST(close_waits_only_while_bytes_move)
{
    begin(0);
    struct pair p = connect_both();
    fill(p.local, 0);
    relay_proxy_close(proxy);
    loop_settle(&loop);
    ck_assert_int_eq(has_ended(p.local), false);
    ck_assert_uint_eq(loop_hurry(&loop), 1);
    loop_end(&loop);
    close_pair(&p);
    close(host);
}
END_TEST

START_TEST(there_is_a_limit_of_connections)
{
    begin(3);
    struct pair p[4];
    for (int i = 0; i < 3; i++)
        p[i] = connect_both();
    int fourth = connect_local();
    RUN_UNTIL(&loop, has_ended(fourth));
    close(fourth);
    ck_assert_int_eq(accept(host, NULL, NULL), -1); /* the host has not heard of it */
    for (int i = 0; i < 3; i++)
        skip_identity(p[i].remote); /* those before it go on */
    close_pair(&p[1]);
    loop_settle(&loop);
    p[3] = connect_both();
    skip_identity(p[3].remote);
    close_pair(&p[0]);
    close_pair(&p[2]);
    close_pair(&p[3]);
    end();
    ck_assert_uint_eq(losses, 0);
}
END_TEST

Suite *proxy_suite(void);

Suite *proxy_suite(void)
{
    Suite *s = suite_create("proxy");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_identity_comes_first);
    tcase_add_test(t, producers_are_kept_apart);
    tcase_add_loop_test(t, a_full_window_stops_the_writer, 0, 2);
    tcase_add_test(t, the_last_bytes_of_a_producer_arrive);
    tcase_add_test(t, lost_bytes_are_told);
    tcase_add_test(t, lost_bytes_of_a_host_that_only_ends);
    tcase_add_test(t, a_host_that_goes_after_all_was_said);
    tcase_add_loop_test(t, answers_that_nobody_reads_do_no_harm, 0, 2);
    tcase_add_test(t, close_hands_over_what_was_said);
    tcase_add_test(t, close_waits_only_while_bytes_move);
    tcase_add_test(t, there_is_a_limit_of_connections);
    suite_add_tcase(s, t);
    return s;
}
