/* Adds recordings: hands files to workers, and keeps account of what became of each.
 *
 * A file is done (it counts, it was there, it cannot be imported), or it waits to be tried again: a server did not take
 * it, its worker ended before the commit, or it needs more memory than one of several workers has (then it gets all of
 * it, alone). Before a file is tried again, what the fleet has is read anew: the commit may have reached it. */
#include "base/clock.h"
#include "fleet/add_worker.h"
#include "fleet/facts.h"
#include "fleet/known.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum file_state { FILE_WAITS, FILE_GIVEN, FILE_TAKEN, FILE_OVER };

struct added_file {
    enum file_state state;
    bool alone; /* with all memory, while no other worker runs */
    unsigned tries;
    int64_t not_before_ns, first_failure_ns;
    uint64_t rows;
    char trace[FLEET_ID_SIZE], uuid[FLEET_ID_SIZE];
};

struct child {
    pid_t pid;
    int fd;
    bool alone;
    uint32_t file; /* being imported, or NO_FILE */
    VEC(uint32_t) taken;
};
#define NO_FILE UINT32_MAX

struct adding {
    struct fleet *f;
    const struct fleet_add *what;
    struct fleet_added *counts;
    struct fleet_files files;
    struct known known;
    VEC(struct added_file) state;
    VEC(struct child) children;
    size_t next; /* no file before it waits */
    unsigned jobs;
    uint64_t memory;
    char host[256];
    int64_t started_ns, shown_ns;
    size_t unsettled;
    bool reread; /* what the fleet has must be read anew before a file is given out */
    struct error fatal;
};

static int64_t now_ns(void)
{
    return clock_now_ns(CLOCK_MONOTONIC);
}

static bool is_stopped(const struct adding *a)
{
    return a->what->stopped && a->what->stopped(a->what->ctx);
}

