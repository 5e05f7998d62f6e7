/* Allocates what a heap profile must find: functions with fixed shares, of which a fixed part is freed, in the main
 * thread, in threads, in the child of a fork, by each function of the allocator.
 *
 * heap_truth MODE [N]: prints what it has done as lines "FUNCTION ALLOCATED KEPT", in bytes. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

enum { BLOCKS = 20000, THREADS = 4, DEEP = 200 };

static void *volatile sink; /* nothing of it is optimised away */

static void use(void *p)
{
    sink = p;
}

static void tell(const char *name, size_t allocated, size_t kept)
{
    printf("%s %zu %zu\n", name, allocated, kept);
    fflush(stdout);
}

/* ---- shares ---- */

FUNCTION static void keeps_all(void)
{
    for (int i = 0; i < BLOCKS; i++)
        use(malloc(600));
    use(NULL);
}

FUNCTION static void keeps_half(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *p = malloc(400);
        use(p);
        if (i % 2)
            free(p);
    }
}

FUNCTION static void keeps_none(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *p = calloc(10, 80);
        use(p);
        free(p);
    }
}

/* One allocation that is larger than any interval. */
FUNCTION static void keeps_large(void)
{
    use(malloc(10000000));
    use(NULL);
}

static void shares(void)
{
    keeps_all();
    tell("keeps_all", BLOCKS * 600ul, BLOCKS * 600ul);
    keeps_half();
    tell("keeps_half", BLOCKS * 400ul, BLOCKS / 2 * 400ul);
    keeps_none();
    tell("keeps_none", BLOCKS * 800ul, 0);
    keeps_large();
    tell("keeps_large", 10000000, 10000000);
}

/* ---- each function of the allocator ---- */

FUNCTION static void grows(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *p = realloc(NULL, 200);
        use(p);
        use(realloc(p, 700));
    }
    use(NULL);
}

FUNCTION static void cannot_grow(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *p = malloc(500);
        use(p);
        if (realloc(p, (size_t)1 << 62))
            abort();
    }
}

FUNCTION static void aligned(void)
{
    for (int i = 0; i < BLOCKS / 4; i++) {
        void *p = NULL;
        use(aligned_alloc(64, 512));
        use(memalign(32, 512));
        if (posix_memalign(&p, 128, 512) != 0)
            abort();
        use(p);
        use(reallocarray(NULL, 64, 8));
    }
    use(NULL);
}

FUNCTION static void pages(void)
{
    for (int i = 0; i < BLOCKS / 40; i++) {
        use(valloc(4000));
        use(pvalloc(4096));
    }
    use(NULL);
}

static void functions(void)
{
    grows();
    tell("grows", BLOCKS * 900ul, BLOCKS * 700ul);
    cannot_grow();
    tell("cannot_grow", BLOCKS * 500ul, BLOCKS * 500ul);
    aligned();
    tell("aligned", BLOCKS / 4 * 2048ul, BLOCKS / 4 * 2048ul);
    pages();
    tell("pages", BLOCKS / 40 * 8096ul, BLOCKS / 40 * 8096ul);
}

/* ---- threads ---- */

static void *handed[THREADS][BLOCKS];

FUNCTION static void of_thread(int t)
{
    for (int i = 0; i < BLOCKS; i++) {
        handed[t][i] = malloc(300);
        use(handed[t][i]);
    }
}

static void *run_thread(void *arg)
{
    of_thread((int)(intptr_t)arg);
    return NULL;
}

/* What one thread has allocated another one frees. */
static void *free_thread(void *arg)
{
    int t = (int)(intptr_t)arg;
    for (int i = 0; i < BLOCKS; i += 4)
        free(handed[t][i]);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < THREADS; t++)
            if (pthread_create(&thread[t], NULL, pass ? free_thread : run_thread, (void *)(intptr_t)t) != 0)
                abort();
        for (int t = 0; t < THREADS; t++)
            pthread_join(thread[t], NULL);
    }
    tell("of_thread", THREADS * BLOCKS * 300ul, THREADS * BLOCKS * 300ul / 4 * 3);
}

/* ---- forks ---- */

