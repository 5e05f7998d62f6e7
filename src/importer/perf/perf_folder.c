/* Opens the files of a folder. */
#include "importer/perf/perf_folder.h"

#include "base/file.h"
#include "importer/perf/perf_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_PARTS = 4096 };

struct part {
    unsigned long number; /* of data.NUMBER */
    struct mapped_file file;
};

struct perf_folder {
    VEC(struct part)
    parts; /* all that were opened: their bytes stay until the import ends */
    VEC(struct slice)
    bytes;          /* of the parts in their order */
    size_t of_next; /* the first one of the perf.data that is read next */
};

char *perf_folder_data(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return NULL;
    size_t size = strlen(path) + sizeof "/data";
    char *file = mem_alloc(size), magic[8] = "";
    if (!file)
        return NULL;
    snprintf(file, size, "%s/data", path);
    FILE *in = stat(file, &st) == 0 && S_ISREG(st.st_mode) ? fopen(file, "rbe") : NULL;
    bool is_perf = in && fread(magic, 1, sizeof magic, in) == sizeof magic &&
                   (memcmp(magic, "PERFILE2", sizeof magic) == 0 || memcmp(magic, "2ELIFREP", sizeof magic) == 0);
    if (in)
        fclose(in);
    if (is_perf)
        return file;
    mem_free(file);
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* data.0, data.1 … */
static bool is_part(const char *name, unsigned long *number)
{
    char *end;
    if (strncmp(name, "data.", 5) != 0 || name[5] < '0' || name[5] > '9')
        return false;
    *number = strtoul(name + 5, &end, 10);
    return !*end;
}

static int open_part(struct perf_folder *f, const char *folder, const char *name, unsigned long number,
                     struct error *err)
{
    char path[4096];
    struct part part = {.number = number};
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return error_set(err, -MRD_EINVALID, "%s: the name of the folder is too long", folder);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* a pipe would wait for somebody to write */
        return 0;
    int rc = mapped_file_open(&part.file, path, err);
    if (rc)
        return rc;
    if (vec_push(&f->parts, part))
        return 0;
    mapped_file_close(&part.file);
    return error_set(err, -MRD_ENOMEM, "out of memory for %s", folder);
}

int perf_folder_open(struct importer *im, const char *path, struct error *err)
{
    struct perf_folder *f = im->perf_folder ? im->perf_folder : (im->perf_folder = mem_zalloc(sizeof *f));
    DIR *d = f ? opendir(path) : NULL;
    if (!d)
        return f ? error_set_errno(err, errno, "%s", path) : error_set(err, -MRD_ENOMEM, "out of memory");
    size_t first = f->parts.n;
    unsigned long number;
    int rc = 0;
    f->of_next = f->bytes.n;
    for (struct dirent *e; !rc && (e = readdir(d)) && f->parts.n - first < MAX_PARTS;)
        if (is_part(e->d_name, &number))
            rc = open_part(f, path, e->d_name, number, err);
    closedir(d);
    if (f->parts.n > first)
        qsort(f->parts.p + first, f->parts.n - first, sizeof *f->parts.p, by_number);
    for (size_t i = first; !rc && i < f->parts.n; i++)
        if (!vec_push(&f->bytes, f->parts.p[i].file.bytes))
            rc = error_set(err, -MRD_ENOMEM, "out of memory for %s", path);
    return rc;
}

void perf_folder_parts(struct importer *im, struct perf_file *file)
{
    struct perf_folder *f = im->perf_folder;
    if (!f || f->of_next == f->bytes.n)
        return;
    file->parts = f->bytes.p + f->of_next;
    file->n_parts = f->bytes.n - f->of_next;
    f->of_next = f->bytes.n;
}

void perf_folder_close(struct importer *im)
{
    struct perf_folder *f = im->perf_folder;
    if (!f)
        return;
    for (size_t i = 0; i < f->parts.n; i++)
        mapped_file_close(&f->parts.p[i].file);
    vec_free(&f->parts);
    vec_free(&f->bytes);
    mem_free(f);
    im->perf_folder = NULL;
}
