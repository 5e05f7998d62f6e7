/* What `tracebox heapprofd` and the library in a profiled process share: a page that the daemon writes, a ring that the
 * process writes, and how they meet.
 *
 * The library connects to a unix socket, and waits. The daemon answers with a struct heap_hello and the descriptor of a
 * struct heap_control; when it samples the process from the beginning, with that of a ring as well. Else the ring comes
 * with another hello, before the control's generation is made odd for the first time. Nothing else goes over the
 * socket.
 *
 * The ring is written by all threads of the process and read by the daemon. Positions count bytes from the beginning of
 * time. A writer moves `head` to reserve a record, writes its size, the record, and then the size again with a flag;
 * the reader fills what it has read with zeros and moves `tail`. Both map the data twice, one behind the other, so that
 * a record is always in one piece. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_ABI_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_ABI_H

#include <stdatomic.h>
#include <stdint.h>

/* Where they meet: the environment variable, or the usual place. */
#define HEAP_SOCKET_ENV   "MERIDIAN_HEAP_SOCK_NAME"
#define HEAP_SOCKET_PLACE "/run/perfetto/meridian-heap.sock"
#define HEAP_LIBRARY      "libmeridian_heap.so"

enum { HEAP_MAGIC = 0x5041454d, HEAP_VERSION = 1 };

struct heap_hello {
    uint32_t magic, version;
    uint64_t ring_bytes; /* of the ring that comes along, as the last descriptor: a power of two; 0: none does */
};
enum { HEAP_HELLO_FDS = 2 };

enum { HEAP_CONTROL_BYTES = 4096 };

struct heap_control {
    _Atomic uint32_t generation; /* odd: sample. Another one: what follows has changed */
    uint32_t block;              /* wait for room in the ring … */
    uint64_t block_us;           /* … so long at most */
    uint64_t interval;           /* bytes from one sample to the next, in the mean; at least 1 */
};

enum {
    HEAP_HEADER_BYTES = 1 << 16, /* in front of the data: a whole page everywhere */
    HEAP_RING_MIN = 1 << 17,
    HEAP_RING_MAX = 1 << 29,
    HEAP_STACK_MAX = 1 << 18 /* of one sample */
};

/* The start of the ring's memory. Each on a cache line of its own, as different sides write them. */
struct heap_ring_header {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) _Atomic uint64_t lost_samples; /* there was no room for them */
    _Atomic uint64_t lost_frees;
    _Atomic uint64_t blocked_us; /* that threads have waited for room */
    _Atomic uint32_t timed_out;  /* one waited for too long; nothing is sampled any more */
};

/* Flags beside the size of a record, which is a multiple of 8. */
enum { HEAP_WRITTEN = 1, HEAP_VOID = 2 }; /* void: reserved for nothing */

enum heap_kind { HEAP_ALLOCATED = 1, HEAP_FREED = 2 };

/* The start of each record. */
struct heap_head {
    _Atomic uint64_t size; /* and flags; 0: not there yet */
    uint32_t kind;
    uint32_t generation;
    uint64_t address;
};

/* Registers by the numbers of perf_event_open(), as many as perf_arch_regs has; those that a function need not keep are
 * zeros. */
#if defined(__x86_64__)
enum { HEAP_REGS = 20 };
#elif defined(__aarch64__)
enum { HEAP_REGS = 33 };
#else
enum { HEAP_REGS = 0 };
#endif

struct heap_sample {
    struct heap_head head;
    uint64_t weight;      /* bytes that it stands for */
    uint64_t stack_bytes; /* behind the registers, from the stack pointer on */
    uint64_t regs[HEAP_REGS];
};

/* Allocations leave so much of the ring to frees: what was sampled is told to be free even when the ring is full. */
#define HEAP_ROOM_FOR_SAMPLES(bytes) ((bytes) - (bytes) / 8)

#endif
