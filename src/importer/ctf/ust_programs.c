/* What LTTng's user space says of the programs and libraries of a process: where they are mapped, and their build ids.
 * They are told when tracing starts (lttng_ust_statedump) and when a library is loaded (lttng_ust_lib). */
#include "importer/ctf/ctf_internal.h"

#include "base/hash.h"
#include "importer/profiling/stack_profile.h"
#include "importer/track/process_tracker.h"

enum { BUILD_ID_MAX = 64 };

void ctf_programs_free(struct ctf_programs *p)
{
    u64map_free(&p->by_place);
    vec_free(&p->list);
}

static uint32_t process_of(const struct ctf_row *e)
{
    return e->utid == UTID_NONE ? UPID_NONE : process_tracker_thread_process(e->m->processes, e->utid);
}

/* What the process has at an address; made when it is new. NULL when out of memory. */
static struct ctf_program *program_at(const struct ctf_row *e, int64_t address)
{
    struct ctf_programs *p = ctf_programs(e->import);
    uint64_t process = (uint64_t)e->m->id << 32 | process_of(e);
    bool added;
    uint64_t *at = u64map_put(&p->by_place, hash_keyed(e->m->im->secret, process, (uint64_t)address), &added);
    if (at && !added && p->list.p[*at].process == process && p->list.p[*at].address == address)
        return &p->list.p[*at];
    if (!at || !vec_push(&p->list, (struct ctf_program){process, address, CTF_NO_MAPPING})) {
        e->m->im->failed = true;
        return NULL;
    }
    *at = p->list.n - 1;
    return vec_last(&p->list);
}

void ust_program(const struct ctf_row *e)
{
    struct storage *st = e->m->st;
    int64_t address, size, is_pic = 1; /* a library that is loaded later is always */
    const struct ctf_item *path = ctf_item_find(e->fields, "path");
    if (!ctf_item_int(e->fields, "baddr", &address) || !ctf_item_int(e->fields, "memsz", &size))
        return;
    (void)ctf_item_int(e->fields, "is_pic", &is_pic);
    struct ctf_program *program = program_at(e, address);
    strid name = path && path->kind == CTF_ITEM_TEXT ? import_slice(e->m->im, path->text) : import_str(e->m->im, "");
    int64_t end = (int64_t)((uint64_t)address + (uint64_t)size);
    if (!program)
        return;
    if (program->row != CTF_NO_MAPPING && ROW_GET(st, stack_profile_mapping, name, program->row) == name &&
        ROW_GET(st, stack_profile_mapping, end, program->row) == end)
        return; /* told before */
    program->row =
        stack_profile_mapping_insert(st, &(struct stack_profile_mapping_row){.build_id = import_str(e->m->im, ""),
                                                                             .start = address,
                                                                             .end = end,
                                                                             .load_bias = is_pic ? 0 : address,
                                                                             .name = name});
}

/* It follows, where there is one. */
void ust_build_id(const struct ctf_row *e)
{
    uint8_t id[BUILD_ID_MAX];
    size_t n = 0;
    int64_t address;
    const struct ctf_item *item = ctf_item_find(e->fields, "build_id"), *end = e->fields->p + e->fields->n;
    if (!ctf_item_int(e->fields, "baddr", &address) || !item || item->kind != CTF_ITEM_OPEN)
        return;
    for (item++; item < end && item->kind == CTF_ITEM_UINT && n < sizeof id; item++)
        id[n++] = (uint8_t)item->u;
    struct ctf_program *program = program_at(e, address);
    if (program && program->row != CTF_NO_MAPPING)
        ROW_SET(e->m->st, stack_profile_mapping, build_id, program->row, build_id_text(e->m, slice_of(id, n)));
}

void ust_process_name(const struct ctf_row *e)
{
    const struct ctf_item *name = ctf_item_find(e->fields, "procname");
    uint32_t upid = process_of(e);
    if (upid != UPID_NONE && name && name->kind == CTF_ITEM_TEXT && name->text.len)
        process_tracker_process_name(e->m->processes, upid, import_slice(e->m->im, name->text), PROCESS_NAME_OTHER);
}
