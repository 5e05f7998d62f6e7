/* The loop of the interactive shell. */
#include "shell/repl/repl.h"
#include "shell/did_you_mean.h"
#include "shell/text_width.h"
#include "shell/ticker.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 20, WIDE_WIDTH = 40 };

static bool more_rows(void *ctx)
{
    struct repl *r = ctx;
    out_flush(r->out, NULL);
    return !line_reader_ask(r->reader, "...\nType 'q' to stop, Enter for more records: ", 'q');
}

void repl_output(struct repl *r, const char *path, bool once)
{
    struct error err = {0};
    out_flush(r->out, &err);
    if (r->out->fd != STDOUT_FILENO)
        close(r->out->fd);
    out_init(r->out, STDOUT_FILENO);
    r->once = false;
    if (!*path)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        r->failed = true;
        return;
    }
    out_init(r->out, fd);
    r->once = once;
}

/* Every statement's answer; the rows of all, or what failed. */
static int64_t show_answers(struct repl *r, const char *sql, size_t len, int64_t start, int64_t *first_row_ns)
{
    bool shown = r->terminal && r->out->fd == STDOUT_FILENO, paged = shown && pager_begin(&r->pager);
    struct output output = {
        .out = r->out, .format = r->format, .width = r->width, .screen = shown ? text_screen(STDOUT_FILENO) : 0};
    if (paged) {
        out_flush(r->out, NULL);
        r->out->fd = r->pager.fd;
    } else if (shown && (r->format == OUTPUT_TABLE || r->format == OUTPUT_BOX || r->format == OUTPUT_LINE)) {
        output.more = more_rows;
        output.more_ctx = r;
    }
    struct tp_result *result = NULL;
    struct ticker ticker;
    size_t at = 0;
    int64_t all = 0;
    int rc;
    ticker_start(&ticker, "Running", false);
    r->out->ticker = shown ? &ticker : NULL;
    while ((rc = tp_query_next(r->sh->tp, NULL, sql, len, &at, &result)) == 1) {
        if (*first_row_ns < 0)
            *first_row_ns = shell_now_ns() - start;
        int64_t rows = output_result(&output, result);
        tp_result_close(result);
        if (rows < 0) {
            rc = (int)rows;
            break;
        }
        all += rows;
        if (r->out->error)
            break; /* nobody reads on */
    }
    ticker_stop(&ticker);
    r->out->ticker = NULL;
    if (paged) {
        out_flush(r->out, NULL); /* a pager that was left early is not an error */
        out_init(r->out, STDOUT_FILENO);
        pager_end(&r->pager);
    }
    return rc < 0 ? rc : all;
}

static void tell_time(struct repl *r, int64_t rows, int64_t ns)
{
    FILE *to = r->format == OUTPUT_TABLE && !r->terminal ? stdout : stderr;
    fprintf(to, "\nQuery executed in %.3f ms", (double)ns / 1e6);
    if (r->terminal && rows >= 0)
        fprintf(to, ", %lld row%s", (long long)rows, rows == 1 ? "" : "s");
    fprintf(to, "\n\n");
    fflush(to);
}

/* For .plot; out of memory: it has nothing to draw. */
static void remember(struct repl *r, const char *sql, size_t len)
{
    vec_clear(&r->last);
    if (!vec_reserve(&r->last, len + 1))
        return;
    memcpy(r->last.p, sql, len);
    r->last.p[len] = '\0';
    r->last.n = len + 1;
}

