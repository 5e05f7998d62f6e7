/* Reads command lines by a table of flags. */
#include "base/flags.h"

#include "base/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a command line is read with. */
struct reader {
    const struct flag_table *t;
    void *values;
    int where;
    int n;
    char **argv;
};

static const struct flag *find_letter(const struct flag_table *t, int where, char letter)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].letter == letter && t->rows[i].where & where)
            return &t->rows[i];
    return NULL;
}

/* By full name, or by a beginning that only one flag has. */
static const struct flag *find_name(const struct flag_table *t, int where, const char *name, size_t len)
{
    const struct flag *begins = NULL;
    int n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct flag *f = &t->rows[i];
        if (!(f->where & where) || strncmp(f->name, name, len) != 0)
            continue;
        if (f->name[len] == '\0')
            return f;
        begins = f;
        n++;
    }
    return n == 1 && len > 0 ? begins : NULL;
}

/* The flag that `arg` ("--name", "--name=value", "-x…") means among those of `where`; NULL when none does. */
static const struct flag *find_argument(const struct flag_table *t, int where, const char *arg)
{
    if (strncmp(arg, "--", 2) == 0)
        return find_name(t, where, arg + 2, strcspn(arg + 2, "="));
    return arg[0] == '-' && arg[1] ? find_letter(t, where, arg[1]) : NULL;
}

/* What is the matter with a name: it begins several flags, belongs to other commands, or is misspelt. */
static int unknown_name(const struct flag_table *t, int where, const char *name, size_t len, struct error *err)
{
    struct suggestion s = suggest(name, len);
    char several[160] = "", text[80];
    size_t at = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct flag *f = &t->rows[i];
        if (!(f->where & where))
            continue;
        if (f->help)
            suggest_among(&s, f->name);
        if (strncmp(f->name, name, len) == 0 && at < sizeof several)
            at += (size_t)snprintf(several + at, sizeof several - at, "%s--%s", at ? ", " : "", f->name);
    }
    if (at && len)
        return error_set(err, -MRD_EINVALID, "'--%.*s' may be %s", (int)len, name, several);
    const struct flag *other = find_name(t, ~0, name, len);
    if (other && strlen(other->name) == len)
        return error_set(err, -MRD_EINVALID, "--%s is a flag of other commands%s%s%s", other->name,
                         other->help ? " (" : "", other->help ? other->help : "", other->help ? ")" : "");
    return error_set(err, -MRD_EINVALID, "unknown flag '--%.*s'%s", (int)(len < 100 ? len : 100), name,
                     suggest_text(&s, "--", text, sizeof text));
}

static int list_add(struct text_list *l, const char *text)
{
    return vec_push(l, text) ? 0 : -MRD_ENOMEM;
}

static bool read_number(const char *text, int64_t *v)
{
    char *end;
    errno = 0;
    *v = strtoll(text, &end, 10);
    return !errno && !*end && end != text;
}

/* Why a flag cannot be used yet; 0: it can. */
static int refuse_later(const struct flag *f, struct error *err)
{
    return f->later ? error_set(err, -MRD_EUNSUPPORTED, "--%s: %s", f->name, f->later) : 0;
}

static int store_bool(const struct reader *r, const struct flag *f, struct error *err)
{
    *(bool *)((char *)r->values + f->offset) = true;
    return refuse_later(f, err);
}

static int store(const struct reader *r, const struct flag *f, const char *value, struct error *err)
{
    if (f->later)
        return refuse_later(f, err);
    void *field = (char *)r->values + f->offset;
    int64_t v;
    switch (f->kind) {
    case FLAG_TEXT:
    case FLAG_OPTIONAL:
        *(const char **)field = value;
        return 0;
    case FLAG_LIST:
        return list_add(field, value);
    case FLAG_COUNT:
        if (!read_number(value, &v) || v < 0)
            return error_set(err, -MRD_EINVALID, "--%s: '%s' is not a count", f->name, value);
        *(int64_t *)field = v;
        return 0;
    case FLAG_NUMBER:
        if (!read_number(value, &v))
            return error_set(err, -MRD_EINVALID, "--%s: '%s' is not a number", f->name, value);
        *(struct given_number *)field = (struct given_number){true, v};
        return 0;
    }
    return 0;
}

static int parse_long(const struct reader *r, int *i, struct error *err)
{
    const char *arg = r->argv[*i] + 2;
    const char *value = strchr(arg, '=');
    size_t len = strcspn(arg, "=");
    const struct flag *f = find_name(r->t, r->where, arg, len);
    if (!f)
        return unknown_name(r->t, r->where, arg, len, err);
    if (f->kind == FLAG_BOOL)
        return value ? error_set(err, -MRD_EINVALID, "--%s takes no value", f->name) : store_bool(r, f, err);
    if (!value && f->kind == FLAG_OPTIONAL)
        return store(r, f, "", err);
    if (!value && ++*i >= r->n)
        return error_set(err, -MRD_EINVALID, "--%s needs a value (%s)", f->name, f->value);
    return store(r, f, value ? value + 1 : r->argv[*i], err);
}

/* One argument of letters: "-W", "-Wi", "-f FILE", "-fFILE". */
static int parse_letters(const struct reader *r, int *i, struct error *err)
{
    for (const char *p = r->argv[*i] + 1; *p; p++) {
        const struct flag *f = find_letter(r->t, r->where, *p);
        int rc = 0;
        if (!f)
            return error_set(err, -MRD_EINVALID, "unknown flag '-%c'", *p);
        if (f->kind == FLAG_BOOL) {
            rc = store_bool(r, f, err);
        } else {
            if (!p[1] && ++*i >= r->n)
                return error_set(err, -MRD_EINVALID, "-%c needs a value (%s)", f->letter, f->value);
            return store(r, f, p[1] ? p + 1 : r->argv[*i], err);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct text_list *positionals(const struct flag_table *t, void *values)
{
    return (struct text_list *)(void *)((char *)values + t->positionals);
}

int flags_parse(const struct flag_table *t, void *values, int where, int n, char **argv, struct error *err)
{
    const struct reader r = {t, values, where, n, argv};
    int rc = 0;
    bool flags_end = false;
    for (int i = 0; i < n && rc == 0; i++) {
        const char *arg = argv[i];
        if (flags_end || arg[0] != '-' || !arg[1])
            rc = list_add(positionals(t, values), arg);
        else if (strcmp(arg, "--") == 0) {
            flags_end = true;
            positionals(t, values)->dashes = positionals(t, values)->n + 1;
        } else if (arg[1] == '-')
            rc = parse_long(&r, &i, err);
        else
            rc = parse_letters(&r, &i, err);
    }
    return rc == -MRD_ENOMEM ? error_set(err, rc, "out of memory") : rc;
}

void flags_free(const struct flag_table *t, void *values)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].kind == FLAG_LIST)
            vec_free((struct text_list *)(void *)((char *)values + t->rows[i].offset));
    vec_free(positionals(t, values));
}

int flags_find_positional(const struct flag_table *t, int n, char **argv, bool (*match)(const char *arg))
{
    for (int i = 0; i < n; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--") == 0)
            return -1;
        if (arg[0] != '-' || !arg[1]) {
            if (match(arg))
                return i;
            continue;
        }
        const struct flag *f = find_argument(t, ~0, arg);
        bool attached = arg[1] == '-' ? strchr(arg, '=') != NULL : arg[2] != '\0';
        if (f && f->kind != FLAG_BOOL && f->kind != FLAG_OPTIONAL && !attached)
            i++;
    }
    return -1;
}
