/* Chooses events by the names of a config. */
#include "capture/probes/ftrace/event_set.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/utsname.h>

bool event_selection_add(struct event_selection *sel, struct kernel_event *event)
{
    for (size_t i = 0; i < sel->events.n; i++)
        if (sel->events.p[i] == event)
            return true;
    return vec_push(&sel->events, event);
}

static void note(struct event_selection *sel, string_list *list, const char *text)
{
    if (!text || !vec_push(list, text))
        sel->strings.failed = true;
}

void event_selection_unknown(struct event_selection *sel, const char *name)
{
    note(sel, &sel->unknown, arena_strndup(&sel->strings, name, strlen(name)));
}

void event_selection_failed(struct event_selection *sel, const char *group, const char *name, const char *why)
{
    note(sel, &sel->failed, arena_printf(&sel->strings, "%s/%s: %s", group, name, why));
}

/* One event of a group; `quietly` for those that a wildcard brought along and that the config does not want. */
static bool add_one(struct event_selection *sel, struct event_set *set, const struct ftrace_config *config,
                    const char *group, const char *name, bool from_wildcard)
{
    struct kernel_event *e;
    struct error err = {0};
    int rc = event_set_get(set, group, name, &e, &err);
    if (rc == -MRD_ENOTFOUND)
        return false;
    if (rc)
        event_selection_failed(sel, group, name, err.text);
    else if (!e->typed && config->disable_generic_events) {
        if (!from_wildcard)
            event_selection_failed(sel, group, name, "no typed message, and generic events are disabled");
    } else if (!event_selection_add(sel, e)) {
        sel->strings.failed = true;
    }
    return true;
}

/* Walks a directory of `events`; the callback gets each name that is not hidden. */
static bool each_entry(const struct event_set *set, const char *name, bool (*fn)(void *ctx, const char *entry),
                       void *ctx)
{
    char path[PATH_MAX];
    bool any = false;
    if (!tracefs_path(set->fs, path, name))
        return false;
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.' && d->d_type == DT_DIR)
            any |= fn(ctx, d->d_name);
    closedir(dir);
    return any;
}

struct event_choice {
    struct event_selection *sel;
    struct event_set *set;
    const struct ftrace_config *config;
    const char *group; /* of add_group_entry() */
    const char *name;  /* of add_by_name() */
};

static bool add_group_entry(void *ctx, const char *name)
{
    struct event_choice *w = ctx;
    return add_one(w->sel, w->set, w->config, w->group, name, true);
}

static bool add_by_name(void *ctx, const char *group)
{
    struct event_choice *w = ctx;
    return add_one(w->sel, w->set, w->config, group, w->name, false);
}

/* A name without a group: the typed events first, as they say which group is meant, then every group that has one. */
static bool add_bare(struct event_choice *w)
{
    for (size_t i = 0; i < ftrace_event_count(); i++) {
        const struct ftrace_event_desc *d = ftrace_event_at(i);
        if (d->tracefs_name && strcmp(d->tracefs_name, w->name) == 0 &&
            add_one(w->sel, w->set, w->config, d->group, w->name, false))
            return true;
    }
    return each_entry(w->set, "events", add_by_name, w);
}

static void add_request(struct event_choice *w, const char *request, bool optional)
{
    char group[256], path[300];
    const char *slash = strpbrk(request, "/:");
    size_t n = slash ? (size_t)(slash - request) : 0;
    bool found = false;
    w->name = slash ? slash + 1 : request;
    if (n >= sizeof group || !*w->name || strpbrk(w->name, "/.") || (slash && n == 0) ||
        (n && memchr(request, '.', n))) {
        event_selection_unknown(w->sel, request);
        return;
    }
    memcpy(group, request, n);
    group[n] = 0;
    if (!slash) {
        found = add_bare(w);
    } else if (strcmp(w->name, "*") == 0) {
        w->group = group;
        snprintf(path, sizeof path, "events/%s", group);
        found = each_entry(w->set, path, add_group_entry, w);
    } else {
        found = add_one(w->sel, w->set, w->config, group, w->name, false);
    }
    if (!found && !optional)
        event_selection_unknown(w->sel, request);
}

static void atrace_error(struct event_selection *sel, const char *what, const char *why)
{
    const char *before = sel->atrace_errors ? sel->atrace_errors : "";
    char *text = arena_printf(&sel->strings, "%s%s%s: %s", before, *before ? "; " : "", what, why);
    sel->atrace_errors = text ? text : sel->atrace_errors;
}

/* Categories stand for kernel events; what apps tell through Android's atrace has no counterpart here. */
static void add_categories(struct event_choice *w)
{
    const struct ftrace_config *c = w->config;
    for (size_t i = 0; i < c->atrace_categories.n && !c->atrace_userspace_only; i++) {
        const char *const *list = atrace_category_events(c->atrace_categories.p[i]);
        if (!list)
            atrace_error(w->sel, c->atrace_categories.p[i], "not a category of kernel events");
        for (; list && *list; list++) /* a category names events of many kernels */
            add_request(w, *list, true);
    }
    if (c->atrace_userspace_only && c->atrace_categories.n)
        atrace_error(w->sel, "atrace_userspace_only", "atrace categories of userspace exist on Android only");
    if (c->atrace_apps.n)
        atrace_error(w->sel, "atrace_apps", "apps are traced on Android only; use track_event here");
    if (c->prefer_sdk.n)
        atrace_error(w->sel, "atrace_categories_prefer_sdk", "only Android's apps have both");
}

