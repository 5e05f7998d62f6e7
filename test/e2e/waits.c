/* A program whose waits are known: its main thread sleeps, waits for a pipe and for two locks, for times that it
 * measures.
 *
 *   waits SECONDS
 *
 * At the end it prints a line for each wait: its kind as linux.off_cpu calls it, when it began and when it was over, in
 * ns of the boot clock; and for each lock its address, and how many ns were spent on it. */
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
static struct lock {
    pthread_mutex_t mutex;
    int held_ms;
    int64_t waited;
} locks[] = {{PTHREAD_MUTEX_INITIALIZER, 9, 0}, {PTHREAD_MUTEX_INITIALIZER, 4, 0}};
enum { LOCKS = sizeof locks / sizeof *locks };

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

/* 'p': answers after a while. The number of a lock: answers at once, with the lock, which it keeps for a while. */
static void *partner(void *unused)
{
    char c;
    while (read(question[0], &c, 1) == 1) {
        struct lock *l = c < LOCKS ? &locks[(int)c] : NULL;
        if (l)
            pthread_mutex_lock(&l->mutex);
        else
            rest(14);
        if (write(answer[1], &c, 1) != 1)
            break;
        if (l) {
            rest(l->held_ms);
            pthread_mutex_unlock(&l->mutex);
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
    int turn = 0;
    pthread_t thread;
    if (pipe(question) || pipe(answer) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    while ((at = now_ns()) < end) {
        rest(25);
        at = note("sleep", at);
        ask('p');
        ask((char)turn);
        at = note("pipe", at);
        pthread_mutex_lock(&locks[turn].mutex);
        pthread_mutex_unlock(&locks[turn].mutex);
        locks[turn].waited += note("futex", at) - at;
        turn = (turn + 1) % LOCKS;
    }
    for (const struct wait *w = waits; w < waits + n_waits; w++)
        printf("wait %s %lld %lld\n", w->kind, (long long)w->begin, (long long)w->end);
    for (const struct lock *l = locks; l < locks + LOCKS; l++)
        printf("lock %p %lld\n", (const void *)l, (long long)l->waited);
    return 0;
}
