/* The perfetto applet: the command line. */
#include "capture/client/perfetto.h"

#include "base/alloc.h"
#include "capture/common/applet.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_FOR_START_MS 30000

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct perfetto_options, __VA_ARGS__),
#include "capture/client/perfetto_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct perfetto_options, categories)};

static int out_of_memory(void)
{
    fprintf(stderr, "perfetto: out of memory\n");
    return EXIT_FAILED;
}

/* -1: go on; else the exit code. */
static int parse_options(int argc, char **argv, struct perfetto_options *o)
{
    if (!applet_flags("perfetto", &flags, o, argc, argv))
        return EXIT_FAILED;
    if (argc < 2 || o->help) {
        applet_help(o->help ? stdout : stderr, "perfetto", &flags);
        return o->help ? EXIT_OK : EXIT_FAILED;
    }
    if (o->version)
        printf("Meridian v%s\n", MERIDIAN_VERSION);
    if (o->version || o->reset_guardrails)
        return EXIT_OK;
    o->background |= o->background_wait;
    o->query |= o->query_raw;
    o->clone_for_bugreport |= o->save_for_bugreport || o->save_all_for_bugreport;
    o->light = o->time || o->buffer || o->size || o->apps.n || o->categories.n;
    if (o->notify.given)
        o->notify_fd = (int)o->notify.value;
    return -1;
}

/* Memory of what follows is freed by protobuf-c. False: there was not enough. */
static bool add_attribute(Mrd__TraceAttributes *a, const char *text)
{
    const char *eq = strchr(text, '=');
    void *list = realloc(a->attribute, (a->n_attribute + 1) * sizeof *a->attribute);
    if (!list)
        return false;
    a->attribute = list;
    Mrd__TraceAttributes__Attribute *one = malloc(sizeof *one);
    if (!one)
        return false;
    mrd__trace_attributes__attribute__init(one);
    a->attribute[a->n_attribute++] = one;
    one->key = strndup(text, eq ? (size_t)(eq - text) : strlen(text));
    if (eq) {
        one->value_case = MRD__TRACE_ATTRIBUTES__ATTRIBUTE__VALUE_STRING_VALUE;
        one->string_value = strdup(eq + 1);
    }
    return one->key && (!eq || one->string_value);
}

static bool add_attributes(const struct perfetto_options *o, Mrd__TraceConfig *c)
{
    if (o->attributes.n && !c->trace_attributes) {
        c->trace_attributes = malloc(sizeof *c->trace_attributes);
        if (!c->trace_attributes)
            return false;
        mrd__trace_attributes__init(c->trace_attributes);
    }
    for (size_t i = 0; i < o->attributes.n; i++)
        if (!add_attribute(c->trace_attributes, o->attributes.p[i]))
            return false;
    return true;
}

/* What the command always says in a config. False: out of memory. */
static bool complete_config(const struct perfetto_options *o, Mrd__TraceConfig *c)
{
    if (!c->has_enable_extra_guardrails || o->no_guardrails) {
        c->has_enable_extra_guardrails = true;
        c->enable_extra_guardrails = false;
    }
    if (!c->statsd_metadata) {
        c->statsd_metadata = malloc(sizeof *c->statsd_metadata);
        if (!c->statsd_metadata)
            return false;
        mrd__trace_config__statsd_metadata__init(c->statsd_metadata);
    }
    Mrd__TraceConfig__StatsdMetadata *m = c->statsd_metadata;
    if (o->alert_id.given) {
        m->has_triggering_alert_id = true;
        m->triggering_alert_id = o->alert_id.value;
    }
    if (o->config_id.given) {
        m->has_triggering_config_id = true;
        m->triggering_config_id = o->config_id.value;
    }
    if (o->config_uid.given) {
        m->has_triggering_config_uid = true;
        m->triggering_config_uid = (int32_t)o->config_uid.value;
    }
    if (o->subscription_id.given) {
        m->has_triggering_subscription_id = true;
        m->triggering_subscription_id = o->subscription_id.value;
    }
    if (!c->has_statsd_logging) {
        c->has_statsd_logging = true;
        c->statsd_logging = MRD__TRACE_CONFIG__STATSD_LOGGING__STATSD_LOGGING_DISABLED;
    }
    if (!c->trace_uuid_msb && !c->trace_uuid_lsb) {
        uint64_t r[2] = {0};
        (void)!getrandom(r, sizeof r, 0);
        c->has_trace_uuid_msb = c->has_trace_uuid_lsb = true;
        c->trace_uuid_msb = (int64_t)((r[0] & ~0xf000ull) | 0x4000);
        c->trace_uuid_lsb = (int64_t)((r[1] & ~(3ull << 62)) | 1ull << 63);
    }
    return add_attributes(o, c);
}

