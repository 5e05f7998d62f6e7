/* Answers SQL over recordings as lines of text. */
#include "server/recording_rows.h"

#include "base/alloc.h"
#include "export/source.h"
#include "rpc/form.h"
#include "rpc/http.h"
#include "server/routes.h"
#include "server/rows_text.h"
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ANSWER = 64 << 20 }; /* bytes, of one recording */

struct wanted {
    const char *trace, *path; /* trace NULL: whichever is there */
};

struct rows_answer {
    char *args; /* decoded texts, each with its NUL; views below point here */
    const char *sql;
    VEC(struct wanted)
    wanted;
    size_t next;           /* of `wanted` */
    struct pb_writer text; /* of one recording, and how much of it is sent */
    size_t sent, held;
};

void rows_free(struct worker *w, struct rows_answer *a)
{
    if (!a)
        return;
    worker_release(w, a->held);
    pb_writer_free(&a->text);
    vec_free(&a->wanted);
    mem_free(a->args);
    mem_free(a);
}

/* ---- the request ---- */

static const char *take_argument(struct rows_answer *a, struct slice name, const char *value, const char **trace)
{
    if (slice_eq_str(name, "sql")) {
        a->sql = value;
    } else if (slice_eq_str(name, "trace")) {
        *trace = value;
    } else if (slice_eq_str(name, "path")) {
        if (!vec_push(&a->wanted, (struct wanted){*trace, value}))
            return "out of memory\n";
        *trace = NULL;
    } else {
        return "unknown argument: the arguments are sql, trace and path\n";
    }
    return NULL;
}

/* NULL, or what is wrong. */
static const char *read_arguments(struct rows_answer *a, struct slice args)
{
    struct slice name, value;
    const char *trace = NULL, *wrong = NULL;
    char *to = a->args = mem_alloc(args.len + 1);
    if (!to)
        return "out of memory\n";
    while (!wrong && form_next(&args, &name, &value)) { /* a decoded text and its NUL fit where the encoded was */
        int64_t n = form_decode(value, to);
        wrong = n < 0 ? "an argument has a '%' without two digits, or a NUL\n" : take_argument(a, name, to, &trace);
        to += n + 1;
    }
    if (wrong)
        return wrong;
    return !a->sql || a->wanted.n == 0 ? "sql=, and path= at least once, are needed\n" : NULL;
}

void rows_begin(struct worker *w, struct session *s, struct slice args)
{
    if (w->recordings->n == 0) {
        route_reply_text(s, 403, "this server was started without --traces DIR\n");
        return;
    }
    struct rows_answer *a = mem_zalloc(sizeof *a);
    const char *wrong = a ? read_arguments(a, args) : "out of memory\n";
    if (wrong) {
        rows_free(w, a);
        route_reply_text(s, 400, wrong);
        return;
    }
    s->rpc.rows = a;
    s->rpc.active = ANSWER_ROWS;
    session_reply_head(s, 200, "text/tab-separated-values", HTTP_CHUNKED);
}

/* ---- one recording ---- */

