/* Tests addresses, frames and the RPC between a host and a client on one loop. */
#include "capture/ipc/addr.h"
#include "capture/ipc/client.h"
#include "capture/ipc/frame.h"
#include "capture/ipc/halves.h"
#include "capture/ipc/host.h"
#include "wire/pb_cursor.h"

#include "ck_slice.h"

#include <check.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

START_TEST(the_form_of_an_address_decides)
{
    struct ipc_addr a;
    struct error err;
    ck_assert_int_eq(ipc_addr_parse(&a, "/run/x.sock", &err), 0);
    ck_assert_int_eq(a.family, AF_UNIX);
    ck_assert(a.is_path);
    ck_assert_int_eq(ipc_addr_parse(&a, "@name", &err), 0);
    ck_assert_int_eq(a.family, AF_UNIX);
    ck_assert(!a.is_path);
    ck_assert_uint_eq(a.len, offsetof(struct sockaddr_un, sun_path) + 5);
    ck_assert_int_eq(((struct sockaddr_un *)&a.addr)->sun_path[0], 0);
    ck_assert_int_eq(ipc_addr_parse(&a, "vsock://3:1024", &err), 0);
    ck_assert_int_eq(a.family, AF_VSOCK);
    ck_assert_uint_eq(((struct sockaddr_vm *)&a.addr)->svm_cid, 3);
    ck_assert_int_eq(ipc_addr_parse(&a, "127.0.0.1:20001", &err), 0);
    ck_assert_int_eq(a.family, AF_INET);
    ck_assert_uint_eq(ntohs(((struct sockaddr_in *)&a.addr)->sin_port), 20001);
    ck_assert_int_eq(ipc_addr_parse(&a, "[::1]:7", &err), 0);
    ck_assert_int_eq(a.family, AF_INET6);
    ck_assert_int_eq(ipc_addr_parse(&a, "name:with:colons", &err), 0);
    ck_assert_int_eq(a.family, AF_UNIX);
    ck_assert_int_lt(ipc_addr_parse(&a, "", &err), 0);
    ck_assert_int_lt(ipc_addr_parse(&a, "vsock://3", &err), 0);
    ck_assert_int_lt(ipc_addr_parse(&a, "vsock://x:1", &err), 0);
}
END_TEST