/* Both events of system calls, of which only the named calls are kept. */
static void add_calls(struct event_choice *w)
{
    struct utsname u = {0};
    uname(&u);
    const char *const *names = syscall_names(u.machine);
    w->sel->some_calls = w->config->syscalls.n > 0;
    for (size_t i = 0; i < w->config->syscalls.n; i++) {
        int call = syscall_number(names, w->config->syscalls.p[i]);
        if (call >= 0)
            call_set_add(&w->sel->calls, (unsigned)call);
        else
            event_selection_failed(w->sel, "syscall_events", w->config->syscalls.p[i],
                                   "not a system call of this machine");
    }
    if (w->sel->some_calls) {
        add_request(w, "raw_syscalls/sys_enter", false);
        add_request(w, "raw_syscalls/sys_exit", false);
    }
}

static bool add_group(void *ctx, const char *group)
{
    char request[300];
    snprintf(request, sizeof request, "%s/*", group);
    add_request(ctx, request, true);
    return true;
}

/* What a buffer may hold that somebody else has filled: the events that are enabled in its instance and, when there are
 * none any more, all that the kernel has. Prints need no enabling. */
static void add_frozen(struct event_choice *w)
{
    char *text, *save = NULL;
    size_t len, before = w->sel->events.n;
    if (tracefs_read(w->set->fs, "set_event", &text, &len, NULL))
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        add_request(w, line, true);
    mem_free(text);
    if (w->sel->events.n == before)
        each_entry(w->set, "events", add_group, w);
    add_request(w, "ftrace/print", true);
}

int event_selection_resolve(struct event_selection *sel, struct event_set *set, const struct ftrace_config *config,
                            struct error *err)
{
    struct event_choice w = {.sel = sel, .set = set, .config = config};
    for (size_t i = 0; i < config->events.n; i++)
        add_request(&w, config->events.p[i], false);
    add_categories(&w);
    add_calls(&w);
    if (config->frozen)
        add_frozen(&w);
    return sel->strings.failed ? error_set(err, -MRD_ENOMEM, "out of memory for the events of a session") : 0;
}

/* Compact wakings do not say who woke: a reader takes the thread that the last switch of the cpu left running. */
static bool has_compact_switch(const struct event_selection *sel)
{
    for (size_t i = 0; i < sel->events.n; i++)
        if (sel->events.p[i]->can_compact && sel->events.p[i]->compact.kind == PROGRAM_COMPACT_SWITCH)
            return true;
    return false;
}

static const struct event_program *choose(const struct kernel_event *e, const struct ftrace_config *config,
                                          bool compact)
{
    if (e->can_compact && compact)
        return &e->compact;
    if (config->throttle_rss_stat && e->throttled.throttled)
        return &e->throttled;
    return !e->typed && config->legacy_generic_events ? &e->legacy : &e->program;
}

/* The program, or a copy of it that keeps only what the session wants of the event. NULL: out of memory. */
static const struct event_program *filtered(struct event_selection *sel, const struct event_program *p,
                                            const struct ftrace_config *config)
{
    enum { CALL_ID = 1, PRINT_BUF = 2 }; /* fields of the messages */
    bool is_call = p->proto_id == FTRACE_EVENT_SYS_ENTER || p->proto_id == FTRACE_EVENT_SYS_EXIT;
    bool by_call = is_call && sel->some_calls, by_text = p->proto_id == FTRACE_EVENT_PRINT && config->print_rules.n;
    const struct program_step *step = NULL;
    for (uint32_t i = 0; (by_call || by_text) && i < p->n_steps; i++)
        if (p->steps[i].field_no == (by_call ? CALL_ID : PRINT_BUF))
            step = &p->steps[i];
    if (!step || (by_call && step->code != STEP_S64))
        return p;
    struct event_program *copy = arena_alloc(&sel->strings, sizeof *copy);
    struct event_filter *filter = arena_alloc(&sel->strings, sizeof *filter);
    if (!copy || !filter)
        return NULL;
    *filter = (struct event_filter){.calls = by_call ? &sel->calls : NULL,
                                    .rules = config->print_rules.p,
                                    .n_rules = config->print_rules.n,
                                    .offset = step->offset};
    *copy = *p;
    copy->filter = filter;
    return copy;
}

int event_selection_build(struct event_selection *sel, const struct ftrace_config *config, struct error *err)
{
    mem_free(sel->by_id);
    sel->by_id = NULL;
    sel->n = 0;
    for (size_t i = 0; i < sel->events.n; i++)
        if (sel->events.p[i]->id >= sel->n)
            sel->n = sel->events.p[i]->id + 1u;
    if (!sel->n)
        return 0;
    sel->by_id = mem_zalloc(sel->n * sizeof *sel->by_id);
    if (!sel->by_id)
        return error_set(err, -MRD_ENOMEM, "out of memory for the events of a session");
    bool compact = config->compact_sched && has_compact_switch(sel);
    for (size_t i = 0; i < sel->events.n; i++) {
        const struct event_program *p = filtered(sel, choose(sel->events.p[i], config, compact), config);
        if (!p)
            return error_set(err, -MRD_ENOMEM, "out of memory for the events of a session");
        sel->by_id[sel->events.p[i]->id] = p;
    }
    return 0;
}

void event_selection_free(struct event_selection *sel)
{
    vec_free(&sel->events);
    vec_free(&sel->unknown);
    vec_free(&sel->failed);
    mem_free(sel->by_id);
    arena_free(&sel->strings);
    memset(sel, 0, sizeof *sel);
}
