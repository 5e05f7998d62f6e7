/* What the files of a load know of each other. */
#include "importer/trace_dat/dat_files.h"

#include "importer/trace_dat/trace_dat.h"
#include "importer/track/process_tracker.h"
#include "wire/ftrace_events.h"

struct trace_dat_files *trace_dat_open(void)
{
    struct trace_dat_files *files = mem_zalloc(sizeof *files);
    if (files)
        files->next_dynamic_id = FTRACE_EVENT_FIRST_DYNAMIC;
    return files;
}

void trace_dat_close(struct trace_dat_files *files)
{
    if (!files)
        return;
    for (size_t i = 0; i < files->guests.n; i++)
        vec_free(&files->guests.p[i].vcpus);
    vec_free(&files->guests);
    vec_free(&files->clocks);
    vec_free(&files->recordings);
    mem_free(files);
}

/* The n-th word of a text, from 0. */
static struct slice word(struct slice text, unsigned n)
{
    struct slice w = {0};
    for (size_t i = 0; i < text.len;) {
        size_t end = i;
        while (end < text.len && text.p[end] != ' ')
            end++;
        w = slice_of(text.p + i, end - i);
        if (n-- == 0)
            return w;
        i = end + 1;
    }
    return slice_of(NULL, 0);
}

/* What hosts call the guest with this file; 0: none does. */
static strid guest_name(const struct trace_dat_files *files, const struct dat_file *f)
{
    for (size_t i = 0; i < files->guests.n && f->has_trace_id; i++)
        if (files->guests.p[i].trace_id == f->trace_id)
            return files->guests.p[i].name;
    return 0;
}

static bool name_is_taken(const struct importer *im, strid name)
{
    for (size_t i = 0; i < im->machines.n; i++)
        if (ROW_GET(im->st, machine, name, i) == name)
            return true;
    return false;
}

struct machine_ctx *dat_files_machine(struct trace_dat_files *files, struct importer *im, const struct dat_file *f)
{
    struct strpool *strings = &im->st->strings;
    struct slice node = word(f->uname, 1);
    strid name = node.len ? import_slice(im, node) : 0;
    if (im->input.declared.machine || im->input.base_machine)
        return im->machines.p[im->input.base_machine];
    if (!im->input.serial) {
        if (name && !ROW_GET(im->st, machine, name, 0))
            ROW_SET(im->st, machine, name, 0, name);
        return im->machines.p[0];
    }
    if (!name || name_is_taken(im, name)) {
        strid guest = guest_name(files, f);
        name = guest && !name_is_taken(im, guest)
                   ? guest
                   : strpool_printf(strings, "%s (%u)", name ? strpool_cstr(strings, name) : "machine",
                                    im->input.serial + 1);
    }
    struct machine_ctx *m = importer_named_machine(im, strpool_cstr(strings, name));
    if (m)
        im->input.base_machine = m->id;
    return m;
}

/* Option GUEST: name, trace id, and for each virtual CPU the host's thread that runs it. */
static int add_guest(struct trace_dat_files *files, struct importer *im, struct dat_file *f, struct slice option,
                     uint32_t host)
{
    struct dat_cursor c = {option.p, option.p + option.len, f->big, false};
    struct dat_guest *g = vec_add(&files->guests);
    if (!g)
        return -MRD_ENOMEM;
    g->host = host;
    g->name = import_slice(im, dat_text(&c));
    g->trace_id = dat_u64(&c);
    for (uint32_t n = dat_u32(&c); n && !c.bad; n--) {
        struct dat_vcpu v = {.cpu = dat_u32(&c)};
        v.tid = dat_u32(&c);
        if (!c.bad && !vec_push(&g->vcpus, v))
            return -MRD_ENOMEM;
    }
    f->bad_sections += c.bad;
    return 0;
}

/* Rows of guest_vcpu, once both files are known. */
static void link_guest(struct importer *im, struct dat_guest *g, uint32_t machine)
{
    struct machine_ctx *guest = im->machines.p[machine], *host = im->machines.p[g->host];
    for (size_t i = 0; i < g->vcpus.n; i++) {
        if (g->vcpus.p[i].cpu >= DAT_MAX_CPUS)
            continue;
        struct guest_vcpu_row row = {.machine_id = machine,
                                     .ucpu = machine_ucpu(guest, g->vcpus.p[i].cpu),
                                     .host_utid = process_tracker_thread(host->processes, g->vcpus.p[i].tid)};
        if (guest_vcpu_insert(im->st, &row) == UINT32_MAX)
            im->failed = true;
    }
    g->linked = true;
}

int dat_files_add(struct trace_dat_files *files, struct importer *im, struct dat_file *f, const struct machine_ctx *m)
{
    files->n++;
    if (f->has_trace_id && !vec_push(&files->recordings, (struct dat_recording){f->trace_id, m->id}))
        return -MRD_ENOMEM;
    for (size_t i = 0; i < f->guests.n; i++)
        if (add_guest(files, im, f, f->guests.p[i], m->id))
            return -MRD_ENOMEM;
    for (size_t i = 0; i < files->guests.n; i++)
        for (size_t k = 0; k < files->recordings.n && !files->guests.p[i].linked; k++)
            if (files->guests.p[i].trace_id == files->recordings.p[k].trace_id)
                link_guest(im, &files->guests.p[i], files->recordings.p[k].machine);
    return 0;
}

struct dat_named_clock dat_files_clock(struct trace_dat_files *files, struct dat_named_clock if_new)
{
    for (size_t i = 0; i < files->clocks.n; i++)
        if (files->clocks.p[i].trace_id == if_new.trace_id)
            return files->clocks.p[i];
    (void)!vec_push(&files->clocks, if_new); /* missing: it is related to no other */
    return if_new;
}
