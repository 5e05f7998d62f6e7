/* A program whose waits are known: its main thread sleeps, waits for a pipe and for a lock, for times that it
 * measures.
 *
 *   waits SECONDS
 *
 * At the end it prints a line for each kind of wait: its name as linux.off_cpu calls it, and how long one took on
 * average, in ms. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int question[2], answer[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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

int main(int argc, char **argv)
{
    int64_t slept = 0, piped = 0, locked = 0, rounds = 0,
            end = now_ns() + (argc > 1 ? atoi(argv[1]) : 1) * INT64_C(1000000000);
    pthread_t thread;
    if (pipe(question) || pipe(answer) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    while (now_ns() < end) {
        int64_t a = now_ns();
        rest(25);
        int64_t b = now_ns();
        ask('p');
        ask('l');
        int64_t c = now_ns();
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        slept += b - a;
        piped += c - b;
        locked += now_ns() - c;
        rounds++;
    }
    printf("sleep %.3f\npipe %.3f\nfutex %.3f\n", (double)slept / (double)rounds / 1e6,
           (double)piped / (double)rounds / 1e6, (double)locked / (double)rounds / 1e6);
    return 0;
}