/* What failed there, without the name that the file has for this process. */
static int refuse(const struct tp *tp, const char *path, struct error *err)
{
    const char *text = tp ? tp_error(tp) : "out of memory";
    const size_t n = strlen(path);
    return error_set(err, -MRD_EFORMAT, "%s",
                     strncmp(text, path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text);
}

static int load(struct worker *w, struct tp **tp, const char *path, struct error *err)
{
    int rc = tp_open(tp, &w->trace->config);
    if (rc == 0 && w->trace->prepare)
        rc = w->trace->prepare(w->trace->prepare_ctx, *tp);
    if (rc == 0)
        rc = tp_load(*tp, path);
    if (rc == 0)
        rc = tp_finish(*tp);
    return rc == 0 ? 0 : refuse(*tp, path, err);
}

static bool is_as_before(int fd, const struct stat *before)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size == before->st_size && st.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == before->st_mtim.tv_nsec && st.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           st.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* Opens the file that is wanted, when it still is the one that is meant; *before: what it was. The descriptor, or
 * negative. */
static int open_wanted(struct worker *w, const struct wanted *x, char *id, struct tp **tp, struct stat *before,
                       struct error *err)
{
    char by[RECORDING_PATH_SIZE];
    int fd = recordings_open(w->recordings, x->path, by, err);
    int rc = fd < 0 ? fd : fstat(fd, before) < 0 ? error_set_errno(err, errno, "cannot look at it") : 0;
    if (rc == 0)
        rc = export_files_id((const char *const[]){by}, 1, id, err);
    if (rc == 0 && x->trace && strcmp(x->trace, id) != 0)
        rc = error_set(err, -MRD_ENOTFOUND, "the file has other bytes than the recording %.40s", x->trace);
    if (rc == 0)
        rc = load(w, tp, by, err);
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

static int put_result(struct rows_answer *a, struct tp *tp, const char *id, struct rows_text *t, struct error *err)
{
    struct tp_result *r;
    int rc = tp_query(tp, a->sql, &r), more = 0;
    if (rc == 0 && !rows_text_begin(t, r, &a->text, id))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    while (rc == 0 && a->text.n <= MAX_ANSWER && !a->text.failed && (more = tp_step(r)) == 1)
        rows_text_put(t);
    if (rc == 0 && a->text.failed)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    else if (rc == 0 && a->text.n > MAX_ANSWER)
        rc = error_set(err, -MRD_ELIMIT, "more than %d MiB of rows: ask for less", MAX_ANSWER >> 20);
    else if ((rc < 0 && !err->code) || more < 0)
        rc = error_set(err, -MRD_ESQL, "%s", tp_error(tp));
    return rc;
}

/* The lines of one recording, in a->text. */
static void answer_one(struct worker *w, struct session *s, struct rows_answer *a, const struct wanted *x)
{
    char id[EXPORT_TRACE_ID_SIZE] = "";
    struct rows_text t = {0};
    struct error err = {0};
    struct tp *tp = NULL;
    struct stat before;
    int fd = open_wanted(w, x, id, &tp, &before, &err), rc = fd < 0 ? fd : 0;
    if (rc == 0 && worker_begin_query_on(w, s, tp)) {
        rc = put_result(a, tp, id, &t, &err);
        if (rc < 0 && w->overdue)
            error_set(&err, rc, "interrupted: other clients were waiting for this statement");
        worker_end_query(w);
    }
    if (rc == 0 && !is_as_before(fd, &before)) /* rows of other bytes than those of its name */
        rc = error_set(&err, -MRD_EFORMAT, "the file was written while it was read");
    if (rc < 0)
        a->text.n = 0, t.rows = 0; /* a part of the rows is no answer */
    rows_text_end(&t, &a->text, x->trace ? x->trace : id, rc < 0 ? err.text : "");
    rows_text_close(&t);
    tp_close(tp);
    if (fd >= 0)
        close(fd);
}

/* ---- the answer ---- */

static void end(struct worker *w, struct session *s, enum reply_kind how)
{
    rows_free(w, s->rpc.rows);
    s->rpc.rows = NULL;
    s->rpc.active = ANSWER_NONE;
    session_reply(s, how);
}

static void send_piece(struct session *s, struct rows_answer *a)
{
    struct pb_writer piece = {0};
    size_t n = a->text.n - a->sent;
    n = n < BATCH_ENOUGH_BYTES ? n : BATCH_ENOUGH_BYTES;
    pb_put_raw(&piece, a->text.p + a->sent, n);
    if (piece.failed) {
        pb_writer_free(&piece);
        a->text.failed = true;
        return;
    }
    a->sent += n;
    session_reply_bytes(s, &piece);
}

void rows_continue(struct worker *w, struct session *s)
{
    struct rows_answer *a = s->rpc.rows;
    if (a->sent < a->text.n && !a->text.failed) {
        send_piece(s, a);
    } else if (!a->text.failed && a->next < a->wanted.n) {
        worker_release(w, a->held);
        a->sent = a->held = a->text.n = 0;
        answer_one(w, s, a, &a->wanted.p[a->next++]);
        if (worker_hold(w, a->text.n))
            a->held = a->text.n;
        else
            a->text.failed = true;
    }
    if (a->text.failed)
        end(w, s, REPLY_PART); /* without a last line: the client knows that it lacks something */
    else if (a->sent == a->text.n && a->next == a->wanted.n)
        end(w, s, REPLY_END);
}
