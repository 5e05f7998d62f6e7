/* A TCP request/response load between two machines, with a mark in each one's trace at every step.
 *
 *   calls server PORT            answers requests, until it is killed
 *   calls client HOST PORT SECS  asks one question after the other
 *
 * Marks (instants, through trace_marker): the client writes "call N asked" before it sends and "call N answered" after
 * the answer; the server writes "call N heard" on receipt and "call N replied" before it sends. In a merged trace with
 * a right clock the four come in the order asked, heard, replied, answered. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int marker = -1;

static void mark(uint32_t call, const char *what)
{
    char text[64];
    int n = snprintf(text, sizeof text, "I|%d|call %u %s\n", (int)getpid(), call, what);
    (void)!write(marker, text, (size_t)n); /* fails while nobody records */
}

static int server(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, 1) != 0)
        return perror("calls: listen"), 1;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        uint32_t call;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (recv(fd, &call, sizeof call, MSG_WAITALL) == sizeof call) {
            mark(call, "heard");
            mark(call, "replied");
            if (send(fd, &call, sizeof call, MSG_NOSIGNAL) != sizeof call)
                break;
        }
        close(fd);
    }
}

static int client(const char *host, uint16_t port, int seconds)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(host)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        return perror("calls: connect"), 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    time_t end = time(NULL) + seconds;
    for (uint32_t call = 0, answer; time(NULL) < end; call++) {
        mark(call, "asked");
        if (send(fd, &call, sizeof call, 0) != sizeof call ||
            recv(fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer)
            return perror("calls: connection"), 1;
        mark(call, "answered");
        usleep(5000);
    }
    return 0;
}

int main(int argc, char **argv)
{
    marker = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
    if (marker < 0)
        return perror("trace_marker"), 1;
    if (argc == 3 && strcmp(argv[1], "server") == 0)
        return server((uint16_t)atoi(argv[2]));
    if (argc == 5 && strcmp(argv[1], "client") == 0)
        return client(argv[2], (uint16_t)atoi(argv[3]), atoi(argv[4]));
    fprintf(stderr, "usage: calls server PORT | calls client HOST PORT SECONDS\n");
    return 1;
}
