/* Finds the daemon, and maps what it gives. */
#include "capture/heap/client/heap_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 2000, HIGH_FD = 900 };
enum { LOOK_BYTES = 1 << 16, LOOK_FIRST_MS = 500, LOOK_MOST_MS = 8000 };

struct heap_state *_Atomic heap_state;
bool heap_begun;

/* What is not in the mapping that a fork empties: a child unmaps what its parent had mapped. */
static struct {
    _Atomic int begun;
    _Atomic int looking;
    _Atomic bool over; /* there is no use in looking again */
    uint64_t look_after_ms;
    _Atomic uint64_t look_ms; /* not before */
    int seccomp;              /* at the beginning: PR_GET_SECCOMP */
    struct sockaddr_un address;
    socklen_t address_len;
    uint8_t *data; /* of the last ring: twice its bytes */
    void *header;
    const void *control;
    uint64_t ring_bytes;
} own;

/* ---- the socket ---- */

static bool find_address(void)
{
    const char *name = getenv(HEAP_SOCKET_ENV);
    if (!name || !*name)
        name = HEAP_SOCKET_PLACE;
    size_t len = strlen(name);
    if (len >= sizeof own.address.sun_path)
        return false;
    own.address.sun_family = AF_UNIX;
    memcpy(own.address.sun_path, name, len + 1);
    own.address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    if (name[0] == '@') {
        own.address.sun_path[0] = 0;
        own.address_len--;
    }
    return true;
}

/* Far from the numbers that programs count on. */
static int move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* The daemon is to be ours, or root's: it will see what this process has on its stacks. */
static bool trusted(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

/* *absent: there is nobody yet. Whoever does not answer, or is not to be trusted, is not asked again. */
static int connect_daemon(bool *absent)
{
    struct timeval limit = {ANSWER_MS / 1000, ANSWER_MS % 1000 * 1000};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    bool there = connect(fd, (const struct sockaddr *)&own.address, own.address_len) == 0;
    *absent = !there && (errno == ENOENT || errno == ECONNREFUSED);
    if (!there || !trusted(fd)) {
        close(fd);
        return -1;
    }
    return move_up(fd);
}

static void close_fds(int *fds)
{
    for (int i = 0; i < HEAP_HELLO_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

/* Takes a hello and its descriptors: how many there are. */
static int receive(int socket, int flags, struct heap_hello *hello, int *fds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(HEAP_HELLO_FDS * sizeof(int))];
    } control;
    struct iovec part = {hello, sizeof *hello};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    fds[0] = fds[1] = -1;
    if (recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *hello)
        return 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int n = 0;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(2 * sizeof *fds))
        n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof *fds);
    memcpy(fds, CMSG_DATA(&control.head), (size_t)n * sizeof *fds);
    if (hello->magic == HEAP_MAGIC && hello->version == HEAP_VERSION)
        return n;
    close_fds(fds);
    return 0;
}

/* The program may have closed our socket, and have a file of its own under the number. */
static bool still_ours(const struct heap_state *s)
{
    struct stat st;
    return fstat(s->socket, &st) == 0 && st.st_dev == s->socket_device && st.st_ino == s->socket_inode;
}

