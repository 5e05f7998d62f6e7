/* A program whose waits are known: its main thread sleeps, waits for a pipe and for a lock, for times that it
 * measures.
 *
 *   waits SECONDS
 *
 * At the end it prints a line for each wait: its kind as linux.off_cpu calls it, when it began and when it was over, in
 * ns of the boot clock. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WAITS = 4096 };

static struct wait {
    const char *kind;
    int64_t begin, end;
} waits[MAX_WAITS];
static int n_waits;

static int question[2], answer[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void rest(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* 'p': answers after a while. 'l': answers at once, with the lock, which it keeps for a while. */
static void *partner(void *unused)
{
    char c;
    while (read(question[0], &c, 1) == 1) {
        if (c == 'l')
            pthread_mutex_lock(&lock);
        else
            rest(14);
        if (write(answer[1], &c, 1) != 1)
            break;
        if (c == 'l') {
            rest(8);
            pthread_mutex_unlock(&lock);
        }
    }
    return unused;
}

static void ask(char c)
{
    if (write(question[1], &c, 1) != 1 || read(answer[0], &c, 1) != 1)
        exit(1);
}

static int64_t note(const char *kind, int64_t begin)
{
    int64_t end = now_ns();
    if (n_waits < MAX_WAITS)
        waits[n_waits++] = (struct wait){kind, begin, end};
    return end;
}

int main(int argc, char **argv)
{
    int64_t at = now_ns(), end = at + (argc > 1 ? atoi(argv[1]) : 1) * INT64_C(1000000000);
    pthread_t thread;
    if (pipe(question) || pipe(answer) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    while ((at = now_ns()) < end) {
        rest(25);
        at = note("sleep", at);
        ask('p');
        ask('l');
        at = note("pipe", at);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        note("futex", at);
    }
    for (const struct wait *w = waits; w < waits + n_waits; w++)
        printf("wait %s %lld %lld\n", w->kind, (long long)w->begin, (long long)w->end);
    return 0;
}