START_TEST(a_file_is_not_a_stale_socket)
{
    char path[] = "/tmp/meridian-test-XXXXXX";
    struct error err = {0};
    close(mkstemp(path));
    ck_assert_int_eq(ipc_addr_listen(path, NULL, &err), -MRD_EEXISTS);
    ck_assert_int_eq(access(path, F_OK), 0);
    unlink(path);
    for (int i = 0; i < 2; i++) { /* the second time over the socket that the first one left */
        int fd = ipc_addr_listen(path, NULL, &err);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    unlink(path);
}
END_TEST

START_TEST(frames_read_back)
{
    struct pb_writer w = {0};
    struct ipc_frame f;
    ipc_put_invoke(&w, 300, 1, 4, slice_str("args"), true);
    ck_assert(ipc_frame_decode(pb_written(&w), &f));
    ck_assert_int_eq(f.kind, IPC_INVOKE);
    ck_assert_uint_eq(f.request_id, 300);
    ck_assert_uint_eq(f.service_id, 1);
    ck_assert_uint_eq(f.method_id, 4);
    ck_assert(f.drop_reply);
    ck_assert_slice_eq(f.payload, "args");
    pb_writer_clear(&w);
    ipc_put_invoke_reply(&w, 5, true, true, slice_str("reply"));
    ck_assert(ipc_frame_decode(pb_written(&w), &f));
    ck_assert_int_eq(f.kind, IPC_INVOKE_REPLY);
    ck_assert(f.success);
    ck_assert(f.has_more);
    ck_assert_slice_eq(f.payload, "reply");
    pb_writer_clear(&w);
    ipc_put_peer_identity(&w, 12, 34, "hint", "guest");
    ck_assert(ipc_frame_decode(pb_written(&w), &f));
    ck_assert_int_eq(f.kind, IPC_PEER_IDENTITY);
    ck_assert_int_eq(f.pid, 12);
    ck_assert_int_eq(f.uid, 34);
    ck_assert_slice_eq(f.name, "hint");
    ck_assert_slice_eq(f.name2, "guest");
    pb_writer_clear(&w);
    ipc_put_bind_reply(&w, 1, 1, ipc_producer_port.methods, ipc_producer_port.n_methods);
    ck_assert(ipc_frame_decode(pb_written(&w), &f));
    struct slice at = f.payload, name;
    uint32_t id, n = 0;
    while (ipc_frame_next_method(&at, &id, &name)) {
        ck_assert_slice_eq(name, ipc_producer_port.methods[n]);
        ck_assert_uint_eq(id, ++n);
    }
    ck_assert_uint_eq(n, PRODUCER_METHOD_COUNT);
    ck_assert(!ipc_frame_decode(slice_str("\x1a\xff"), &f));
    pb_writer_free(&w);
}
END_TEST

/* ---- host and client ---- */

struct world {
    uv_loop_t loop;
    struct ipc_host *host;
    struct ipc_client *client;
    struct ipc_call stream;
    unsigned replies, disconnects, client_gone, triggers;
    size_t bytes;
    bool last, failed;
    int fd; /* that the host got */
    const char *address;
};

static void on_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args)
{
    struct world *w = ctx;
    static uint8_t big[100000];
    switch (method) {
    case PRODUCER_SYNC: /* echoes */
        ipc_reply(&call, true, false, args, -1);
        break;
    case PRODUCER_COMMIT_DATA: /* a stream of three, then the end */
        for (int i = 0; i < 3; i++)
            ipc_reply(&call, true, true, slice_of(big, sizeof big), -1);
        ipc_reply(&call, true, false, slice_str("end"), -1);
        break;
    case PRODUCER_GET_ASYNC_COMMAND: {
        int fd = open("/dev/null", O_RDONLY);
        ipc_reply(&call, true, true, slice_str("fd"), fd);
        close(fd);
        break;
    }
    case PRODUCER_ACTIVATE_TRIGGERS: /* counted, and answered */
        w->triggers++;
        ipc_reply(&call, true, false, slice_of(NULL, 0), -1);
        break;
    case PRODUCER_INITIALIZE_CONNECTION:
        w->fd = ipc_peer_take_fd(call.peer);
        ipc_reply(&call, true, false, slice_of(NULL, 0), -1);
        break;
    default:
        ipc_reply(&call, false, false, slice_of(NULL, 0), -1);
    }
}

static void on_peer_gone(void *ctx, struct ipc_peer *peer)
{
    struct world *w = ctx;
    (void)peer;
    w->disconnects++;
}

static void on_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct world *w = ctx;
    w->replies++;
    w->bytes += reply.len;
    w->last = !has_more;
    w->failed = !success;
    uv_stop(&w->loop);
}

static void on_bound(void *ctx)
{
    uv_stop(&((struct world *)ctx)->loop);
}

static void on_client_gone(void *ctx, const char *why)
{
    struct world *w = ctx;
    (void)why;
    w->client_gone++;
    uv_stop(&w->loop);
}

static const struct ipc_client_ops client_ops = {.bound = on_bound, .disconnected = on_client_gone};

static void open_world(struct world *w, const char *address, const struct ipc_service_desc *ask)
{
    struct error err = {0};
    *w = (struct world){.fd = -1, .address = address};
    uv_loop_init(&w->loop);
    struct ipc_service s = {&ipc_producer_port, w, on_invoke, on_peer_gone};
    struct ipc_host_options o = {.services = &s,
                                 .n_services = 1,
                                 .limits = {.send_timeout_ms = 1000, .queue_max_bytes = 1 << 20},
                                 .log_name = "test socket",
                                 .max_peers = 2};
    ck_assert_msg(ipc_host_open(&w->host, &w->loop, address, &o, &err) == 0, "%s", err.text);
    ck_assert_int_eq(ipc_client_open(&w->client, &w->loop, address, ask, NULL, &client_ops, w, &err), 0);
    uv_run(&w->loop, UV_RUN_DEFAULT);
}

static void close_world(struct world *w)
{
    ipc_client_close(w->client);
    ipc_host_close(w->host);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&w->loop), 0);
    if (w->address[0] == '/')
        unlink(w->address);
}

