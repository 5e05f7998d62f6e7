/* Imports InodeFileMap packets: which files the inode numbers of events mean. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

/* InodeFileMap.Entry.Type */
static const char *const types[] = {NULL, "file", "directory"};

/* "/, /home": where the device is mounted. */
static strid mount_points(struct packet *p)
{
    char text[1024];
    size_t n = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        struct slice point = pb_bytes(&f);
        if (f.id != INODE_FILE_MAP_MOUNT_POINTS || point.len + 2 > sizeof text - n)
            continue;
        if (n) {
            memcpy(text + n, ", ", 2);
            n += 2;
        }
        if (point.len)
            memcpy(text + n, point.p, point.len);
        n += point.len;
    }
    return n ? strpool_intern(&p->m->st->strings, text, n) : 0;
}

void inode_file_map_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, g;
    struct inode_file_row row = {.ts = p->ts, .mount_points = mount_points(p), .machine_id = p->m->id};
    if (pb_find(p->field, INODE_FILE_MAP_BLOCK_DEVICE_ID, &f))
        row.block_device_id = pb_i64(&f);
    while (pb_next(&c, &f)) {
        if (f.id != INODE_FILE_MAP_ENTRIES)
            continue;
        row.inode = pb_find(pb_bytes(&f), INODE_FILE_MAP_ENTRY_INODE_NUMBER, &g) ? pb_i64(&g) : 0;
        bool typed = pb_find(pb_bytes(&f), INODE_FILE_MAP_ENTRY_TYPE, &g) &&
                     pb_u64(&g) < sizeof types / sizeof *types && types[pb_u64(&g)];
        row.type = typed ? import_str(p->m->im, types[pb_u64(&g)]) : 0;
        struct pb_cursor entry = pb_sub(&f);
        while (pb_next(&entry, &g)) {
            if (g.id != INODE_FILE_MAP_ENTRY_PATHS)
                continue;
            row.path = import_slice(p->m->im, pb_bytes(&g));
            inode_file_insert(p->m->st, &row);
        }
    }
}
