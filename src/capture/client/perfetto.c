/* The perfetto applet: the command line. */
#include "capture/client/perfetto.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "capture/common/applet.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_FOR_START_MS 30000

static const char usage[] =
    "Usage: perfetto [options] [-o FILE] [CATEGORY | GROUP/EVENT ...]\n"
    "  -o, --out FILE            where the trace goes; - is standard output\n"
    "  -c, --config FILE         trace config; - is standard input, :test is built in\n"
    "      --txt                 the config is in text form\n"
    "      --txt-lossy           as --txt, fields that are not known are skipped\n"
    "      --no-clobber          do not overwrite an existing file\n"
    "  -d, --background          return at once, print the pid\n"
    "  -D, --background-wait     return when all data sources have started\n"
    "      --notify-fd FD        gets a byte then: 0 started, 1 failed, 2 too late\n"
    "Without a config:\n"
    "  -t, --time N[ms|s|m|h]    duration (10s)\n"
    "  -b, --buffer N[kb|mb|gb]  buffer size (32mb)\n"
    "  -s, --size N[kb|mb|gb]    write into the file while recording, up to this size\n"
    "  -a, --app NAME            atrace app\n"
    "Sessions:\n"
    "      --detach KEY, --attach KEY [--stop], --is_detached KEY\n"
    "      --clone ID, --clone-by-name NAME, --clone-for-bugreport, --save-for-bugreport\n"
    "      --trigger NAME        fire a trigger (repeatable)\n"
    "      --query [--long], --query-raw\n"
    "Other:\n"
    "      --add-attribute K[=V], --alert-id N, --config-id N, --config-uid N, --subscription-id N\n"
    "      --no-guardrails, --reset-guardrails, --version, -h, --help\n"
    "Exit status: 0 the trace is there; 1 it is not (also when the service refuses the session), or is not whole;\n"
    "  2 no such detached session; 3 the trace is there, but nothing that was asked for could start.\n"
    "Examples:\n"
    "  perfetto -t 10s -b 64mb -o trace.pftrace sched/sched_switch sched/sched_waking\n"
    "  perfetto --txt -c config.txt -o trace.pftrace      until the config's duration_ms, or Ctrl-C\n"
    "  perfetto --txt -c config.txt --detach night        … and in the morning:\n"
    "  perfetto --attach night --stop -o trace.pftrace\n";

enum {
    OPT_TXT = 256,
    OPT_TXT_LOSSY,
    OPT_NO_GUARDRAILS,
    OPT_RESET_GUARDRAILS,
    OPT_ANDROID,
    OPT_ALERT_ID,
    OPT_CONFIG_ID,
    OPT_CONFIG_UID,
    OPT_SUBSCRIPTION_ID,
    OPT_DETACH,
    OPT_ATTACH,
    OPT_IS_DETACHED,
    OPT_STOP,
    OPT_CLONE,
    OPT_CLONE_NAME,
    OPT_BUGREPORT,
    OPT_QUERY,
    OPT_QUERY_RAW,
    OPT_LONG,
    OPT_ATTRIBUTE,
    OPT_VERSION,
    OPT_NOTIFY_FD,
    OPT_NO_CLOBBER,
    OPT_TRIGGER,
};

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    {"config", required_argument, NULL, 'c'},
    {"out", required_argument, NULL, 'o'},
    {"background", no_argument, NULL, 'd'},
    {"background-wait", no_argument, NULL, 'D'},
    {"time", required_argument, NULL, 't'},
    {"buffer", required_argument, NULL, 'b'},
    {"size", required_argument, NULL, 's'},
    {"app", required_argument, NULL, 'a'},
    {"txt", no_argument, NULL, OPT_TXT},
    {"txt-lossy", no_argument, NULL, OPT_TXT_LOSSY},
    {"no-guardrails", no_argument, NULL, OPT_NO_GUARDRAILS},
    {"reset-guardrails", no_argument, NULL, OPT_RESET_GUARDRAILS},
    {"upload", no_argument, NULL, OPT_ANDROID},
    {"dropbox", required_argument, NULL, OPT_ANDROID},
    {"alert-id", required_argument, NULL, OPT_ALERT_ID},
    {"config-id", required_argument, NULL, OPT_CONFIG_ID},
    {"config-uid", required_argument, NULL, OPT_CONFIG_UID},
    {"subscription-id", required_argument, NULL, OPT_SUBSCRIPTION_ID},
    {"detach", required_argument, NULL, OPT_DETACH},
    {"attach", required_argument, NULL, OPT_ATTACH},
    {"is_detached", required_argument, NULL, OPT_IS_DETACHED},
    {"stop", no_argument, NULL, OPT_STOP},
    {"clone", required_argument, NULL, OPT_CLONE},
    {"clone-by-name", required_argument, NULL, OPT_CLONE_NAME},
    {"clone-for-bugreport", no_argument, NULL, OPT_BUGREPORT},
    {"save-for-bugreport", no_argument, NULL, OPT_BUGREPORT},
    {"save-all-for-bugreport", no_argument, NULL, OPT_BUGREPORT},
    {"query", no_argument, NULL, OPT_QUERY},
    {"query-raw", no_argument, NULL, OPT_QUERY_RAW},
    {"long", no_argument, NULL, OPT_LONG},
    {"add-attribute", required_argument, NULL, OPT_ATTRIBUTE},
    {"version", no_argument, NULL, OPT_VERSION},
    {"notify-fd", required_argument, NULL, OPT_NOTIFY_FD},
    {"no-clobber", no_argument, NULL, OPT_NO_CLOBBER},
    {"trigger", required_argument, NULL, OPT_TRIGGER},
    {0},
};