FUNCTION static void of_child(void)
{
    for (int i = 0; i < BLOCKS; i++)
        use(malloc(350));
    use(NULL);
}

/* The child frees what its parent has allocated: the parent has it still. */
static void forks(void)
{
    static void *of_parent[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        of_parent[i] = malloc(450);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < BLOCKS; i++)
            free(of_parent[i]);
        of_child();
        tell("of_child", BLOCKS * 350ul, BLOCKS * 350ul);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    tell("forks", BLOCKS * 450ul, BLOCKS * 450ul);
}

/* ---- stacks of other kinds ---- */

FUNCTION static void deep(int n)
{
    if (n)
        deep(n - 1);
    else
        for (int i = 0; i < BLOCKS; i++)
            use(malloc(250));
    use(NULL);
}

static ucontext_t back, there;

FUNCTION static void in_coroutine(void)
{
    for (int i = 0; i < BLOCKS; i++)
        use(malloc(550));
    use(NULL);
    swapcontext(&there, &back);
}

FUNCTION static void in_handler(int signum)
{
    (void)signum;
    for (int i = 0; i < BLOCKS / 100; i++)
        use(malloc(650));
    use(NULL);
}

static void stacks(void)
{
    static char coroutine[65536], handler[65536];
    stack_t other = {.ss_sp = handler, .ss_size = sizeof handler};
    deep(DEEP);
    tell("deep", BLOCKS * 250ul, BLOCKS * 250ul);
    getcontext(&there);
    there.uc_stack.ss_sp = coroutine;
    there.uc_stack.ss_size = sizeof coroutine;
    makecontext(&there, in_coroutine, 0);
    swapcontext(&back, &there);
    tell("in_coroutine", BLOCKS * 550ul, BLOCKS * 550ul);
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = in_handler, .sa_flags = SA_ONSTACK}, NULL);
    for (int i = 0; i < 100; i++)
        raise(SIGUSR1);
    tell("in_handler", BLOCKS * 650ul, BLOCKS * 650ul);
}

/* ---- for as long as it lives ---- */

/* `n` blocks of 1,000 bytes, each freed at once; the time of the processor that took, in milliseconds. */
FUNCTION static void loop(size_t n)
{
    struct timespec t[2];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t[0]);
    for (size_t i = 0; i < n; i++) {
        void *p = malloc(1000);
        use(p);
        free(p);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t[1]);
    printf("%.3f\n", (double)(t[1].tv_sec - t[0].tv_sec) * 1e3 + (double)(t[1].tv_nsec - t[0].tv_nsec) / 1e6);
}

/* Keeps what it has until it is killed. */
static void stays(void)
{
    keeps_all();
    tell("keeps_all", BLOCKS * 600ul, BLOCKS * 600ul);
    for (;;)
        pause();
}

/* Goes on allocating on a thousand different stacks until it is killed. */
FUNCTION static void right(unsigned bits, int depth);

FUNCTION static void left(unsigned bits, int depth)
{
    if (depth)
        (bits & 1 ? left : right)(bits >> 1, depth - 1);
    else
        use(malloc(900));
    use(NULL);
}

FUNCTION static void right(unsigned bits, int depth)
{
    left(bits, depth);
    use(NULL);
}

static void paths(void)
{
    for (;;) {
        for (unsigned i = 0; i < 1024; i++)
            left(i, 10);
        tell("left", 0, 0); /* nobody knows how much it will have been */
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

/* The same program again, which keeps something else. */
static char *self;
static void becomes(void)
{
    keeps_half();
    execl(self, self, "shares", (char *)NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*part)(void);
        void (*with)(size_t n);
    } modes[] = {{"shares", shares, NULL}, {"functions", functions, NULL}, {"threads", threads, NULL},
                 {"forks", forks, NULL},   {"stacks", stacks, NULL},       {"loop", NULL, loop},
                 {"stays", stays, NULL},   {"becomes", becomes, NULL},     {"paths", paths, NULL}};
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    self = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            if (modes[i].part)
                modes[i].part();
            else
                modes[i].with(n);
            return 0;
        }
    return 2;
}
