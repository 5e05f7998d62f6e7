/* Writes tables and results of SQL as files of columns. */
#include "api/export_source.h"
#include "api/tp_internal.h"
#include "export/directory.h"

int tp_finish_tables(struct tp *tp)
{
    tp->tables_only = true;
    return tp_finish(tp);
}

struct storage *tp_tables(struct tp *tp)
{
    return &tp->storage;
}

int tp_export_columns(struct tp *tp, const struct tp_export *what, struct tp_export_counts *counts)
{
    *counts = (struct tp_export_counts){0};
    int rc = tp_need_engine(tp);
    if (rc < 0)
        return tp_done(tp, rc);
    int64_t start = tp_meta_now(tp, TP_META_API);
    const struct export_request request = {.format = what->format,
                                           .directory = what->directory,
                                           .tables = what->tables,
                                           .queries = what->queries,
                                           .n_queries = what->n_queries,
                                           .files = what->files,
                                           .n_files = what->n_files};
    struct export_counts c;
    rc = export_directory(tp->engine, &request, &c, &tp->err);
    *counts = (struct tp_export_counts){c.files, c.rows, c.bytes};
    tp_meta_record(tp, TP_META_API, "export", start, "format", what->format, strlen(what->format));
    if (rc == -MRD_ECANCELLED)
        engine_interrupt_clear(tp->engine);
    return tp_done(tp, rc);
}

int tp_export_table(struct tp *tp, const char *name, const char *trace, struct export_source **out)
{
    *out = NULL;
    int rc = tp_need_engine(tp);
    return tp_done(tp, rc < 0 ? rc : export_open_table(out, tp->engine, name, trace, &tp->err));
}
