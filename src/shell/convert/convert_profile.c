/* Call stacks and heaps as profiles that pprof reads: a file for each process, heap and dump. */
#include "shell/convert/convert.h"

#include "base/json_writer.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Samples of call stacks, whoever took them. */
#define SAMPLES                                                                                                        \
    "(select c.utid, s.callsite_id from __intrinsic_profiler_sample s join __intrinsic_profiler_task_context c on "    \
    "c.id = s.task_context_id)"

/* What is in the trace, and how one of them becomes a profile. `list` gives: upid (-1: none), machine, pid, a row's id,
 * time, label. `profile` takes of these $1 upid, $2 machine, $3 the id, $4 the time, $5: annotate frames? */
static const struct {
    const char *name;
    size_t flag; /* in struct options */
    const char *list;
    const char *profile;
} kinds[] = {
    {"perf", offsetof(struct options, perf),
     "select coalesce(t.upid, -1), coalesce(t.machine_id, 0), coalesce(p.pid, 0), 0, 0, '' from " SAMPLES " join "
     "thread t "
     "using (utid) left join process p using (upid) where callsite_id is not null group by 1, 2 order by 2, 3, 1",
     "select experimental_profile(cat_stacks(t.name, stack_from_stack_profile_callsite(callsite_id, $5)), 'samples', "
     "'count', 1) from " SAMPLES " join thread t using (utid) where callsite_id is not null and "
     "coalesce(t.upid, -1) = $1 and coalesce(t.machine_id, 0) = $2"},
    {"heap", offsetof(struct options, alloc),
     "select a.upid, coalesce(p.machine_id, 0), coalesce(p.pid, 0), min(a.id), a.ts, a.heap_name from "
     "heap_profile_allocation a left join process p using (upid) group by a.upid, a.heap_name, a.ts order by 2, 3, 6, "
     "5",
     "select experimental_profile(stack_from_stack_profile_callsite(callsite_id, $5), 'Total malloc count', 'count', "
     "max(count, 0), 'Total malloc size', 'bytes', max(size, 0), 'Unreleased malloc "
     "count', 'count', count, 'Unreleased malloc size', 'bytes', size) from heap_profile_allocation where upid = "
     "$1 and ts <= $4 and heap_name = (select heap_name from heap_profile_allocation where id = $3)"},
    {"java", offsetof(struct options, java_heap),
     "select o.upid, coalesce(p.machine_id, 0), coalesce(p.pid, 0), 0, o.graph_sample_ts, '' from heap_graph_object o "
     "left "
     "join process p using (upid) group by o.upid, o.graph_sample_ts order by 2, 3, 5",
     "include perfetto module android.memory.heap_graph.class_summary_tree; with recursive path(id, stack, n, size) as "
     "(select id, cat_stacks(name), self_count, self_size from android_heap_graph_class_summary_tree where parent_id "
     "is "
     "null and upid = $1 and graph_sample_ts = $4 union all select t.id, cat_stacks(path.stack, t.name), t.self_count, "
     "t.self_size from path join "
     "android_heap_graph_class_summary_tree t on t.parent_id = path.id) select experimental_profile(stack, 'objects', "
     "'count', n, 'size', 'bytes', size) from path"},
};

struct dump {
    size_t kind;
    int64_t upid, machine, pid, id, ts;
    char label[64];
};

struct dumps {
    const struct options *opt;
    size_t kind;
    VEC(struct dump)
    list;
    bool failed;
};

/* Is `ts` one of --timestamps (numbers with commas between)? */
static bool wanted_time(const char *list, int64_t ts)
{
    char number[24];
    int len = snprintf(number, sizeof number, "%" PRId64, ts);
    for (const char *p = list; p; p = strchr(p, ','), p += p != NULL)
        if (strncmp(p, number, (size_t)len) == 0 && (p[len] == ',' || !p[len]))
            return true;
    return !list;
}

/* Names of heaps are the program's: what does not belong in a file's name becomes '_'. */
static void make_label(char *label, size_t size, const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9') || (*name && strchr(".-_", *name));
        label[n++] = plain ? *name : '_';
    }
    label[n] = '\0';
}

static int add_dump(void *ctx, struct tp_result *r)
{
    struct dumps *d = ctx;
    struct dump x = {d->kind, tp_int64(r, 0), tp_int64(r, 1), tp_int64(r, 2), tp_int64(r, 3), tp_int64(r, 4), ""};
    const char *label = tp_text(r, 5, NULL);
    make_label(x.label, sizeof x.label, label ? label : "");
    if ((d->opt->pid && d->opt->pid != x.pid) || (x.ts && !wanted_time(d->opt->timestamps, x.ts)))
        return 0;
    d->failed |= !vec_push(&d->list, x);
    return d->failed;
}