static void tell(const struct adding *a, uint32_t file, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void tell(const struct adding *a, uint32_t file, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    int n = file == NO_FILE ? 0 : snprintf(text, sizeof text, "%.200s: ", a->files.list.p[file].path);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    if (a->what->tell)
        a->what->tell(a->what->ctx, text);
}

static void show(struct adding *a, bool always)
{
    int64_t now = now_ns();
    if (!a->what->progress || (!always && now - a->shown_ns < 200000000))
        return;
    a->shown_ns = now;
    struct fleet_progress p = {.files = a->files.list.n,
                               .added = a->counts->added,
                               .known = a->counts->known + a->counts->copies,
                               .failed = a->counts->failed,
                               .bytes = a->counts->bytes,
                               .seconds = (now - a->started_ns) / 1000000000};
    for (size_t i = a->next; i < a->state.n; i++)
        p.waiting += a->state.p[i].state == FILE_WAITS && a->state.p[i].tries > 0;
    a->what->progress(a->what->ctx, &p);
}

/* ---- what becomes of a file ---- */

static void record_error(struct adding *a, uint32_t file, const char *text)
{
    const struct fleet_file *f = &a->files.list.p[file];
    struct click_text line = {0}, sql = {0};
    struct error err = {0};
    size_t n;
    const struct fleet_node *nodes = fleet_shard_nodes(a->f, fleet_shard_of(a->f, a->state.p[file].trace), &n);
    click_putf(&sql, "INSERT INTO %s_local.errors (trace, at, host, path, size, error) FORMAT TabSeparated",
               a->f->database);
    click_putf(&line, "%s\t%010" PRId64 "\t", a->state.p[file].trace, (int64_t)time(NULL));
    const char *cells[] = {a->host, f->path};
    for (size_t i = 0; i < 2; i++) {
        facts_put_cell(&line, cells[i]);
        click_put(&line, "\t");
    }
    click_putf(&line, "%" PRIu64 "\t", f->size);
    facts_put_cell(&line, text);
    click_put(&line, "\n");
    int rc = line.bad || sql.bad ? fleet_no_memory(&err) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = click_run(&nodes[i].server, click_string(&sql), NULL, slice_of(line.bytes.p, line.bytes.n), &err);
    if (rc < 0)
        tell(a, file, "its row of fleet_errors cannot be written: %s", err.text);
    click_text_free(&line);
    click_text_free(&sql);
}

static void over(struct adding *a, uint32_t file)
{
    a->state.p[file].state = FILE_OVER;
    while (a->next < a->state.n && a->state.p[a->next].state == FILE_OVER)
        a->next++;
}

static void is_bad(struct adding *a, uint32_t file, const char *text)
{
    a->counts->failed++;
    tell(a, file, "cannot be imported: %s", text);
    record_error(a, file, text);
    over(a, file);
}

/* How long until the next try: a second, then twice as long, up to ten. */
static int64_t pause_ns(unsigned tries)
{
    return INT64_C(1000000000) * (tries > 3 ? 10 : 1 << (tries - 1));
}

enum { TRIES_REFUSED = 3 }; /* of what a server refuses: waiting seldom helps */

static void try_later(struct adding *a, uint32_t file, const char *text, bool unreachable)
{
    struct added_file *s = &a->state.p[file];
    int64_t now = now_ns();
    s->first_failure_ns = s->tries++ ? s->first_failure_ns : now;
    bool give_up = unreachable ? now + pause_ns(s->tries) - s->first_failure_ns > a->what->wait_s * INT64_C(1000000000)
                               : s->tries >= TRIES_REFUSED;
    a->reread = true;
    if (give_up || is_stopped(a)) {
        a->counts->postponed++;
        tell(a, file, "not added: %s", text);
        over(a, file);
        return;
    }
    s->not_before_ns = now + pause_ns(s->tries);
    s->state = FILE_WAITS;
    a->next = file < a->next ? file : a->next;
}

static void needs_memory(struct adding *a, const struct child *c, uint32_t file, const char *text)
{
    if (c->alone || a->jobs == 1) {
        is_bad(a, file, text);
        return;
    }
    a->state.p[file].alone = true;
    a->state.p[file].state = FILE_WAITS;
    a->next = file < a->next ? file : a->next;
}

enum { TOLD_UUIDS = 10 }; /* the rest is counted */

static void is_done(struct adding *a, uint32_t file)
{
    struct added_file *s = &a->state.p[file];
    const char *other = known_same_uuid(&a->known, s->trace, s->uuid);
    a->counts->same_uuid += other != NULL;
    if (other && a->counts->same_uuid <= TOLD_UUIDS)
        tell(a, file, "says the UUID %s as %s does, and its bytes are others: it is a recording of its own, trace %s",
             s->uuid, other, s->trace);
    if (!known_add(&a->known, s->trace, s->uuid))
        fleet_no_memory(&a->fatal);
    a->counts->added++;
    a->counts->rows += s->rows;
    a->counts->bytes += a->files.list.p[file].size;
    over(a, file);
}

/* ---- handing out ---- */

/* Does another worker have the same bytes? */
static bool is_held(const struct adding *a, uint32_t file)
{
    const char *trace = a->state.p[file].trace;
    for (size_t i = 0; i < a->children.n; i++) {
        const struct child *c = &a->children.p[i];
        if (c->file != NO_FILE && c->file != file && strcmp(a->state.p[c->file].trace, trace) == 0)
            return true;
        for (size_t k = 0; k < c->taken.n; k++)
            if (strcmp(a->state.p[c->taken.p[k]].trace, trace) == 0)
                return true;
    }
    return false;
}

static int read_known(struct adding *a)
{
    struct error err; /* of a server that does not answer, too, which is no failure */
    int rc = a->reread ? known_read(&a->known, a->f, &err) : 0;
    a->reread = false;
    if (rc < 0)
        a->fatal = err;
    return rc;
}

/* Is it known what the shard has? Asks once more when it did not answer. */
static bool is_listed(struct adding *a, unsigned shard)
{
    if (shard < a->known.unlisted.n && !a->known.unlisted.p[shard])
        return true;
    a->reread = true;
    return read_known(a) == 0 && shard < a->known.unlisted.n && !a->known.unlisted.p[shard];
}

static struct worker_message answer_hash(struct adding *a, struct child *c, const struct worker_message *m)
{
    const struct worker_message skip = {.word = WORKER_SKIP};
    struct added_file *s = &a->state.p[m->file];
    memcpy(s->trace, m->trace, sizeof s->trace);
    const unsigned shard = fleet_shard_of(a->f, s->trace);
    if (!is_listed(a, shard)) {
        c->file = NO_FILE;
        try_later(a, m->file, a->known.why.text, true);
        return skip;
    }
    bool known = known_has(&a->known, s->trace), held = !known && is_held(a, m->file);
    if (!known && !held)
        return (struct worker_message){.word = WORKER_GO};
    a->counts->known += known;
    a->counts->copies += held;
    if (held)
        tell(a, m->file, "has the same bytes as a file that is being added");
    c->file = NO_FILE;
    over(a, m->file);
    return skip;
}

/* The next file that may be tried now. *waits: there are others that may not, yet. */
static uint32_t next_file(struct adding *a, bool alone, bool *waits)
{
    int64_t now = now_ns();
    *waits = false;
    for (size_t i = a->next; i < a->state.n; i++) {
        const struct added_file *s = &a->state.p[i];
        if (s->state != FILE_WAITS)
            continue;
        if (s->alone == alone && s->not_before_ns <= now)
            return (uint32_t)i;
        *waits = true;
    }
    return NO_FILE;
}

static void answer_need(struct adding *a, struct child *c)
{
    struct worker_message m = {.word = WORKER_END};
    bool waits;
    uint32_t file = is_stopped(a) || a->fatal.code ? NO_FILE : next_file(a, c->alone, &waits);
    if (file != NO_FILE && read_known(a) < 0)
        file = NO_FILE;
    if (file != NO_FILE) {
        m = (struct worker_message){.word = WORKER_FILE, .file = file};
        a->state.p[file].state = FILE_GIVEN;
        c->file = file;
    }
    worker_send(c->fd, &m); /* a worker that has gone is noticed by its end */
}

static bool forget_taken(struct child *c, uint32_t file)
{
    for (size_t i = 0; i < c->taken.n; i++)
        if (c->taken.p[i] == file) {
            c->taken.p[i] = c->taken.p[--c->taken.n];
            return true;
        }
    return false;
}

static void take_message(struct adding *a, struct child *c, const struct worker_message *m)
{
    if (m->word != WORKER_NEED && m->file >= a->state.n)
        return;
    if (m->word != WORKER_NEED && m->word != WORKER_HASH && !forget_taken(c, m->file))
        c->file = NO_FILE;
    switch (m->word) {
    case WORKER_NEED:
        answer_need(a, c);
        break;
    case WORKER_HASH: {
        struct worker_message answer = answer_hash(a, c, m);
        worker_send(c->fd, &answer);
        break;
    }
    case WORKER_TAKEN:
        a->state.p[m->file].state = FILE_TAKEN;
        a->state.p[m->file].rows = m->rows;
        memcpy(a->state.p[m->file].uuid, m->uuid, sizeof m->uuid);
        if (!vec_push(&c->taken, m->file))
            fleet_no_memory(&a->fatal);
        break;
    case WORKER_BAD:
        is_bad(a, m->file, m->text);
        break;
    case WORKER_SHORT:
        needs_memory(a, c, m->file, m->text);
        break;
    case WORKER_UNSETTLED:
        if (a->unsettled++ == 0)
            tell(a, m->file, "a replica has not got its commit: %s", m->text);
        is_done(a, m->file);
        break;
    case WORKER_DONE:
        is_done(a, m->file);
        break;
    case WORKER_LATER:
        try_later(a, m->file, m->text, m->unreachable);
        break;
    default:
        break;
    }
}

/* ---- workers ---- */

static int start_child(struct adding *a, bool alone)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set_errno(&a->fatal, errno, "cannot start a worker");
    struct child *c = vec_add(&a->children);
    pid_t pid = c ? fork() : -1;
    if (pid == 0) {
        for (size_t i = 0; i < a->children.n; i++) /* another's end that stays open would hide the parent's death */
            if (a->children.p[i].fd > 0)
                close(a->children.p[i].fd);
        close(ends[0]);
        worker_run(a->f, a->what, &a->files, ends[1], alone ? a->memory : a->memory / a->jobs);
    }
    close(ends[1]);
    if (pid < 0) {
        int failure = errno;
        close(ends[0]);
        a->children.n -= c != NULL;
        return error_set_errno(&a->fatal, failure, "cannot start a worker");
    }
    *c = (struct child){.pid = pid, .fd = ends[0], .alone = alone, .file = NO_FILE};
    return 0;
}

