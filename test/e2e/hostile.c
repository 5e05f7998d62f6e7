/* Programs that make it hard to sample them.
 *
 *   hostile MODE SECONDS
 *
 * jit: prints where it has made code ("ADDRESS SIZE"), waits for a line, and runs the code.
 * maps: makes code, runs it and takes it away again, each time at the same place or at another one.
 * quick: children that live for some milliseconds.
 * frames: runs made code above a frame that is its own caller.
 * deep: runs below more frames than fit into the copy of a stack. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CODE_BYTES = 4096, TURNS = 300000 };

typedef void count_down(uint64_t n);

#if defined(__x86_64__)
static const uint8_t code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* dec %rdi; jnz .-3; ret */
#else
static const uint32_t code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0}; /* subs x0, x0, #1; b.ne .-4; ret */
#endif

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *make_code(void *at)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
    void *p = mmap(at, CODE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    memcpy(p, code, sizeof code);
    if (mprotect(p, CODE_BYTES, PROT_READ | PROT_EXEC))
        exit(1);
    __builtin___clear_cache(p, (char *)p + sizeof code);
    return p;
}

static void run(void *p)
{
    count_down *f;
    memcpy(&f, &p, sizeof f);
    f(TURNS);
}

static void jit(int64_t end)
{
    char line[16];
    void *p = make_code(NULL);
    int64_t seconds = end - now_ns();
    printf("%p %d\n", p, CODE_BYTES);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(1);
    for (end = now_ns() + seconds; now_ns() < end;)
        run(p);
}

static void maps(int64_t end)
{
    void *kept = NULL;
    for (unsigned i = 0; now_ns() < end; i++) {
        void *p = make_code(i % 2 ? kept : NULL);
        run(p);
        kept = i % 2 ? NULL : p;
        if (i % 2)
            munmap(p, CODE_BYTES);
    }
}

static void quick(int64_t end)
{
    while (now_ns() < end) {
        pid_t child = fork();
        if (child == 0) {
            int64_t until = now_ns() + 3000000;
            void *p = make_code(NULL);
            while (now_ns() < until)
                run(p);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

/* The frame pointer leads to a frame that it leads to. */
static void frames(int64_t end)
{
    void *p = make_code(NULL);
    while (now_ns() < end) {
#if defined(__x86_64__)
        uint64_t frame[4] __attribute__((aligned(16))) = {0};
        frame[0] = (uint64_t)(uintptr_t)frame;
        frame[1] = (uint64_t)(uintptr_t)p;
        uint64_t turns = TURNS;
        __asm__ volatile("push %%rbp; mov %1, %%rbp; call *%2; pop %%rbp"
                         : "+D"(turns)
                         : "a"(frame), "d"(p)
                         : "cc", "memory");
#else
        run(p);
#endif
    }
}

static __attribute__((noinline)) uint64_t deep(int n, int64_t end, volatile char *above)
{
    volatile char room[1024];
    room[0] = above ? above[0] : 1;
    if (n)
        return deep(n - 1, end, room) + (uint64_t)room[0];
    uint64_t turns = 0;
    while (now_ns() < end)
        turns++;
    return turns;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    int64_t end = now_ns() + (argc > 2 ? atoi(argv[2]) : 0) * INT64_C(1000000000);
    if (strcmp(mode, "jit") == 0)
        jit(end);
    else if (strcmp(mode, "maps") == 0)
        maps(end);
    else if (strcmp(mode, "quick") == 0)
        quick(end);
    else if (strcmp(mode, "frames") == 0)
        frames(end);
    else if (strcmp(mode, "deep") == 0)
        return deep(400, end, NULL) == 0;
    else
        return 2;
    return 0;
}