static int find_dumps(struct shell *sh, struct dumps *d, struct error *err)
{
    const char *options = (const char *)&sh->opt;
    bool any = sh->opt.perf || sh->opt.alloc || sh->opt.java_heap;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof kinds / sizeof *kinds; i++) {
        d->kind = i;
        if (!any || *(const bool *)(options + kinds[i].flag))
            rc = convert_rows(sh, kinds[i].list, add_dump, d, err);
    }
    if (d->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0 && d->list.n == 0)
        rc = error_set(err, -MRD_ENOTFOUND, "profile: the trace has no call stacks or heaps%s",
                       any || sh->opt.pid || sh->opt.timestamps ? " of what was asked for" : "");
    return rc;
}

static int put_profile(void *ctx, struct tp_result *r)
{
    size_t len;
    const void *bytes = tp_blob(r, 0, &len);
    return bytes ? out_file_write(ctx, bytes, len) : 0;
}

/* Writes a query with its numbers: `$1` stands for values[0], and so on. */
static void fill_in(char *out, size_t room, const char *query, const int64_t *values)
{
    size_t n = 0;
    for (const char *p = query; *p && n + 1 < room; p++) {
        if (*p == '$' && p[1] >= '1' && p[1] <= '9') {
            int len = snprintf(out + n, room - n, "%" PRId64, values[*++p - '1']);
            n = n + (size_t)len < room ? n + (size_t)len : room - 1;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = 0;
}

static int write_dump(struct shell *sh, const struct dump *d, size_t number, const char *dir, struct error *err)
{
    char path[4096], machine[32] = "", sql[2048];
    if (d->machine)
        snprintf(machine, sizeof machine, "machine.%" PRId64 ".", d->machine);
    int len = snprintf(path, sizeof path, "%s/%s.%zu.%spid.%" PRId64 "%s%s.pb.gz", dir, kinds[d->kind].name, number,
                       machine, d->pid, d->label[0] ? "." : "", d->label);
    if (len >= (int)sizeof path)
        return error_set(err, -MRD_EINVALID, "--output-dir: the name is too long");
    const int64_t values[] = {d->upid, d->machine, d->id, d->ts, !sh->opt.no_annotations};
    fill_in(sql, sizeof sql, kinds[d->kind].profile, values);
    struct out_file *out = out_file_open(path, sh->tp, err);
    if (!out)
        return err->code;
    int rc = out_file_pack(out, OUT_GZIP);
    if (rc == 0)
        rc = convert_rows(sh, sql, put_profile, out, err);
    rc = out_file_finish(out, rc, err);
    if (rc == 0)
        printf("%s\n", path);
    return rc;
}

/* --output-dir, made when it is not there; else a new one for temporary files. */
static int choose_dir(const struct options *o, char *dir, size_t size, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    if (o->output_dir) {
        if (snprintf(dir, size, "%s", o->output_dir) >= (int)size)
            return error_set(err, -MRD_EINVALID, "--output-dir: the name is too long");
        return mkdir(dir, 0777) == 0 || errno == EEXIST ? 0 : error_set_errno(err, errno, "%s", dir);
    }
    if (snprintf(dir, size, "%s/profile-XXXXXX", temporary && *temporary ? temporary : "/tmp") >= (int)size)
        return error_set(err, -MRD_EINVALID, "TMPDIR: the name is too long");
    return mkdtemp(dir) ? 0 : error_set_errno(err, errno, "%s", dir);
}

int convert_profile(struct shell *sh, struct out_file *out, struct error *err)
{
    struct dumps d = {.opt = &sh->opt};
    char dir[3072];
    (void)out;
    int rc = find_dumps(sh, &d, err);
    if (rc == 0)
        rc = choose_dir(&sh->opt, dir, sizeof dir, err);
    for (size_t i = 0; rc == 0 && i < d.list.n; i++)
        rc = write_dump(sh, &d.list.p[i], i + 1, dir, err);
    vec_free(&d.list);
    return rc;
}

static int put_text(void *ctx, struct tp_result *r)
{
    size_t len;
    const char *text = tp_text(r, 0, &len);
    struct json_writer w = {.put = out_file_sink, .ctx = ctx};
    if (text)
        json_put_raw(&w, text, len);
    return w.rc;
}

int convert_firefox(struct shell *sh, struct out_file *out, struct error *err)
{
    return convert_rows(sh, "include perfetto module export.to_firefox_profile; select export_to_firefox_profile()",
                        put_text, out, err);
}