static const char *const addresses[] = {"/tmp/meridian-test-ipc.sock", "@meridian-test-ipc", "127.0.0.1:39517"};

START_TEST(calls_and_streams)
{
    struct world w;
    open_world(&w, addresses[_i], &ipc_producer_port);
    ck_assert(ipc_client_invoke(w.client, PRODUCER_SYNC, slice_str("hello"), -1, on_reply, &w));
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(w.replies, 1);
    ck_assert_uint_eq(w.bytes, 5);
    ck_assert(w.last);
    ck_assert(!w.failed);
    ck_assert(ipc_client_invoke(w.client, PRODUCER_COMMIT_DATA, slice_of(NULL, 0), -1, on_reply, &w));
    while (w.replies < 5)
        uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert(w.last);
    ck_assert_uint_eq(w.bytes, 5 + 300000 + 3);
    ck_assert(ipc_client_invoke(w.client, PRODUCER_UPDATE_DATA_SOURCE, slice_of(NULL, 0), -1, on_reply, &w));
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert(w.failed);
    ck_assert(w.last);
    static uint8_t big[IPC_FRAME_MAX];
    ck_assert(!ipc_client_invoke(w.client, PRODUCER_SYNC, slice_of(big, sizeof big), -1, on_reply, &w));
    close_world(&w);
    ck_assert_uint_eq(w.disconnects, 1);
}
END_TEST

START_TEST(descriptors_travel_both_ways)
{
    struct world w;
    open_world(&w, addresses[_i], &ipc_producer_port);
    int fd = open("/dev/null", O_RDONLY);
    ck_assert(ipc_client_invoke(w.client, PRODUCER_INITIALIZE_CONNECTION, slice_of(NULL, 0), fd, on_reply, &w));
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_int_ge(w.fd, 0);
    ck_assert_int_ne(w.fd, fd);
    struct stat a, b;
    ck_assert_int_eq(fstat(fd, &a), 0);
    ck_assert_int_eq(fstat(w.fd, &b), 0);
    ck_assert_uint_eq(a.st_rdev, b.st_rdev);
    close(fd);
    close(w.fd);
    ck_assert(ipc_client_invoke(w.client, PRODUCER_GET_ASYNC_COMMAND, slice_of(NULL, 0), -1, on_reply, &w));
    uv_run(&w.loop, UV_RUN_DEFAULT);
    fd = ipc_client_take_fd(w.client);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(ipc_client_take_fd(w.client), -1);
    close(fd);
    close_world(&w);
}
END_TEST

START_TEST(a_service_that_is_not_there)
{
    struct world w;
    open_world(&w, addresses[0], &ipc_relay_port);
    ck_assert_uint_eq(w.client_gone, 1);
    close_world(&w);
}
END_TEST

START_TEST(both_sides_hear_of_the_end)
{
    struct world w;
    open_world(&w, addresses[0], &ipc_producer_port);
    ipc_host_close(w.host);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(w.client_gone, 1);
    ck_assert(!ipc_client_invoke(w.client, PRODUCER_SYNC, slice_of(NULL, 0), -1, on_reply, &w));
    ipc_client_close(w.client);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&w.loop), 0);
    unlink(addresses[0]);
}
END_TEST

/* A client that dies has sent more than one read takes: the first answer cannot be sent, and yet all is heard. */
START_TEST(what_was_sent_before_the_end_is_read)
{
    struct world w;
    static uint8_t body[40000];
    unsigned sent = 0;
    open_world(&w, addresses[0], &ipc_producer_port);
    while (sent < 50 && !ipc_client_queued(w.client)) {
        ck_assert(
            ipc_client_invoke(w.client, PRODUCER_ACTIVATE_TRIGGERS, slice_of(body, sizeof body), -1, on_reply, &w));
        sent++;
    }
    ck_assert_uint_gt(sent, 4); /* the last one may have gone in part */
    ipc_client_close(w.client);
    w.client = NULL;
    while (!w.disconnects)
        uv_run(&w.loop, UV_RUN_ONCE);
    ck_assert_uint_ge(w.triggers, sent - 1);
    close_world(&w);
}
END_TEST

