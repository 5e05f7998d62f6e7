/* What SQLite may hold in memory: its allocator, with a limit.
 *
 * SQLite has a limit of its own, which takes a lock at each allocation: queries were 5 % slower with it (measured).
 * This one adds to a counter, and refuses what would pass the limit: the statement fails with "out of memory", the rest
 * goes on. */
#include "sql/engine/heap.h"

#include "base/alloc.h"
#include "base/memory_limit.h"

#include <sqlite3.h>
#include <stdatomic.h>

static sqlite3_mem_methods inner; /* SQLite's own; set once, before SQLite starts */
static atomic_llong held;
static atomic_llong limit;
static atomic_bool gated;

/* In the shared library, too, reached without a call. */
static _Thread_local struct compile_heap *compiling __attribute__((tls_model("initial-exec")));

void compile_heap_begin(struct compile_heap *c, stop_flag *stop)
{
    *c = (struct compile_heap){.outer = compiling, .stop = stop};
    compiling = c;
}

void compile_heap_end(struct compile_heap *c)
{
    compiling = c->outer;
    if (c->outer)
        c->outer->held += c->held;
}

/* Notes bytes that were taken or given back; all that are held then. */
static inline long long note(int64_t bytes)
{
    if (__builtin_expect(compiling != NULL, 0))
        compiling->held += bytes;
    return atomic_fetch_add_explicit(&held, bytes, memory_order_relaxed) + bytes;
}

static bool may_compile(struct compile_heap *c, int64_t bytes)
{
    c->stopped |= stop_asked(c->stop);
    c->full |= c->held + bytes > COMPILE_MAX_BYTES;
    return !c->stopped && !c->full;
}

static bool may_take(int64_t bytes)
{
    if (__builtin_expect(compiling != NULL, 0) && !may_compile(compiling, bytes))
        return false;
    if (__builtin_expect(atomic_load_explicit(&gated, memory_order_relaxed), 0) && !alloc_allowed((size_t)bytes))
        return false;
    if (note(bytes) <= atomic_load_explicit(&limit, memory_order_relaxed))
        return true;
    note(-bytes);
    return false;
}

/* Passes on that there was no memory. */
static void *none(void)
{
    for (struct compile_heap *c = compiling; c; c = c->outer)
        c->failed = true;
    return NULL;
}

static void *heap_malloc(int bytes)
{
    int size = inner.xRoundup(bytes);
    if (!may_take(size))
        return none();
    void *p = inner.xMalloc(bytes);
    note((p ? inner.xSize(p) : 0) - size);
    return p ? p : none();
}

static void heap_free(void *p)
{
    if (p)
        note(-inner.xSize(p));
    inner.xFree(p);
}

static void *heap_realloc(void *p, int bytes)
{
    int before = p ? inner.xSize(p) : 0, grow = inner.xRoundup(bytes) - before;
    if (grow > 0 && !may_take(grow))
        return none();
    void *q = inner.xRealloc(p, bytes);
    int taken = grow > 0 ? grow : 0, real = q ? inner.xSize(q) - before : 0;
    note(real - taken);
    return q ? q : none();
}

bool sql_heap_take(int64_t bytes)
{
    return may_take(bytes) || none();
}

bool sql_heap_take_half(int64_t bytes)
{
    int64_t half = atomic_load_explicit(&limit, memory_order_relaxed) / 2;
    return sql_heap_held() + bytes <= half && sql_heap_take(bytes);
}

void sql_heap_give(int64_t bytes)
{
    note(-bytes);
}

void sql_heap_limit(int64_t bytes)
{
    atomic_store_explicit(&limit, bytes, memory_order_relaxed);
}

void sql_heap_set_gated(bool on)
{
    atomic_store_explicit(&gated, on, memory_order_relaxed);
}

int64_t sql_heap_held(void)
{
    return atomic_load_explicit(&held, memory_order_relaxed);
}

void sql_heap_install(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun) || sqlite3_config(SQLITE_CONFIG_GETMALLOC, &inner) != SQLITE_OK ||
        !inner.xMalloc)
        return; /* installed already, or SQLite runs in this process for somebody else */
    sqlite3_mem_methods ours = inner;
    ours.xMalloc = heap_malloc;
    ours.xFree = heap_free;
    ours.xRealloc = heap_realloc;
    sql_heap_limit((int64_t)(memory_of_machine() / 2));
    sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* its counts would take a lock */
}
