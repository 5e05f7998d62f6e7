/* tp_shell check: for CI: exit 1 when a trace has lost data or shows errors. */
#include "base/output_file.h"
#include "base/suggest.h"
#include "shell/commands/check.h"
#include "shell/shell.h"

#include <sys/stat.h>
#include <unistd.h>

static int check_one(struct shell *sh, const char *path, const struct check_rules *rules, struct check_result *result)
{
    struct error err = {0};
    struct stat st;
    *result = (struct check_result){.path = path};
    sh->no_health_report = true;
    int rc = session_load(sh, &path, 1, &err);
    if (rc == 0 && tp_loaded_bytes(sh->tp) == 0 && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
        rc = error_set(&err, -MRD_EFORMAT, "the file is empty: nothing was recorded");
    if (rc < 0) {
        result->failure = mem_strdup(err.text);
        rc = result->failure ? 0 : -MRD_ENOMEM;
    } else {
        rc = check_collect(sh->tp, rules, &result->problems);
        result->diagnostics = check_diagnostics(sh->tp);
    }
    tp_close(sh->tp); /* names and texts of stats are constants */
    sh->tp = NULL;
    return rc;
}

static int write_report(const struct shell *sh, const struct check_format *format, const struct check_result *results,
                        size_t n, struct error *err)
{
    struct output_file file = {.fd = STDOUT_FILENO};
    int rc = sh->opt.output ? output_file_open(&file, sh->opt.output, err) : 0;
    if (rc < 0)
        return rc;
    struct text_out *out = mem_alloc(sizeof *out);
    if (out) {
        out_init(out, file.fd);
        format->print(out, results, n);
        rc = out_flush(out, err);
    } else {
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    }
    mem_free(out);
    return output_file_close(&file, rc, err);
}

int cmd_check(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    const char *name = sh->opt.format ? sh->opt.format : "text";
    const struct check_format *format = check_format_find(name);
    struct check_rules rules;
    if (!format) {
        static const char *const names[] = {"text", "json", "junit", "github"};
        return suggest_refuse(err, "--format", name, names, sizeof names / sizeof *names);
    }
    if (args->n == 0)
        return error_set(err, -MRD_EINVALID, "check: a trace file is needed, e.g. tp_shell check trace.pftrace");
    int rc = check_rules_parse(&rules, sh->opt.fail_on, &sh->opt.allow, err);
    if (rc < 0)
        return rc;
    struct check_result *results = mem_zalloc(args->n * sizeof *results);
    rc = results ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    bool failed = false;
    for (size_t i = 0; i < args->n && rc == 0; i++) {
        rc = check_one(sh, args->p[i], &rules, &results[i]);
        failed |= results[i].failure || results[i].problems.failing;
    }
    if (rc == 0)
        rc = write_report(sh, format, results, args->n, err);
    for (size_t i = 0; i < args->n && results; i++) {
        mem_free((char *)results[i].failure);
        mem_free(results[i].diagnostics);
        vec_free(&results[i].problems);
    }
    mem_free(results);
    return rc < 0 ? rc : failed;
}