/* Words that may come several times; they live until the process ends its work. */
struct words {
    VEC(const char *) apps;
    VEC(const char *) attributes;
    VEC(const char *) triggers;
};

static int out_of_memory(void)
{
    fprintf(stderr, "perfetto: out of memory\n");
    return EXIT_FAILED;
}

/* -1: go on; else the exit code. Long: one case an option. */
static int parse_options(int argc, char **argv, struct perfetto_options *o, struct words *words)
{
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "hc:o:dDt:b:s:a:", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->config_path = optarg;
            break;
        case 'o':
            o->out = optarg;
            break;
        case 'd':
            o->background = true;
            break;
        case 'D':
            o->background = o->background_wait = true;
            break;
        case 't':
            o->time = optarg;
            o->light = true;
            break;
        case 'b':
            o->buffer = optarg;
            o->light = true;
            break;
        case 's':
            o->size = optarg;
            o->light = true;
            break;
        case 'a':
            if (!vec_push(&words->apps, optarg))
                return out_of_memory();
            o->light = true;
            break;
        case OPT_TXT:
            o->text = true;
            break;
        case OPT_TXT_LOSSY:
            o->text_lossy = true;
            break;
        case OPT_NO_GUARDRAILS:
            o->no_guardrails = true;
            break;
        case OPT_RESET_GUARDRAILS:
            return EXIT_OK;
        case OPT_ANDROID:
            fprintf(stderr, "perfetto: --upload and --dropbox exist on Android only\n");
            return EXIT_FAILED;
        case OPT_ALERT_ID:
            o->alert_id = strtoll(optarg, NULL, 10);
            o->has_alert_id = true;
            break;
        case OPT_CONFIG_ID:
            o->config_id = strtoll(optarg, NULL, 10);
            o->has_config_id = true;
            break;
        case OPT_CONFIG_UID:
            o->config_uid = (int32_t)strtol(optarg, NULL, 10);
            o->has_config_uid = true;
            break;
        case OPT_SUBSCRIPTION_ID:
            o->subscription_id = strtoll(optarg, NULL, 10);
            o->has_subscription_id = true;
            break;
        case OPT_DETACH:
            o->detach = optarg;
            break;
        case OPT_ATTACH:
            o->attach = optarg;
            break;
        case OPT_IS_DETACHED:
            o->is_detached = optarg;
            break;
        case OPT_STOP:
            o->stop = true;
            break;
        case OPT_CLONE:
            o->clone_id = optarg;
            break;
        case OPT_CLONE_NAME:
            o->clone_name = optarg;
            break;
        case OPT_BUGREPORT:
            o->clone_for_bugreport = true;
            break;
        case OPT_QUERY:
            o->query = true;
            break;
        case OPT_QUERY_RAW:
            o->query = o->query_raw = true;
            break;
        case OPT_LONG:
            o->query_long = true;
            break;
        case OPT_ATTRIBUTE:
            if (!vec_push(&words->attributes, optarg))
                return out_of_memory();
            break;
        case OPT_VERSION:
            printf("Meridian v%s\n", MERIDIAN_VERSION);
            return EXIT_OK;
        case OPT_NOTIFY_FD:
            o->notify_fd = atoi(optarg);
            break;
        case OPT_NO_CLOBBER:
            o->no_clobber = true;
            break;
        case OPT_TRIGGER:
            if (!vec_push(&words->triggers, optarg))
                return out_of_memory();
            break;
        default:
            fputs(usage, stderr);
            return EXIT_FAILED;
        }
    }
    o->categories = (const char *const *)(argv + optind);
    o->n_categories = (unsigned)(argc - optind);
    o->light |= o->n_categories > 0;
    o->apps = words->apps.p;
    o->n_apps = (unsigned)words->apps.n;
    o->attributes = words->attributes.p;
    o->n_attributes = (unsigned)words->attributes.n;
    o->triggers = words->triggers.p;
    o->n_triggers = (unsigned)words->triggers.n;
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
    if (o->n_attributes && !c->trace_attributes) {
        c->trace_attributes = malloc(sizeof *c->trace_attributes);
        if (!c->trace_attributes)
            return false;
        mrd__trace_attributes__init(c->trace_attributes);
    }
    for (unsigned i = 0; i < o->n_attributes; i++)
        if (!add_attribute(c->trace_attributes, o->attributes[i]))
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
    if (o->has_alert_id) {
        m->has_triggering_alert_id = true;
        m->triggering_alert_id = o->alert_id;
    }
    if (o->has_config_id) {
        m->has_triggering_config_id = true;
        m->triggering_config_id = o->config_id;
    }
    if (o->has_config_uid) {
        m->has_triggering_config_uid = true;
        m->triggering_config_uid = o->config_uid;
    }
    if (o->has_subscription_id) {
        m->has_triggering_subscription_id = true;
        m->triggering_subscription_id = o->subscription_id;
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
        return fail("a config makes no sense here");
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
    struct perfetto_options o = {.notify_fd = -1};
    struct words words = {0};
    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_FAILED;
    }
    umask(0);
    int rc = parse_options(argc, argv, &o, &words);
    if (rc < 0)
        rc = o.query ? perfetto_query(&o) : o.n_triggers ? perfetto_trigger(o.triggers, o.n_triggers) : record(&o);
    vec_free(&words.apps);
    vec_free(&words.attributes);
    vec_free(&words.triggers);
    return rc;
}
