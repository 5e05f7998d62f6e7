/* tp_shell util symbolize: packets that give a trace the names of its functions. */
#include "shell/commands/util.h"
#include "shell/convert/out_file.h"
#include "shell/trace_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int util_symbol_places(const struct shell *sh, struct symbol_places *p, struct error *err)
{
    const struct options *o = &sh->opt;
    const char *breakpad = getenv("BREAKPAD_SYMBOL_DIR");
    p->sources.debuginfod = o->debuginfod;
    if (o->symbol_paths)
        p->sources.this_machine = !o->no_auto_symbol_paths;
    else if (breakpad && breakpad[0])
        p->sources.breakpad = breakpad;
    if (o->symbol_paths)
        return symbol_places_add(p, o->symbol_paths, ',', err);
    int rc = p->sources.breakpad ? 0 : symbol_places_of_environment(p, err);
    p->sources.this_machine = !p->sources.breakpad && !p->sources.n_paths && !o->no_auto_symbol_paths;
    return rc;
}

void util_tell_symbols(const struct symbol_report *report, bool verbose)
{
    fprintf(stderr, "Symbols: %" PRIu64 " of %" PRIu64 " addresses named\n", report->n_named, report->n_asked);
    symbol_report_print(report, verbose);
}

int util_check_places(const struct symbol_places *p, struct error *err)
{
    const struct symbol_sources *s = &p->sources;
    struct stat st;
    if (!s->n_paths && !s->this_machine && !s->breakpad && !s->debuginfod)
        return error_set(err, -MRD_EINVALID,
                         "there is nowhere to look for symbols: give --symbol-paths DIR[,DIR...], or leave out "
                         "--no-auto-symbol-paths");
    for (size_t i = 0; i < s->n_paths; i++)
        if (stat(s->paths[i], &st) != 0)
            return error_set(err, -MRD_ENOTFOUND, "symbols: %s does not exist", s->paths[i]);
    return 0;
}

int util_symbolize(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    const char *trace = args->n > 1 ? args->p[1] : NULL, *path = args->n > 2 ? args->p[2] : sh->opt.output;
    struct symbol_places places = {0};
    struct symbol_report report = {0};
    struct pb_writer packets = {0};
    if (!trace || args->n > 3 || (args->n > 2 && sh->opt.output))
        return error_set(err, -MRD_EINVALID, "symbolize: give one trace, and at most one file to write");
    if (session_same_file(trace, path))
        return error_set(err, -MRD_EINVALID,
                         "symbolize: only the names are written, and %s would be lost; give another file to write, "
                         "then append it to the trace",
                         trace);
    int rc = util_symbol_places(sh, &places, err);
    if (rc == 0)
        rc = util_check_places(&places, err);
    if (rc == 0) {
        sh->no_health_report = sh->names_functions_itself = true;
        rc = session_load(sh, &trace, 1, err);
    }
    if (rc == 0)
        rc = trace_symbols_find(sh->tp, &places.sources, &packets, &report, err);
    struct out_file *out = rc == 0 ? out_file_open(path, sh->tp, err) : NULL;
    if (rc == 0)
        rc = out ? out_file_write(out, packets.p, packets.n) : err->code;
    rc = out_file_finish(out, rc, err);
    if (rc == 0)
        util_tell_symbols(&report, sh->opt.verbose);
    symbol_report_free(&report);
    symbol_places_free(&places);
    pb_writer_free(&packets);
    return rc;
}
