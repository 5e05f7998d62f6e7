/* The form without a command, as older scripts use it: its flags choose a command. */
#include "shell/shell.h"

#include <string.h>
#include <unistd.h>

/* Puts a word in front of the positional arguments. */
static int prepend(struct options *o, const char *word)
{
    if (!vec_push(&o->positionals, word))
        return -MRD_ENOMEM;
    memmove(o->positionals.p + 1, o->positionals.p, (o->positionals.n - 1) * sizeof *o->positionals.p);
    o->positionals.p[0] = word;
    return 0;
}

static int check_combinations(const struct options *o, struct error *err)
{
    bool query = o->classic_query_file || o->query_string;
    if (o->summary && o->run_metrics)
        return error_set(err, -MRD_EINVALID, "--summary and --run-metrics exclude each other");
    if (o->classic_export && query)
        return error_set(err, -MRD_EINVALID, "-e cannot be combined with -q or -Q");
    if (o->perf_file && (o->interactive || (!query && !o->summary && !o->run_metrics)))
        return error_set(err, -MRD_EINVALID, "-p needs a query and no interactive shell");
    if (o->summary && o->positionals.n > 1)
        return error_set(err, -MRD_EINVALID, "--summary takes one trace file; specs are given by --summary-spec");
    if (o->positionals.n == 0 && !o->httpd && !o->stdiod)
        return error_set(err, -MRD_EINVALID, "a trace file is needed (see tp_shell --help)");
    return 0;
}

int classic_choose(struct options *o, const struct command **cmd, struct error *err)
{
    const char *name = "interactive", *last = o->positionals.n > 1 ? o->positionals.p[o->positionals.n - 1] : "";
    int rc = check_combinations(o, err);
    if (rc == 0 && strpbrk(last, " ;") && access(last, F_OK) != 0)
        rc = error_set(err, -MRD_EINVALID, "'%.100s' is not a file; to run SQL: tp_shell query TRACE 'SQL'", last);
    if (rc < 0)
        return rc;
    if (o->httpd || o->stdiod) {
        name = "server";
        rc = prepend(o, o->httpd ? "http" : "stdio");
        o->port = o->http_port;
        o->ip_address = o->http_ip_address;
        o->additional_cors_origins = o->http_additional_cors_origins;
    } else if (o->summary) {
        name = "summarize";
        o->metrics_v2 = o->summary_metrics_v2;
        o->metadata_query = o->summary_metadata_query;
        o->format = o->summary_format;
    } else if (o->run_metrics) {
        name = "metrics";
    } else if (o->classic_export) {
        name = "export";
        o->output = o->classic_export;
        rc = prepend(o, "sqlite");
    } else if (o->classic_query_file || o->query_string) {
        name = "query";
        o->query_file = o->classic_query_file;
    }
    *cmd = command_find(name);
    return rc < 0 ? error_set(err, rc, "out of memory") : 0;
}
