/* Reads command lines by the table of flags. */
#include "shell/options.h"

#include "shell/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct flag flags[] = {
#define FLAG(field, kind, letter, name, value, where, help, later)                                                     \
    {name, letter, FLAG_##kind, where, value, help, later, offsetof(struct options, field)},
#include "shell/flags.def"
#undef FLAG
};
const size_t n_flags = sizeof flags / sizeof *flags;

static const struct flag *find_letter(int where, char letter)
{
    for (size_t i = 0; i < n_flags; i++)
        if (flags[i].letter == letter && flags[i].where & where)
            return &flags[i];
    return NULL;
}

/* By full name, or by a beginning that only one flag has. */
static const struct flag *find_name(int where, const char *name, size_t len)
{
    const struct flag *begins = NULL;
    int n = 0;
    for (size_t i = 0; i < n_flags; i++) {
        if (!(flags[i].where & where) || strncmp(flags[i].name, name, len) != 0)
            continue;
        if (flags[i].name[len] == '\0')
            return &flags[i];
        begins = &flags[i];
        n++;
    }
    return n == 1 && len > 0 ? begins : NULL;
}

const struct flag *options_flag(int where, const char *arg)
{
    if (strncmp(arg, "--", 2) == 0)
        return find_name(where, arg + 2, strcspn(arg + 2, "="));
    return arg[0] == '-' && arg[1] ? find_letter(where, arg[1]) : NULL;
}

/* What is the matter with a name: it begins several flags, belongs to other commands, or is misspelt. */
static int unknown_name(int where, const char *name, size_t len, struct error *err)
{
    struct suggestion s = suggest(name, len);
    char several[160] = "", text[80];
    size_t at = 0;
    for (size_t i = 0; i < n_flags; i++) {
        if (!(flags[i].where & where))
            continue;
        suggest_among(&s, flags[i].name);
        if (strncmp(flags[i].name, name, len) == 0 && at < sizeof several)
            at += (size_t)snprintf(several + at, sizeof several - at, "%s--%s", at ? ", " : "", flags[i].name);
    }
    if (at && len)
        return error_set(err, -MRD_EINVALID, "'--%.*s' may be %s", (int)len, name, several);
    const struct flag *other = find_name(IN_ALL, name, len);
    if (other && strlen(other->name) == len)
        return error_set(err, -MRD_EINVALID, "--%s is a flag of other commands (%s)", other->name, other->help);
    return error_set(err, -MRD_EINVALID, "unknown flag '--%.*s'%s", (int)(len < 100 ? len : 100), name,
                     suggest_text(&s, "--", text, sizeof text));
}

static int list_add(struct text_list *l, const char *text)
{
    return vec_push(l, text) ? 0 : -MRD_ENOMEM;
}

static int store(struct options *o, const struct flag *f, const char *value, struct error *err)
{
    if (f->later)
        return error_set(err, -MRD_EUNSUPPORTED, "--%s: %s", f->name, f->later);
    void *field = (char *)o + f->offset;
    switch ((enum flag_kind)f->kind) {
    case FLAG_BOOL:
        *(bool *)field = true;
        return 0;
    case FLAG_TEXT:
        *(const char **)field = value;
        return 0;
    case FLAG_LIST:
        return list_add(field, value);
    case FLAG_COUNT: {
        char *end;
        errno = 0;
        long long v = strtoll(value, &end, 10);
        if (errno || *end || end == value || v < 0)
            return error_set(err, -MRD_EINVALID, "--%s: '%s' is not a count", f->name, value);
        *(int64_t *)field = v;
        return 0;
    }
    }
    return 0;
}

static int parse_long(struct options *o, int where, int n, char **argv, int *i, struct error *err)
{
    const char *arg = argv[*i] + 2;
    const char *value = strchr(arg, '=');
    size_t len = strcspn(arg, "=");
    const struct flag *f = find_name(where, arg, len);
    if (!f)
        return unknown_name(where, arg, len, err);
    if (f->kind == FLAG_BOOL)
        return value ? error_set(err, -MRD_EINVALID, "--%s takes no value", f->name) : store(o, f, NULL, err);
    if (!value && ++*i >= n)
        return error_set(err, -MRD_EINVALID, "--%s needs a value (%s)", f->name, f->value);
    return store(o, f, value ? value + 1 : argv[*i], err);
}

/* One argument of letters: "-W", "-Wi", "-f FILE", "-fFILE". */
static int parse_letters(struct options *o, int where, int n, char **argv, int *i, struct error *err)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const struct flag *f = find_letter(where, *p);
        int rc = 0;
        if (!f)
            return error_set(err, -MRD_EINVALID, "unknown flag '-%c'", *p);
        if (f->kind == FLAG_BOOL) {
            rc = store(o, f, NULL, err);
        } else {
            if (!p[1] && ++*i >= n)
                return error_set(err, -MRD_EINVALID, "-%c needs a value (%s)", f->letter, f->value);
            return store(o, f, p[1] ? p + 1 : argv[*i], err);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

int options_parse(struct options *o, int where, int n, char **argv, struct error *err)
{
    int rc = 0;
    bool flags_end = false;
    for (int i = 0; i < n && rc == 0; i++) {
        const char *arg = argv[i];
        if (flags_end || arg[0] != '-' || !arg[1])
            rc = list_add(&o->positionals, arg);
        else if (strcmp(arg, "--") == 0)
            flags_end = true;
        else if (arg[1] == '-')
            rc = parse_long(o, where, n, argv, &i, err);
        else
            rc = parse_letters(o, where, n, argv, &i, err);
    }
    return rc == -MRD_ENOMEM ? error_set(err, rc, "out of memory") : rc;
}

void options_free(struct options *o)
{
    for (size_t i = 0; i < n_flags; i++)
        if (flags[i].kind == FLAG_LIST)
            vec_free((struct text_list *)((char *)o + flags[i].offset));
    vec_free(&o->positionals);
}

int options_find_positional(int n, char **argv, bool (*match)(const char *arg))
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
        const struct flag *f = options_flag(IN_ALL, arg);
        bool attached = arg[1] == '-' ? strchr(arg, '=') != NULL : arg[2] != '\0';
        if (f && f->kind != FLAG_BOOL && !attached)
            i++;
    }
    return -1;
}
