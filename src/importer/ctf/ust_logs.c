/* Lines of logs among LTTng's events of user space: of tracef and tracelog, and of the agents that pass on what Java
 * and Python programs log. */
#include "importer/ctf/ctf_internal.h"

#include "importer/track/process_tracker.h"

#include <stdio.h>
#include <string.h>

/* Priorities, in Android's numbers. */
enum { VERBOSE = 2, DEBUG, INFO, WARN, ERROR, FATAL };

/* The least level of a logger that is so urgent. */
struct level {
    int64_t least;
    uint32_t prio;
};
static const struct level java[] = {{1000, ERROR}, {900, WARN}, {800, INFO}, {500, DEBUG}, {INT64_MIN, VERBOSE}};
static const struct level log4j[] = {{50000, FATAL}, {40000, ERROR}, {30000, WARN},
                                     {20000, INFO},  {10000, DEBUG}, {INT64_MIN, VERBOSE}};
static const struct level python[] = {{50, FATAL}, {40, ERROR}, {30, WARN},
                                      {20, INFO},  {10, DEBUG}, {INT64_MIN, VERBOSE}};

/* Those whose lines say their own level; of others the event's class does. */
static const struct logger {
    const char *provider;
    const char *level; /* the field that says it */
    const struct level *levels;
} loggers[] = {
    {"lttng_jul", "log_level", java},
    {"lttng_log4j", "log_level", log4j},
    {"lttng_log4j2", "log_level", log4j},
    {"lttng_python", "int_loglevel", python},
};

/* Those of a class that are more urgent than to debug. */
static const struct {
    const char *name;
    uint32_t prio;
} class_levels[] = {{"emergency", FATAL}, {"alert", FATAL}, {"critical", FATAL}, {"error", ERROR},
                    {"warning", WARN},    {"notice", INFO}, {"info", INFO}};

static const struct logger *logger_of(struct slice provider)
{
    for (size_t i = 0; i < sizeof loggers / sizeof *loggers; i++)
        if (slice_eq_str(provider, loggers[i].provider))
            return &loggers[i];
    return NULL;
}

static uint32_t priority(const struct ctf_row *e, const struct logger *l)
{
    const char *level = e->use->class->log_level;
    int64_t v;
    if (l) {
        const struct level *at = l->levels;
        if (!ctf_item_int(e->fields, l->level, &v))
            return INFO;
        while (v < at->least)
            at++;
        return at->prio;
    }
    for (size_t i = 0; level && i < sizeof class_levels / sizeof *class_levels; i++)
        if (strcmp(level, class_levels[i].name) == 0)
            return class_levels[i].prio;
    return DEBUG;
}

static strid text(const struct ctf_row *e, const char *field)
{
    const struct ctf_item *item = ctf_item_find(e->fields, field);
    if (!item || item->kind != CTF_ITEM_TEXT)
        return 0;
    char *utf8 = ctf_text_utf8(item);
    strid id = utf8 ? import_str(e->m->im, utf8) : import_slice(e->m->im, item->text);
    mem_free(utf8);
    return id;
}

/* Who logs: a logger's name, else the line of the source. */
static strid tag(const struct ctf_row *e)
{
    strid name = text(e, "logger_name"), file = name ? 0 : text(e, "file");
    int64_t line;
    if (!file || !ctf_item_int(e->fields, "line", &line))
        return name ? name : file;
    return strpool_printf(&e->m->st->strings, "%s:%lld", strpool_cstr(&e->m->st->strings, file), (long long)line);
}

void ust_log(const struct ctf_row *e)
{
    const char *name = e->use->class->name;
    struct slice provider = slice_of(name, strcspn(name, ":"));
    strid msg = text(e, "msg");
    uint32_t utid = ust_thread(e);
    logs_insert(e->m->st, &(struct logs_row){.ts = e->ts,
                                             .utid = utid == UTID_NONE ? COL_NULL : (int64_t)utid,
                                             .prio = priority(e, logger_of(provider)),
                                             .log_source = import_slice(e->m->im, provider),
                                             .tag = tag(e),
                                             .msg = msg ? msg : import_str(e->m->im, ""),
                                             .arg_set_id = e->args});
}