/* Forks; the child returns -1 and goes on, the parent gets its exit code. */
static int go_background(struct perfetto_options *o)
{
    int fds[2] = {-1, -1};
    if (o->background_wait && pipe2(fds, O_CLOEXEC) != 0)
        return EXIT_FAILED;
    pid_t pid = fork();
    if (pid < 0)
        return EXIT_FAILED;
    if (pid == 0) {
        setsid();
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0) {
            dup2(null, STDIN_FILENO);
            if (!o->out || strcmp(o->out, "-") != 0)
                dup2(null, STDOUT_FILENO);
        }
        if (o->background_wait) {
            close(fds[0]);
            o->notify_fd = fds[1];
        }
        return -1;
    }
    printf("%d\n", (int)pid);
    fflush(stdout);
    if (!o->background_wait)
        return EXIT_OK;
    close(fds[1]);
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    char status = 1;
    if (poll(&p, 1, WAIT_FOR_START_MS) == 0)
        return 2;
    return read(fds[0], &status, 1) == 1 ? status : EXIT_FAILED;
}

static int fail(const char *text)
{
    fprintf(stderr, "perfetto: %s\n", text);
    return EXIT_FAILED;
}

/* Recording and what is near it: which options go together. */
static int record(struct perfetto_options *o)
{
    struct error err = {0};
    Mrd__TraceConfig *config = NULL;
    bool clone = o->clone_id || o->clone_name || o->clone_for_bugreport;
    bool no_config = clone || o->attach || o->is_detached;
    if (o->stop && !o->attach)
        return fail("--stop needs --attach");
    if ((o->attach != NULL) + (o->detach != NULL) + (o->is_detached != NULL) + clone > 1)
        return fail("--attach, --detach, --is_detached and --clone exclude each other");
    if (no_config && (o->config_path || o->light))
        return fail("leave the config out: it is not used here");
    if (clone && !o->out)
        return fail("--out is needed");
    if (!no_config) {
        if (o->config_path && o->light)
            return fail("--config and the short form (-t, -b, -s, -a, categories) exclude each other");
        if (!o->config_path && !o->light)
            return fail("a config is needed: --config, or the short form; see --help");
        if (perfetto_load_config(o, &config, &err) != 0)
            return fail(err.text);
        if (config->n_activate_triggers) {
            int rc =
                perfetto_trigger((const char *const *)config->activate_triggers, (unsigned)config->n_activate_triggers);
            mrd__trace_config__free_unpacked(config, NULL);
            return rc;
        }
        if (!complete_config(o, config)) {
            mrd__trace_config__free_unpacked(config, NULL);
            return out_of_memory();
        }
    }
    bool path = config && config->output_path && *config->output_path;
    const Mrd__TraceConfig__CmdTraceStartDelay *delay = config ? config->cmd_trace_start_delay : NULL;
    int rc = -1;
    if (config && !path && !o->out && !(o->detach && !config->write_into_file))
        rc = fail("--out (or output_path in the config) is needed");
    else if (config && path && o->out)
        rc = fail("--out and output_path exclude each other");
    else if (path && access(config->output_path, F_OK) == 0)
        rc = fail("output_path exists already");
    else if (delay &&
             (!delay->has_min_delay_ms || !delay->has_max_delay_ms || delay->min_delay_ms > delay->max_delay_ms))
        rc = fail("cmd_trace_start_delay needs min_delay_ms and max_delay_ms, in this order");
    if (rc < 0 && o->background)
        rc = go_background(o);
    if (rc < 0)
        rc = perfetto_record(o, config);
    if (config)
        mrd__trace_config__free_unpacked(config, NULL);
    return rc;
}

int perfetto_main(int argc, char **argv)
{
    struct perfetto_options o = {.notify_fd = -1, .until_fd = -1, .standard_sources = true};
    umask(0);
    int rc = parse_options(argc, argv, &o);
    if (rc < 0)
        rc = o.query        ? perfetto_query(&o)
             : o.triggers.n ? perfetto_trigger(o.triggers.p, (unsigned)o.triggers.n)
                            : record(&o);
    flags_free(&flags, &o);
    return rc;
}
