/* Imports PackagesList: the applications installed, and which runs under which uid. */
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

void package_add(struct profiling_machine *s, strid name, int64_t uid, bool debuggable, bool profileable,
                 int64_t version)
{
    bool added, is_new;
    if (!u64map_put(&s->packages, name, &is_new)) {
        s->m->im->failed = true;
        return;
    }
    if (!is_new) /* packets tell of all packages again and again */
        return;
    uint64_t *package = u64map_put(&s->uid_package, (uint64_t)uid, &added);
    if (!package) {
        s->m->im->failed = true;
        return;
    }
    if (added) /* of those that share the uid, the first stands for it */
        *package = name;
    package_list_insert(s->m->st, &(struct package_list_row){.package_name = name,
                                                             .uid = uid,
                                                             .debuggable = debuggable,
                                                             .profileable_from_shell = profileable,
                                                             .version_code = version});
}

/* The last list says whether something went wrong. */
void packages_list_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, g;
    bool parse_error = false, read_error = false;
    while (pb_next(&c, &f)) {
        if (f.id == PACKAGES_LIST_PARSE_ERROR)
            parse_error = pb_bool(&f);
        else if (f.id == PACKAGES_LIST_READ_ERROR)
            read_error = pb_bool(&f);
        if (f.id != PACKAGES_LIST_PACKAGES)
            continue;
        struct slice name = {0};
        uint64_t v[6] = {0};
        struct pb_cursor package = pb_sub(&f);
        while (pb_next(&package, &g)) {
            if (g.id == PACKAGES_LIST_PACKAGE_INFO_NAME)
                name = pb_bytes(&g);
            else if (g.id < 6)
                v[g.id] = pb_u64(&g);
        }
        package_add(m->profiling, import_slice(m->im, name), (int64_t)v[2], v[3] != 0, v[4] != 0, (int64_t)v[5]);
    }
    stats_set(&m->st->stats, m->id, STAT_packages_list_has_parse_errors, parse_error);
    stats_set(&m->st->stats, m->id, STAT_packages_list_has_read_errors, read_error);
}