void repl_run_sql(struct repl *r, const char *sql, size_t len)
{
    int64_t start = shell_now_ns(), first_row_ns = -1;
    interrupt_target(r->sh->tp);
    int64_t rows = show_answers(r, sql, len, start, &first_row_ns);
    interrupt_target(NULL);
    struct error err = {0};
    if (out_flush(r->out, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        r->quit = r->failed = true; /* nobody reads the answers any more */
    }
    r->failed |= rows < 0;
    if (rows == TP_INTERRUPTED)
        fprintf(stderr, "Interrupted\n");
    else if (rows < 0)
        shell_tell_error(r->sh->tp);
    else if (first_row_ns >= 0)
        remember(r, sql, len);
    interrupt_taken();
    if (r->timer)
        tell_time(r, rows, first_row_ns < 0 ? shell_now_ns() - start : first_row_ns);
    if (r->once)
        repl_output(r, "", false);
}

static bool is_blank(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return *s == '\0';
}

/* A line of one word, with or without a semicolon. */
static bool is_word(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncasecmp(line, word, n) == 0 && line[n + strspn(line + n, " \t;")] == '\0';
}

/* Runs what has been typed and begins anew. */
static void run_statement(struct repl *r)
{
    if (r->statement.n == 0)
        return;
    if (vec_push(&r->statement, '\0')) {
        line_reader_add_history(r->reader, r->statement.p);
        repl_run_sql(r, r->statement.p, r->statement.n - 1);
    }
    vec_clear(&r->statement);
}

static bool append_line(struct repl *r, const char *line)
{
    size_t len = strlen(line);
    if (!vec_reserve(&r->statement, r->statement.n + len + 2))
        return false;
    memcpy(r->statement.p + r->statement.n, line, len);
    r->statement.n += len;
    r->statement.p[r->statement.n++] = '\n';
    r->statement.p[r->statement.n] = '\0';
    return true;
}

/* A statement ends at a semicolon that is not a part of a string or comment, or at an empty line. */
static void take_line(struct repl *r, const char *line)
{
    bool fresh = r->statement.n == 0, pasted = line_reader_pasted(r->reader);
    if (is_blank(line)) {
        if (pasted)
            return;
        if (fresh && isatty(STDIN_FILENO))
            fprintf(stderr, "If you want to quit either type .q or press CTRL-D (EOF)\n");
        run_statement(r);
        return;
    }
    const char *text = line;
    while (isspace((unsigned char)*text))
        text++;
    if (fresh && *text == '.') {
        line_reader_add_history(r->reader, text);
        repl_meta(r, text);
        return;
    }
    if (fresh && (is_word(text, "exit") || is_word(text, "quit"))) {
        r->quit = true;
        return;
    }
    if (!append_line(r, line)) {
        r->failed = true;
        fprintf(stderr, "out of memory\n");
    } else if (sqlite3_complete(r->statement.p)) {
        run_statement(r);
    }
}

/* A trace that came through standard input has used it up: the terminal is where the user is. */
static void reopen_terminal(const struct text_list *traces)
{
    bool piped = false;
    for (size_t i = 0; i < traces->n; i++)
        piped |= strcmp(traces->p[i], "-") == 0;
    int fd = piped && !isatty(STDIN_FILENO) ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        dup2(fd, STDIN_FILENO);
        close(fd);
    }
}

int repl_run(struct shell *sh, struct error *err)
{
    reopen_terminal(&sh->opt.positionals);
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    struct repl r = {.sh = sh,
                     .format = OUTPUT_TABLE,
                     .timer = true,
                     .terminal = terminal,
                     .width = sh->opt.wide ? WIDE_WIDTH
                              : terminal   ? 0
                                           : DEFAULT_WIDTH};
    pager_find(&r.pager);
    r.out = mem_alloc(sizeof *r.out);
    r.reader = r.out ? line_reader_open(&r) : NULL;
    if (!r.reader) {
        mem_free(r.out);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    out_init(r.out, STDOUT_FILENO);
    interrupt_target(NULL);
    if (isatty(STDIN_FILENO))
        printf("A statement ends with ';' or an empty line; .help lists the commands.\n");
    fflush(stdout);
    while (!r.quit) {
        const char *line;
        int got = line_reader_next(r.reader, r.statement.n ? "...> " : "> ", &line);
        if (got == 0)
            break;
        if (got < 0)
            vec_clear(&r.statement);
        else
            take_line(&r, line);
    }
    if (!r.quit)
        run_statement(&r); /* the last statement of a script needs no semicolon */
    repl_output(&r, "", false);
    line_reader_close(r.reader);
    vec_free(&r.statement);
    vec_free(&r.last);
    mem_free(r.out);
    if (r.failed && !isatty(STDIN_FILENO))
        return error_set(err, -MRD_EINVALID, "some of what standard input asked failed");
    return 0;
}

int cmd_interactive(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    if (args->n == 0 && !sh->opt.remote)
        return error_set(err, -MRD_EINVALID,
                         "interactive: a trace file is needed, e.g. tp_shell interactive trace.pftrace");
    int rc = session_load(sh, args->p, args->n, err);
    return rc < 0 ? rc : repl_run(sh, err);
}
