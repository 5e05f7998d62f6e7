/* The script at the far end, and the conversation with it. */
#include "capture/record/ssh_machine.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_PATIENCE_MS = 10000 }; /* for all of them together */

/* POSIX shell, also that of busybox. Set before it: d (a directory of its own), name, copy (1: always), perf (1: with
 * traced_perf), size (of the binary, 0: none), and relay (where the relay connects to; ":PORT": to where the ssh
 * connection comes from). It says "copy" and expects `size` bytes, "ready", or "failed WHY". */
static const char script[] =
    "umask 077\n"
    "pids=\n"
    "clean() { trap '' EXIT HUP INT TERM PIPE; [ -z \"$pids\" ] || kill $pids 2>/dev/null; wait; rm -rf \"$d\" "
    "\"$d.sock\"; }\n"
    "trap clean EXIT; trap 'exit 1' HUP INT TERM PIPE\n"
    "fail() { echo \"failed $*\"; exit 1; }\n"
    "mkdir \"$d\" || fail \"$d cannot be made\"\n"
    "t=$(command -v tracebox)\n"
    "if [ -z \"$t\" ] || [ \"$copy\" = 1 ]; then\n"
    "  [ \"$size\" != 0 ] || fail 'there is no tracebox'\n"
    "  echo copy; t=$d/tracebox\n"
    "  head -c \"$size\" >\"$t\" && chmod 700 \"$t\" || fail 'the copy of tracebox cannot be written'\n"
    "  \"$t\" --version >/dev/null 2>&1 || fail \"the copy of tracebox does not run ($(uname -m))\"\n"
    "fi\n"
    "case $relay in :*) a=${SSH_CONNECTION%% *}; case $a in *:*) a=\"[$a]\";; esac; relay=$a$relay;; esac\n"
    "export PERFETTO_PRODUCER_SOCK_NAME=\"$d/producer\" PERFETTO_RELAY_SOCK_NAME=\"$relay\" "
    "PERFETTO_MACHINE_NAME=\"$name\"\n"
    "\"$t\" traced_relay >\"$d/log\" 2>&1 & relay_pid=$!; pids=$relay_pid\n"
    "i=0; while [ ! -S \"$d/producer\" ]; do\n"
    "  i=$((i + 1)); kill -0 $relay_pid 2>/dev/null && [ $i -lt 100 ] || fail \"traced_relay: $(tail -n 1 "
    "\"$d/log\")\"\n"
    "  sleep 0.1\n"
    "done\n"
    "\"$t\" traced_probes >>\"$d/log\" 2>&1 & pids=\"$pids $!\"\n"
    "[ \"$perf\" != 1 ] || { \"$t\" traced_perf >>\"$d/log\" 2>&1 & pids=\"$pids $!\"; }\n"
    "echo ready\n"
    "cat >/dev/null\n";

static void machine_name_of(const char *target, char *name, size_t size)
{
    const char *host = strrchr(target, '@');
    snprintf(name, size, "%s", host ? host + 1 : target);
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-:", *p))
            *p = '_';
}