bool heap_is_orphan(const struct heap_state *s)
{
    struct pollfd p = {.fd = s->socket, .events = 0};
    return still_ours(s) && poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* ---- what it gives ---- */

/* The data twice, one behind the other. */
static uint8_t *map_data(int fd, uint64_t bytes)
{
    uint8_t *at = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    for (unsigned i = 0; i < 2; i++)
        if (mmap(at + i * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, HEAP_HEADER_BYTES) ==
            MAP_FAILED) {
            munmap(at, 2 * bytes);
            return NULL;
        }
    return at;
}

static void map_ring(struct heap_state *s, const struct heap_hello *hello, int fd)
{
    void *header = MAP_FAILED;
    if (hello->ring_bytes >= HEAP_RING_MIN && hello->ring_bytes <= HEAP_RING_MAX &&
        !(hello->ring_bytes & (hello->ring_bytes - 1)))
        header = mmap(NULL, HEAP_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (header != MAP_FAILED && (s->data = map_data(fd, hello->ring_bytes)) != NULL) {
        s->ring_bytes = own.ring_bytes = hello->ring_bytes;
        own.data = s->data;
        own.header = header;
        atomic_store_explicit(&s->ring, header, memory_order_release);
    }
    if (!s->ring) /* no memory, or no room for it: that is all that is said */
        send(s->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    atomic_store(&s->ring_link, s->ring ? HEAP_LINKED : HEAP_GIVEN_UP);
}

bool heap_map_ring(struct heap_state *s)
{
    struct heap_hello hello;
    int expected = HEAP_UNLINKED, fds[HEAP_HELLO_FDS] = {-1, -1};
    if (!atomic_compare_exchange_strong(&s->ring_link, &expected, HEAP_LINKING))
        return s->ring != NULL;
    if (still_ours(s) && receive(s->socket, MSG_DONTWAIT, &hello, fds) == 1)
        map_ring(s, &hello, fds[0]);
    else
        atomic_store(&s->ring_link, HEAP_GIVEN_UP);
    close_fds(fds);
    return s->ring != NULL;
}

static bool map_first(struct heap_state *s)
{
    struct heap_hello hello;
    struct stat st;
    int fds[HEAP_HELLO_FDS], n = receive(s->socket, 0, &hello, fds);
    void *p = MAP_FAILED;
    if (n && fstat(s->socket, &st) == 0)
        p = mmap(NULL, HEAP_CONTROL_BYTES, PROT_READ, MAP_SHARED, fds[0], 0);
    if (p != MAP_FAILED) {
        s->socket_device = st.st_dev;
        s->socket_inode = st.st_ino;
        own.control = p;
        if (n == 2)
            map_ring(s, &hello, fds[1]);
        atomic_store_explicit(&s->control, p, memory_order_release);
    }
    close_fds(fds);
    return p != MAP_FAILED;
}

/* ---- beginnings ---- */

static bool link_up(struct heap_state *s)
{
    bool absent = false;
    s->socket = connect_daemon(&absent);
    bool good = s->socket >= 0 && map_first(s);
    if (s->socket >= 0 && !good)
        close(s->socket);
    atomic_store(&s->link, good ? HEAP_LINKED : HEAP_GIVEN_UP);
    return absent;
}

/* What the parent had is the parent's. Nobody else is here yet: a fork leaves one thread, and that one is not inside.
 */
static void drop_inherited(void)
{
    if (own.data)
        munmap(own.data, 2 * own.ring_bytes);
    if (own.header)
        munmap(own.header, HEAP_HEADER_BYTES);
    if (own.control)
        munmap((void *)(uintptr_t)own.control, HEAP_CONTROL_BYTES);
    own.data = NULL;
    own.header = NULL;
    own.control = NULL;
}

void heap_link_again(struct heap_state *s)
{
    int expected = HEAP_UNLINKED, kept = errno;
    if (!atomic_compare_exchange_strong(&s->link, &expected, HEAP_LINKING))
        return;
    heap_thread.inside = true;
    heap_thread.generation = 0;
    drop_inherited();
    link_up(s);
    heap_thread.inside = false;
    errno = kept;
}

/* The main thread's stack: from where the kernel put the environment (or, when it is elsewhere by now, the program's
 * name behind that) as far down as it may grow. */
static void find_main_stack(void)
{
    enum { PAGE = 4096 };
    struct rlimit limit = {.rlim_cur = 0};
    const uintptr_t most = (uintptr_t)1 << 30;
    uintptr_t name = (uintptr_t)getauxval(AT_EXECFN);
    if (!name || getrlimit(RLIMIT_STACK, &limit) != 0)
        return;
    uintptr_t depth = limit.rlim_cur < most ? (uintptr_t)limit.rlim_cur : most;
    heap_thread.high = (name | (PAGE - 1)) + 1;
    heap_thread.low = heap_thread.high > depth ? heap_thread.high - depth : 0;
    if ((uintptr_t)environ >= heap_thread.low && (uintptr_t)environ < heap_thread.high)
        heap_thread.high = (uintptr_t)environ;
}

static uint64_t now_ms(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Asks for the daemon, and says when to look again. */
static void look(void)
{
    bool absent = false;
    heap_thread.inside = true;
    struct heap_state *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s != MAP_FAILED && madvise(s, sizeof *s, MADV_WIPEONFORK) == 0) {
        atomic_store(&s->link, HEAP_LINKING);
        absent = link_up(s);
        if (s->link == HEAP_LINKED)
            atomic_store(&heap_state, s);
    }
    if (s != MAP_FAILED && heap_state != s)
        munmap(s, sizeof *s);
    own.look_after_ms = !own.look_after_ms                     ? LOOK_FIRST_MS
                        : own.look_after_ms < LOOK_MOST_MS / 2 ? own.look_after_ms * 2
                                                               : LOOK_MOST_MS;
    own.look_ms = now_ms() + own.look_after_ms;
    own.over = !absent;
    heap_thread.inside = false;
}

/* A program that has shut itself in since it began may be ended for a socket: it is left alone. */
static bool has_shut_itself_in(void)
{
    return prctl(PR_GET_SECCOMP) != own.seccomp;
}

void *heap_look(void *p)
{
    struct heap_thread *t = &heap_thread;
    int nobody = 0, kept = errno;
    t->left = own.over ? INT64_MAX : LOOK_BYTES;
    if (!heap_begun || own.over || t->inside || now_ms() < own.look_ms ||
        !atomic_compare_exchange_strong(&own.looking, &nobody, 1))
        return p;
    if (has_shut_itself_in())
        own.over = true;
    else if (!heap_state)
        look();
    own.looking = 0;
    errno = kept;
    return p;
}

/* The first allocation of a program comes before constructors have run, and before the environment is there. */
void heap_begin(void)
{
    int expected = 0, kept = errno;
    if (atomic_load_explicit(&own.begun, memory_order_relaxed) || !environ ||
        !atomic_compare_exchange_strong(&own.begun, &expected, 1))
        return;
    find_main_stack();
    own.seccomp = prctl(PR_GET_SECCOMP);
    if (find_address())
        look();
    else
        own.over = true;
    heap_begun = true;
    errno = kept;
}