/* A worker has ended. What it was importing did that, when it did not end as it should. */
static void end_child(struct adding *a, size_t at)
{
    struct child c = a->children.p[at];
    int status = 0;
    char text[160];
    a->children.p[at] = a->children.p[--a->children.n];
    close(c.fd);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "its import was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, sizeof text, "its import ended with status %d", WEXITSTATUS(status));
    if (c.file != NO_FILE && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        needs_memory(a, &c, c.file, text); /* as the kernel does when memory is short */
    else if (c.file != NO_FILE)
        is_bad(a, c.file, text);
    for (size_t i = 0; i < c.taken.n; i++)
        try_later(a, c.taken.p[i], "its worker ended before the commit", false);
    vec_free(&c.taken);
}

static void wait_for_children(struct adding *a, int timeout_ms)
{
    struct pollfd fds[256];
    size_t n = a->children.n < 256 ? a->children.n : 256;
    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = a->children.p[i].fd, .events = POLLIN};
    if (poll(fds, n, timeout_ms) <= 0)
        return;
    for (size_t i = n; i-- > 0;) { /* from the end: one that leaves is replaced by the last */
        struct worker_message m;
        if (!fds[i].revents)
            continue;
        if (worker_receive(fds[i].fd, &m))
            take_message(a, &a->children.p[i], &m);
        else
            end_child(a, i);
    }
}

