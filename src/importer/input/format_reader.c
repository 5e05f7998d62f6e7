/* Owns the readers of formats other than Perfetto's packets. */
#include "importer/input/format_reader.h"

#include "importer/input/reader_private.h"
#include "importer/sort/sorter.h"

const struct format_reader *format_reader_find(const struct format_reader *const *table, enum trace_format format)
{
    for (; *table; table++)
        if ((*table)->format == format)
            return *table;
    return NULL;
}

void *format_reader_begin(struct importer *im, const struct format_reader *format)
{
    sorter_force_full_sort(im->sorter);
    void *self = format->open(im);
    if (!self || !vec_push(&im->reader->others, (struct open_format){format, self})) {
        if (self)
            format->close(self);
        im->failed = true;
        return NULL;
    }
    return self;
}

int format_reader_run(struct importer *im, const struct format_reader *format, struct slice file, struct error *err)
{
    im->stable_first = (uintptr_t)file.p;
    im->stable_len = file.len;
    void *self = format_reader_begin(im, format);
    if (!self)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = format->write(self, file, err);
    return rc ? rc : format->end(self, err);
}
