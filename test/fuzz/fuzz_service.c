/* The tracing service as a whole: two producers, one of them with its shared memory, and a consumer say and write
 * anything, in any order. The input is a program of operations; what the service answers is read and thrown away.
 *
 * With -DWITHOUT_MEMORY (fuzz_service_memory) every program runs again and again, each time with another call of the
 * service's allocator failing, once or from there on; afterwards the service must still record.
 *
 * With libFuzzer add -close_fd_mask=2: the service logs. */
#include "base/alloc.h"
#include "capture/ipc/frame.h"
#include "capture/ipc/ports.h"
#include "capture/service/producers.h"
#include "capture/service/service.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "capture/shm/abi.h"
#include "schema/service.pb-c.h"

#include "fuzz.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PRODUCERS = 2, CONSUMER = 2, PEERS = 3, PAGE = 4096, PAGES = 16 };

struct peer {
    int fd;
    uint64_t request;
};

struct world {
    uv_loop_t loop;
    struct service *service;
    char address[2][64];
    struct peer peers[PEERS];
    uint8_t *memory; /* of the producer that got its memory last */
    struct pb_writer w;
    unsigned calls, fail_at; /* of the service's allocator; 0: none fails */
    bool for_good;           /* all fail from there on */
};

struct input {
    const uint8_t *p, *end;
};

static unsigned take(struct input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

static struct slice take_bytes(struct input *in, size_t n)
{
    size_t left = (size_t)(in->end - in->p);
    struct slice s = slice_of(in->p, n < left ? n : left);
    in->p += s.len;
    return s;
}

static void map_memory(struct world *w, int fd)
{
    void *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) {
        if (w->memory)
            munmap(w->memory, PAGES * PAGE);
        w->memory = p;
    }
    close(fd);
}

static bool gate(void *ctx, size_t size)
{
    struct world *w = ctx;
    (void)size;
    w->calls++;
    return w->calls < w->fail_at || (!w->for_good && w->calls > w->fail_at);
}

