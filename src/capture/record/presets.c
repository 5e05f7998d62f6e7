/* Presets: names into events. */
#include "capture/record/presets.h"

#include "base/alloc.h"
#include "base/suggest.h"
#include "capture/probes/ftrace/tracefs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct preset {
    const char *name, *shows, *events, *sources;
} presets[] = {
#define PRESET(name, shows, events, sources) {name, shows, events, sources},
#include "capture/record/presets.def"
#undef PRESET
};
enum { N_PRESETS = sizeof presets / sizeof *presets };
static const char *const names[] = {
#define PRESET(name, ...) name,
#include "capture/record/presets.def"
#undef PRESET
    "all"};

const char presets_unprivileged[] = "data_sources { config { name: \"linux.process_stats\" process_stats_config {"
                                    "  scan_all_processes_on_start: true proc_stats_poll_ms: 500 } } }\n"
                                    "data_sources { config { name: \"linux.sys_stats\" sys_stats_config {"
                                    "  stat_period_ms: 250 stat_counters: STAT_CPU_TIMES stat_counters: STAT_FORK_COUNT"
                                    "  meminfo_period_ms: 500 vmstat_period_ms: 500 diskstat_period_ms: 500 } } }\n"
                                    "data_sources { config { name: \"linux.system_info\" } }\n";

bool presets_kernel_is_open(void)
{
    struct tracefs fs;
    struct error err = {0};
    char path[PATH_MAX];
    return geteuid() == 0 || (tracefs_open(&fs, NULL, NULL, &err) == 0 && tracefs_path(&fs, path, "tracing_on") &&
                              access(path, R_OK | W_OK) == 0);
}

/* False only when this kernel's list of events can be read and does not have it. */
static bool kernel_may_have(const char *event)
{
    struct tracefs fs;
    struct error err = {0};
    char name[160];
    snprintf(name, sizeof name, "events/%.140s", event);
    return tracefs_open(&fs, NULL, NULL, &err) != 0 || !tracefs_exists(&fs, "events/sched") ||
           tracefs_exists(&fs, name);
}

static bool has(const struct text_list *l, const char *text)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->p[i], text) == 0)
            return true;
    return false;
}

static int add(struct presets *p, const char *event, struct error *err)
{
    if (has(&p->events, event) || vec_push(&p->events, event))
        return 0;
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

/* Those of one preset, cut out of `memory`. */
static int add_preset(struct presets *p, char *events, bool here, char *missing, size_t size, struct error *err)
{
    int rc = 0;
    char *rest = NULL;
    for (char *e = strtok_r(events, " ", &rest); e && !rc; e = strtok_r(NULL, " ", &rest)) {
        if (!here || kernel_may_have(e))
            rc = add(p, e, err);
        else if (!strstr(missing, e))
            snprintf(missing + strlen(missing), size - strlen(missing), "%s%s", *missing ? ", " : "", e);
    }
    return rc;
}

static int check_name(const char *name, struct error *err)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return 0;
    return suggest_refuse(err, "--preset", name, names, sizeof names / sizeof *names);
}

int presets_expand(struct presets *p, const struct text_list *wanted, const struct text_list *words, bool here,
                   struct error *err)
{
    char missing[1024] = "";
    size_t bytes = 0, used = 0;
    int rc = 0;
    *p = (struct presets){0};
    for (size_t i = 0; i < wanted->n && !rc; i++)
        rc = check_name(wanted->p[i], err);
    for (size_t k = 0; k < N_PRESETS; k++)
        bytes += strlen(presets[k].events) + 1;
    p->memory = mem_alloc(bytes);
    if (!rc && !p->memory)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    for (size_t k = 0; k < N_PRESETS && !rc; k++) {
        if (!has(wanted, presets[k].name) && !has(wanted, "all"))
            continue;
        char *copy = strcpy(p->memory + used, presets[k].events);
        used += strlen(copy) + 1;
        rc = add_preset(p, copy, here, missing, sizeof missing, err);
        snprintf(p->sources + strlen(p->sources), sizeof p->sources - strlen(p->sources), "%s\n", presets[k].sources);
    }
    for (size_t i = 0; i < words->n && !rc; i++)
        rc = add(p, words->p[i], err);
    if (!rc && *missing)
        fprintf(stderr, "record: this kernel does not have %s; the rest is recorded\n", missing);
    return rc;
}

void presets_free(struct presets *p)
{
    vec_free(&p->events);
    mem_free(p->memory);
}