/* The words of a command, in place. */
static unsigned split(char *words, char **argv, unsigned max)
{
    unsigned n = 0;
    for (char *save = NULL, *w = strtok_r(words, " ", &save); w && n < max; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    return n;
}

int remote_start(struct remote *r, const char *target, const struct remote_options *o, struct error *err)
{
    char words[1024], dir[128], forward[300], command[sizeof script * 2 + 1024], *argv[48];
    struct stat st = {0};
    *r = (struct remote){.target = target, .ssh = {.in = -1, .out = -1}, .binary_fd = -1, .binary = o->binary};
    machine_name_of(target, r->name, sizeof r->name);
    if (o->binary && stat(o->binary, &st) != 0)
        return error_set_errno(err, errno, "%s", o->binary);
    snprintf(words, sizeof words, "%s", o->ssh ? o->ssh : "ssh");
    unsigned n = split(words, argv, 32);
    snprintf(dir, sizeof dir, "/tmp/tracebox-record-%s", o->scratch);
    static const char *const options[] = {"-o", "BatchMode=yes",         "-o", "ExitOnForwardFailure=yes",
                                          "-o", "ServerAliveInterval=5", "-T"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        argv[n++] = (char *)(uintptr_t)options[i];
    if (o->relay_to) {
        snprintf(forward, sizeof forward, "%s.sock:%s", dir, o->relay_to);
        argv[n++] = (char *)(uintptr_t) "-R"; /* a string, not a compound literal: it must outlive this block */
        argv[n++] = forward;
    }
    /* The login shell sees one word in single quotes, with newlines in it: any but csh takes that. */
    int len = snprintf(command, sizeof command, "exec sh -c 'd=%s name=%s copy=%d perf=%d size=%lld relay=", dir,
                       r->name, o->always_copy, o->perf, (long long)st.st_size);
    len += o->relay_to ? snprintf(command + len, sizeof command - (size_t)len, "%s.sock\n", dir)
                       : snprintf(command + len, sizeof command - (size_t)len, ":%u\n", o->direct_port);
    for (const char *p = script; *p; p++)
        len += snprintf(command + len, sizeof command - (size_t)len, *p == '\'' ? "'\\''" : "%c", *p);
    snprintf(command + len, sizeof command - (size_t)len, "'");
    argv[n++] = (char *)(uintptr_t)target;
    argv[n++] = command;
    argv[n] = NULL;
    return child_start(&r->ssh, &(struct child_options){.argv = argv, .pipes = true}, err);
}

static void fail(struct remote *r, const char *why)
{
    if (r->state == REMOTE_FAILED)
        return;
    r->state = REMOTE_FAILED;
    snprintf(r->why, sizeof r->why, "%s", why);
}

static void on_line(struct remote *r, const char *line)
{
    if (strcmp(line, "ready") == 0) {
        r->state = REMOTE_READY;
    } else if (strcmp(line, "copy") == 0 && r->state == REMOTE_STARTING && r->binary) {
        r->binary_fd = open(r->binary, O_RDONLY | O_CLOEXEC);
        r->state = REMOTE_COPYING;
        if (r->binary_fd < 0)
            fail(r, strerror(errno));
    } else if (strncmp(line, "failed ", 7) == 0) {
        fail(r, line + 7);
    }
}

static void read_lines(struct remote *r)
{
    char buf[512];
    ssize_t got = read(r->ssh.out, buf, sizeof buf);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fail(r, r->state == REMOTE_READY ? "the ssh connection broke" : "the ssh connection failed");
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        if (buf[i] != '\n' && r->line_len < sizeof r->line - 1) {
            r->line[r->line_len++] = buf[i];
        } else if (buf[i] == '\n') {
            r->line[r->line_len] = 0;
            r->line_len = 0;
            on_line(r, r->line);
        }
    }
}

static void feed(struct remote *r)
{
    if (r->block_sent == r->block_len) {
        ssize_t got = read(r->binary_fd, r->block, sizeof r->block);
        if (got <= 0) { /* all of it is under way: "ready" comes next */
            close(r->binary_fd);
            r->binary_fd = -1;
            return;
        }
        r->block_len = (size_t)got;
        r->block_sent = 0;
    }
    ssize_t put = write(r->ssh.in, r->block + r->block_sent, r->block_len - r->block_sent);
    if (put > 0)
        r->block_sent += (size_t)put;
    else if (errno != EAGAIN && errno != EINTR)
        fail(r, "the ssh connection broke while tracebox was copied");
}

void remotes_step(struct remote *r, unsigned n, int timeout_ms)
{
    struct pollfd fds[2 * REMOTES_MAX];
    unsigned k = 0;
    for (unsigned i = 0; i < n; i++) {
        bool gone = r[i].state == REMOTE_FAILED;
        fds[k++] = (struct pollfd){.fd = gone ? -1 : r[i].ssh.out, .events = POLLIN};
        fds[k++] = (struct pollfd){.fd = gone || r[i].binary_fd < 0 ? -1 : r[i].ssh.in, .events = POLLOUT};
    }
    if (poll(fds, k, timeout_ms) <= 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        if (fds[2 * i + 1].revents)
            feed(&r[i]);
        if (fds[2 * i].revents)
            read_lines(&r[i]);
    }
}

void remotes_stop(struct remote *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) { /* the end of its input ends the script, and the script ends ssh */
        if (r[i].ssh.in >= 0)
            close(r[i].ssh.in);
        if (r[i].binary_fd >= 0)
            close(r[i].binary_fd);
        r[i].ssh.in = r[i].binary_fd = -1;
    }
    unsigned running = n;
    for (unsigned ms = 0; running && ms < STOP_PATIENCE_MS; ms += 10) {
        running = 0;
        for (unsigned i = 0; i < n; i++)
            running += !child_ended(&r[i].ssh, NULL);
        if (running)
            usleep(10000);
    }
    for (unsigned i = 0; i < n; i++)
        child_stop(&r[i].ssh, SIGTERM, 100);
}