/* Lets the service work, and takes what it sends. */
static void turn(struct world *w)
{
    static uint8_t buf[1 << 17];
    if (w->fail_at)
        alloc_set_gate(gate, w);
    for (int i = 0; i < 3; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
    alloc_set_gate(NULL, NULL);
    for (int i = 0; i < PEERS; i++) {
        union {
            struct cmsghdr h;
            uint8_t bytes[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec v = {buf, sizeof buf};
        struct msghdr m = {
            .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        while (w->peers[i].fd >= 0 && recvmsg(w->peers[i].fd, &m, MSG_DONTWAIT) > 0) {
            struct cmsghdr *c = CMSG_FIRSTHDR(&m);
            if (c && c->cmsg_type == SCM_RIGHTS) {
                int fd;
                memcpy(&fd, CMSG_DATA(c), sizeof fd);
                map_memory(w, fd);
            }
            m.msg_controllen = sizeof control.bytes;
        }
    }
}

static void send_raw(struct world *w, unsigned peer, struct slice bytes)
{
    if (bytes.len)
        (void)!send(w->peers[peer].fd, bytes.p, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_frame(struct world *w, unsigned peer)
{
    uint8_t head[4] = {(uint8_t)w->w.n, (uint8_t)(w->w.n >> 8), (uint8_t)(w->w.n >> 16), (uint8_t)(w->w.n >> 24)};
    send_raw(w, peer, slice_of(head, 4));
    send_raw(w, peer, pb_written(&w->w));
    pb_writer_clear(&w->w);
}

/* A consumer must not make the service create files wherever the input says. */
static bool names_a_file(struct slice args)
{
    Mrd__EnableTracingRequest *m = mrd__enable_tracing_request__unpack(NULL, args.len, args.p);
    bool names = m && m->trace_config && m->trace_config->output_path;
    if (m)
        mrd__enable_tracing_request__free_unpacked(m, NULL);
    return names;
}

static void invoke(struct world *w, unsigned peer, unsigned method, struct slice args)
{
    if (peer == CONSUMER && method == CONSUMER_ENABLE_TRACING && names_a_file(args))
        return;
    ipc_put_invoke(&w->w, ++w->peers[peer].request, 1, method + 1, args, false);
    send_frame(w, peer);
}

static void join(struct world *w, unsigned peer)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *address = w->address[peer == CONSUMER];
    size_t n = strlen(address);
    struct peer *p = &w->peers[peer];
    *p = (struct peer){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    memcpy(a.sun_path + 1, address + 1, n - 1); /* abstract */
    if (connect(p->fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) != 0)
        abort();
    ipc_put_bind(&w->w, ++p->request, peer == CONSUMER ? "ConsumerPort" : "ProducerPort");
    send_frame(w, peer);
    if (peer == CONSUMER)
        return;
    invoke(w, peer, PRODUCER_INITIALIZE_CONNECTION, slice_str("\x10\x80\x80\4\x1a\1f\x20\1")); /* 64 KiB, scraping */
    invoke(w, peer, PRODUCER_GET_ASYNC_COMMAND, slice_of(NULL, 0));
    invoke(w, peer, PRODUCER_REGISTER_DATA_SOURCE, slice_str("\n\5\n\1f\x20\1"));
    turn(w);
}

static void leave(struct world *w, unsigned peer)
{
    close(w->peers[peer].fd);
    w->peers[peer].fd = -1;
    turn(w);
}

/* A chunk as a producer leaves it in its memory: page header, chunk header and bytes from the input. */
static void write_chunk(struct world *w, struct input *in, struct slice *commit)
{
    unsigned page = take(in) % (PAGES + 1), layout = take(in) % 8, index = take(in) % 15, writer = take(in) % 4;
    unsigned id = take(in) % 8, packets = take(in), flags = take(in) % 8, buffer = take(in) % 3;
    struct slice bytes = take_bytes(in, take(in) * 4u);
    unsigned n = shm_layout_chunks(layout << SHM_LAYOUT_SHIFT);
    if (w->memory && page < PAGES && n && index < n) {
        uint8_t *p = w->memory + page * PAGE;
        uint32_t size = shm_chunk_size(PAGE, n),
                 bitmap = layout << SHM_LAYOUT_SHIFT | (uint32_t)SHM_COMPLETE << 2 * index;
        uint16_t head[4] = {(uint16_t)id, 0, (uint16_t)writer, (uint16_t)(packets | flags << SHM_FLAGS_SHIFT)};
        memcpy(p, &bitmap, 4);
        p += SHM_PAGE_HEADER + index * size;
        memcpy(p, head, sizeof head);
        memcpy(p + sizeof head, bytes.p, bytes.len < size - 8 ? bytes.len : size - 8);
    }
    static uint8_t request[8];
    const uint8_t fields[] = {0x0a, 6, 8, (uint8_t)page, 0x10, (uint8_t)index, 0x18, (uint8_t)buffer};
    memcpy(request, fields, sizeof fields);
    *commit = slice_of(request, sizeof fields);
}

static void scribble(struct world *w, struct input *in)
{
    size_t at = (size_t)take(in) * 256 + take(in);
    struct slice bytes = take_bytes(in, take(in) % 64);
    if (w->memory && at + bytes.len <= PAGES * PAGE && bytes.len)
        memcpy(w->memory + at, bytes.p, bytes.len);
}

static void step(struct world *w, struct input *in)
{
    unsigned op = take(in), peer = op >> 4 & 1;
    struct slice args;
    switch (op % 8) {
    case 0:
    case 1:
        write_chunk(w, in, &args);
        invoke(w, peer, PRODUCER_COMMIT_DATA, args);
        break;
    case 2:
    case 3: {
        unsigned method = take(in) % (PRODUCER_METHOD_COUNT + 1);
        invoke(w, peer, method, take_bytes(in, take(in)));
        break;
    }
    case 4:
    case 5: {
        unsigned method = take(in) % (CONSUMER_METHOD_COUNT + 1);
        invoke(w, CONSUMER, method, take_bytes(in, take(in)));
        break;
    }
    case 6:
        scribble(w, in);
        return;
    case 7:
        if (op & 8) {
            peer = op >> 4 & 3;
            leave(w, peer % PEERS);
            join(w, peer % PEERS);
        } else {
            peer = take(in) % PEERS;
            send_raw(w, peer, take_bytes(in, take(in)));
        }
        break;
    }
    turn(w);
}

static struct world *open_world(void)
{
    static struct world w;
    struct error err = {0};
    struct service_options o = {.n_producer_sockets = 1};
    snprintf(w.address[0], sizeof w.address[0], "@meridian-fuzz-%d-producer", (int)getpid());
    snprintf(w.address[1], sizeof w.address[1], "@meridian-fuzz-%d-consumer", (int)getpid());
    o.producer_sockets[0] = w.address[0];
    o.consumer_socket = w.address[1];
    uv_loop_init(&w.loop);
    if (service_open(&w.service, &w.loop, &o, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return &w;
}

/* With memory again: a session, a producer, a packet. */
static void must_still_record(struct world *w)
{
    w->fail_at = 0;
    for (unsigned i = 0; i < PEERS; i++) {
        leave(w, i);
        join(w, i);
    }
    size_t before = w->service->sessions.n;
    invoke(w, CONSUMER, CONSUMER_ENABLE_TRACING, slice_str("\n\x11\n\2\b\4\n\4\b\4\x20\2\x12\5\n\3\n\1f"));
    turn(w);
    if (w->service->producers.n != PRODUCERS || w->service->sessions.n != before + 1 ||
        w->service->sessions.p[before]->instances.n != PRODUCERS)
        abort();
}

/* One program; returns how often the service asked for memory. */
static unsigned run(const uint8_t *data, size_t size, unsigned fail_at, bool for_good)
{
    struct input in = {data, data + size};
    struct world *w = open_world();
    w->fail_at = fail_at;
    w->for_good = for_good;
    for (unsigned i = 0; i < PEERS; i++)
        join(w, i);
    /* one ring and one buffer that discards, 4 KiB each, for data source "f" */
    invoke(w, CONSUMER, CONSUMER_ENABLE_TRACING, slice_str("\n\x11\n\2\b\4\n\4\b\4\x20\2\x12\5\n\3\n\1f"));
    turn(w);
    while (in.p < in.end)
        step(w, &in);
    invoke(w, CONSUMER, CONSUMER_DISABLE_TRACING, slice_of(NULL, 0));
    invoke(w, CONSUMER, CONSUMER_READ_BUFFERS, slice_of(NULL, 0));
    turn(w);
    unsigned calls = w->calls;
    if (fail_at)
        must_still_record(w);
    for (unsigned i = 0; i < PEERS; i++)
        leave(w, i);
    service_close(w->service);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&w->loop) != 0)
        abort(); /* something was left behind */
    if (w->memory)
        munmap(w->memory, PAGES * PAGE);
    pb_writer_free(&w->w);
    memset(w, 0, sizeof *w);
    return calls;
}

#ifdef WITHOUT_MEMORY
#ifdef MERIDIAN_FUZZ
enum { FEW = 4 };
#else
enum { FEW = 0 };
#endif

/* As a test, most calls fail, each once; in a campaign a few of them, which the input's sum chooses: that runs ten
 * times as many inputs. */
static void run_without_memory(const uint8_t *data, size_t size)
{
    const unsigned calls = run(data, size, UINT_MAX, false), apart = FEW ? calls / FEW + 1 : 0;
    for (unsigned k = apart ? 1 + fuzz_sum(data, size) % apart : 1; k <= calls; k += apart ? apart : 1 + k / 16)
        run(data, size, k, k % 2);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
#ifdef WITHOUT_MEMORY
    run_without_memory(data, size);
#else
    run(data, size, 0, false);
#endif
    return 0;
}
