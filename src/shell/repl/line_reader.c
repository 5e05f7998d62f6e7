/* Lines from a terminal (libedit: editing, history, completion) or from a pipe. */
#include "shell/repl/paste.h"
#include "shell/repl/repl.h"
#include "shell/text_width.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_ENTRIES = 1000 };

struct line_reader {
    struct repl *repl;
    EditLine *el; /* NULL: not a terminal */
    History *history;
    const char *prompt;
    char *history_file;
    struct paste paste;
    bool marks_pastes; /* the terminal knows how */
    sigset_t signals;  /* outside of the editor, where Ctrl-C is held */
    char *line;        /* getline()'s buffer */
    size_t line_cap;
};

static char *prompt_of(EditLine *el)
{
    struct line_reader *l;
    el_get(el, EL_CLIENTDATA, &l);
    return (char *)l->prompt;
}

/* One character for the editor. 1; 0 at the end; -1 with errno EINTR when Ctrl-C was pressed. */
static int read_character(EditLine *el, wchar_t *out)
{
    struct line_reader *l;
    mbstate_t state = {0};
    char byte;
    el_get(el, EL_CLIENTDATA, &l);
    for (;;) {
        int n = paste_read(&l->paste, &l->signals, &byte);
        if (n <= 0)
            return n;
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used <= 1)
            return 1;
        if (used == (size_t)-1) /* no character of this locale: forget what there is of it */
            state = (mbstate_t){0};
    }
}

/* ---- completion ---- */

static size_t common_prefix(const struct candidates *c)
{
    size_t n = strcspn(c->p[0], CANDIDATE_NOTE);
    for (size_t i = 1; i < c->n; i++)
        for (size_t k = 0; k < n; k++)
            if (c->p[i][k] != c->p[0][k])
                n = k;
    return n;
}

/* With its note, which stands right behind it. */
static void print_candidate(const char *text, size_t width, bool last)
{
    size_t n = strcspn(text, CANDIDATE_NOTE);
    const char *note = text + n + (text[n] != '\0');
    int blanks = (int)(width - n - strlen(note));
    printf("%.*s%s%*s", (int)n, text, note, last ? 0 : blanks, "");
    if (last)
        printf("\n");
}

static void list_candidates(const struct candidates *c)
{
    enum { MOST = 120 };
    const size_t screen = text_screen(STDOUT_FILENO);
    size_t widest = 0, shown = c->n < MOST ? c->n : MOST;
    for (size_t i = 0; i < shown; i++)
        if (strlen(c->p[i]) > widest)
            widest = strlen(c->p[i]);
    size_t columns = widest + 2 < screen ? screen / (widest + 2) : 1;
    printf("\n");
    for (size_t i = 0; i < shown; i++)
        print_candidate(c->p[i], widest + 2, (i + 1) % columns == 0 || i + 1 == shown);
    if (shown < c->n)
        printf("... and %zu more\n", c->n - shown);
    fflush(stdout);
}

static unsigned char on_tab(EditLine *el, int key)
{
    (void)key;
    struct line_reader *l;
    el_get(el, EL_CLIENTDATA, &l);
    const LineInfo *info = el_line(el);
    size_t before_len = (size_t)(info->cursor - info->buffer), word_at;
    char *before = mem_strndup(info->buffer, before_len);
    if (!before)
        return CC_ERROR;
    struct candidates c = {0};
    complete_word(l->repl, before, info->cursor, (size_t)(info->lastchar - info->cursor), &word_at, &c);
    unsigned char what = CC_ERROR;
    size_t typed = before_len - word_at;
    size_t common = c.n ? common_prefix(&c) : 0;
    if (c.n && (common > typed || c.n == 1)) {
        char *rest = mem_strndup(c.p[0], common);
        /* the case of what was typed gives way to the name's own */
        el_deletestr(el, (int)typed);
        if (rest && el_insertstr(el, rest) == 0 && c.n == 1 && !strchr("(!/", rest[common - 1]))
            el_insertstr(el, " ");
        mem_free(rest);
        what = CC_REFRESH;
    } else if (c.n > 1) {
        list_candidates(&c);
        what = CC_REDISPLAY;
    }
    candidates_free(&c);
    mem_free(before);
    return what;
}

/* ---- history ---- */