START_TEST(there_is_a_limit_of_peers)
{
    struct world w;
    struct ipc_client *second, *third;
    open_world(&w, addresses[0], &ipc_producer_port);
    ck_assert_int_eq(ipc_client_open(&second, &w.loop, addresses[0], &ipc_producer_port, NULL, &client_ops, &w, NULL),
                     0);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(w.client_gone, 0);
    ck_assert_int_eq(ipc_client_open(&third, &w.loop, addresses[0], &ipc_producer_port, NULL, &client_ops, &w, NULL),
                     0);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(w.client_gone, 1);
    ipc_client_close(second);
    ipc_client_close(third);
    close_world(&w);
}
END_TEST

struct holder {
    struct ipc_half half;
    struct ipc_halves *all;
    unsigned dropped;
};

static void on_drop(struct ipc_half *v)
{
    struct holder *o = (struct holder *)v;
    o->dropped++;
    ck_assert(ipc_half_hold(o->all, v, 0, false)); /* as closing a connection does */
}

/* Of a crowd of one user the oldest go, each once; whoever is another user, or has begun anew, stays. */
START_TEST(messages_that_have_begun_are_bounded)
{
    enum { CROWD = 1000, ROOM = 100, PIECE = 10 };
    static struct holder crowd[CROWD], honest, late;
    struct ipc_halves all = {.max = ROOM * PIECE};
    honest = (struct holder){{.drop = on_drop, .user_id = 7}, &all, 0};
    ck_assert(ipc_half_hold(&all, &honest.half, 3 * PIECE, true)); /* before all the others */
    for (unsigned i = 0; i < CROWD; i++) {
        crowd[i] = (struct holder){{.drop = on_drop, .user_id = 1}, &all, 0};
        ck_assert(ipc_half_hold(&all, &crowd[i].half, PIECE, true));
        ck_assert(i % 50 || ipc_half_hold(&all, &crowd[0].half, PIECE, true)); /* a message each time */
        ck_assert_uint_le(all.bytes, all.max);
    }
    ck_assert_uint_eq(honest.dropped + crowd[0].dropped, 0);
    for (unsigned i = 1; i < CROWD; i++)
        ck_assert_uint_eq(crowd[i].dropped, i + ROOM - 4 < CROWD);
    ck_assert_uint_eq(all.bytes, all.max);
    /* Who alone asks for more than there is goes itself, when the others have less. */
    late = (struct holder){{.drop = on_drop, .user_id = 9}, &all, 0};
    ck_assert(!ipc_half_hold(&all, &late.half, 2 * ROOM * PIECE, true));
    ck_assert_uint_eq(late.dropped, 0);
    ck_assert_uint_eq(late.half.bytes, 0);
    ck_assert_uint_eq(honest.dropped, 0);
    for (unsigned i = 0; i < CROWD; i++)
        ipc_half_hold(&all, &crowd[i].half, 0, false);
    ck_assert(ipc_half_hold(&all, &honest.half, PIECE, false)); /* it may shrink, too */
    ck_assert_uint_eq(all.bytes, PIECE);
    ck_assert(ipc_half_hold(&all, &honest.half, 0, false));
    ck_assert(!all.users && !all.oldest && !all.newest && !all.bytes);
}
END_TEST

Suite *ipc_suite(void);
Suite *ipc_suite(void)
{
    Suite *s = suite_create("ipc");
    TCase *t = tcase_create("frames");
    tcase_add_test(t, the_form_of_an_address_decides);
    tcase_add_test(t, a_file_is_not_a_stale_socket);
    tcase_add_test(t, frames_read_back);
    tcase_add_test(t, messages_that_have_begun_are_bounded);
    suite_add_tcase(s, t);
    TCase *r = tcase_create("rpc");
    tcase_set_timeout(r, 20);
    tcase_add_loop_test(r, calls_and_streams, 0, 3);
    tcase_add_loop_test(r, descriptors_travel_both_ways, 0, 2);
    tcase_add_test(r, a_service_that_is_not_there);
    tcase_add_test(r, both_sides_hear_of_the_end);
    tcase_add_test(r, what_was_sent_before_the_end_is_read);
    tcase_add_test(r, there_is_a_limit_of_peers);
    suite_add_tcase(s, r);
    return s;
}