/* Starts workers while there is something for them. False: all is done. */
static bool start_children(struct adding *a)
{
    bool waits = false, alone_waits = false;
    bool stopped = is_stopped(a) || a->fatal.code;
    if (!stopped && next_file(a, false, &waits) != NO_FILE) {
        bool alone_runs = a->children.n == 1 && a->children.p[0].alone;
        if (a->children.n < a->jobs && !alone_runs)
            start_child(a, false);
        return true;
    }
    if (!stopped && a->children.n == 0 && next_file(a, true, &alone_waits) != NO_FILE)
        start_child(a, true);
    return a->children.n > 0 || (!stopped && (waits || alone_waits));
}

static void run(struct adding *a)
{
    while (start_children(a)) {
        size_t idle = a->children.n;
        wait_for_children(a, idle ? 200 : 50);
        show(a, false);
    }
    for (size_t i = a->next; i < a->state.n; i++)
        a->counts->postponed += a->state.p[i].state != FILE_OVER;
    show(a, true);
}

/* ---- all of it ---- */

static int prepare(struct adding *a, struct error *err)
{
    const struct fleet_add *w = a->what;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    a->jobs = w->jobs ? w->jobs : (unsigned)(cpus > 0 ? cpus : 1);
    a->jobs = a->jobs > 256 ? 256 : a->jobs;
    a->memory = w->memory ? w->memory : (uint64_t)pages * (uint64_t)page / 2;
    if (gethostname(a->host, sizeof a->host - 1) < 0)
        a->host[0] = '\0';
    for (size_t i = 0; i < w->n_labels; i++)
        if (!strchr(w->labels[i], '='))
            return error_set(err, -MRD_EINVALID, "--label: invalid label '%.100s': use NAME=VALUE", w->labels[i]);
    int rc = fleet_find(&a->files, w->paths, w->n_paths, err);
    a->counts->files = a->files.list.n;
    for (size_t i = 0; rc == 0 && i < a->files.list.n; i++)
        if (!vec_push(&a->state, (struct added_file){.state = FILE_WAITS}))
            rc = fleet_no_memory(err);
    return rc < 0 ? rc : known_read(&a->known, a->f, err);
}

int fleet_add(struct fleet *f, const struct fleet_add *what, struct fleet_added *counts, struct error *err)
{
    struct adding a = {.f = f, .what = what, .counts = counts, .started_ns = now_ns()};
    uint64_t settled;
    *counts = (struct fleet_added){0};
    int rc = prepare(&a, err);
    if (rc == 0)
        rc = fleet_settle(f, &settled, err);
    if (rc == 0)
        run(&a);
    if (rc == 0 && a.unsettled) {
        rc = fleet_settle(f, &settled, err);
        counts->postponed += rc == 0 && settled == 0 ? a.unsettled : 0;
    }
    if (rc == 0 && a.fatal.code) {
        *err = a.fatal;
        rc = a.fatal.code;
    }
    for (size_t i = 0; i < a.children.n; i++)
        vec_free(&a.children.p[i].taken);
    vec_free(&a.children);
    vec_free(&a.state);
    known_free(&a.known);
    fleet_files_free(&a.files);
    return rc;
}