static char *find_history_file(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char dir[512], path[600];
    if (config && config[0])
        snprintf(dir, sizeof dir, "%s", config);
    else if (home && home[0])
        snprintf(dir, sizeof dir, "%s/.config", home);
    else
        return NULL;
    mkdir(dir, 0700);
    snprintf(path, sizeof path, "%s/meridian", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/meridian/tp_shell_history", dir);
    return mem_strdup(path);
}

static void open_editor(struct line_reader *l)
{
    HistEvent event;
    const char *term = getenv("TERM");
    l->marks_pastes = term && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO);
    l->paste = (struct paste){.fd = STDIN_FILENO};
    setlocale(LC_CTYPE, "");
    l->el = el_init("tp_shell", stdin, stdout, stderr);
    l->history = history_init();
    if (!l->el || !l->history)
        return;
    history(l->history, &event, H_SETSIZE, HISTORY_ENTRIES);
    history(l->history, &event, H_SETUNIQUE, 1);
    l->history_file = find_history_file();
    if (l->history_file)
        history(l->history, &event, H_LOAD, l->history_file);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, prompt_of);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_SIGNAL, 0);
    el_set(l->el, EL_GETCFN, read_character);
    el_set(l->el, EL_ADDFN, "tp-complete", "Complete names", on_tab);
    el_set(l->el, EL_BIND, "^I", "tp-complete", NULL);
    el_set(l->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(l->el, NULL);
}

struct line_reader *line_reader_open(struct repl *r)
{
    struct line_reader *l = mem_zalloc(sizeof *l);
    if (!l)
        return NULL;
    l->repl = r;
    if (isatty(STDIN_FILENO))
        open_editor(l);
    return l;
}

static int next_plain(struct line_reader *l, const char **line)
{
    ssize_t n = getline(&l->line, &l->line_cap, stdin);
    if (n < 0)
        return errno == EINTR && interrupt_taken() ? (clearerr(stdin), -1) : 0;
    while (n > 0 && (l->line[n - 1] == '\n' || l->line[n - 1] == '\r'))
        l->line[--n] = '\0';
    *line = l->line;
    return 1;
}

int line_reader_next(struct line_reader *l, const char *prompt, const char **line)
{
    l->prompt = prompt;
    if (!l->el)
        return next_plain(l, line);
    int n = 0;
    el_set(l->el, EL_PREP_TERM, 1); /* before the prompt: what is typed as soon as it shows must reach the editor */
    interrupt_hold(&l->signals);
    if (l->marks_pastes)
        paste_ask(true);
    const char *got = el_gets(l->el, &n);
    if (l->marks_pastes)
        paste_ask(false);
    interrupt_release(&l->signals);
    if (interrupt_taken()) {
        el_reset(l->el);
        printf("\n");
        fflush(stdout);
        return -1;
    }
    if (!got || n <= 0)
        return 0;
    mem_free(l->line);
    l->line = mem_strndup(got, (size_t)n);
    if (!l->line)
        return 0;
    n = (int)strlen(l->line);
    while (n > 0 && strchr("\r\n", l->line[n - 1])) /* those within are of a statement out of the history */
        l->line[--n] = '\0';
    *line = l->line;
    return 1;
}

bool line_reader_pasted(const struct line_reader *l)
{
    return l->el && l->paste.line;
}

void line_reader_add_history(struct line_reader *l, const char *text)
{
    if (!l->history)
        return;
    char *whole = mem_strdup(text); /* with its lines: a comment ends where it did */
    if (!whole)
        return;
    size_t n = strlen(whole);
    while (n > 0 && whole[n - 1] == '\n')
        whole[--n] = '\0';
    HistEvent event;
    history(l->history, &event, H_ENTER, whole);
    mem_free(whole);
}

bool line_reader_ask(struct line_reader *l, const char *question, char c)
{
    (void)l;
    char first = '\n', byte;
    ssize_t n;
    fputs(question, stderr);
    for (size_t i = 0; (n = read(STDIN_FILENO, &byte, 1)) == 1 && byte != '\n'; i++)
        if (i == 0)
            first = byte;
    return n != 1 || first == c;
}

void line_reader_close(struct line_reader *l)
{
    HistEvent event;
    if (l->history && l->history_file)
        history(l->history, &event, H_SAVE, l->history_file);
    if (l->el)
        el_end(l->el);
    if (l->history)
        history_end(l->history);
    if (l->el)
        mem_free(l->line);
    else
        free(l->line); /* getline()'s */
    mem_free(l->history_file);
    mem_free(l);
}
