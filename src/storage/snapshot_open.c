/* Opens a snapshot: checks what describes it, and points tables, strings and args into the mapping. */
#include "storage/snapshot_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint8_t element_bytes[SNAPSHOT_SECTION_COUNT] = {
#define X(name, type, whole) sizeof(type),
    SNAPSHOT_SECTIONS(X)
#undef X
};
static const bool has_one_sum[SNAPSHOT_SECTION_COUNT] = {
#define X(name, type, whole) whole,
    SNAPSHOT_SECTIONS(X)
#undef X
};

const void *snapshot_section_at(const struct snapshot *s, enum snapshot_section section, uint64_t *n)
{
    const struct snapshot_place *p = &s->trailer->sections[section];
    *n = p->len / element_bytes[section];
    return s->map + p->offset;
}

/* What is damaged may be anything: all codes read as 0 from now on, which every chunk's header allows. The page that
 * the end of DATA shares with what follows holds spare bytes only. */
void snapshot_note_damage(struct snapshot *s, const char *what)
{
    const char *none = NULL;
    if (!atomic_compare_exchange_strong(&s->damage, &none, what))
        return;
    const struct snapshot_place *data = &s->trailer->sections[SNAPSHOT_DATA];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)s->map, end = ((uintptr_t)s->map + data->offset + data->len) & -page;
    mmap((void *)begin, end - begin, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

bool snapshot_damaged(const struct snapshot *s, const char **what)
{
    *what = atomic_load_explicit(&s->damage, memory_order_relaxed);
    if (!*what && map_guard_hit(s->guard))
        *what = "it became shorter while it was read";
    return *what != NULL;
}

/* ---- columns ---- */

void snapshot_column_of(struct snapshot *s, const struct snapshot_column *record, struct column *c)
{
    static const int64_t zeros[COL_CHUNK_ROWS]; /* what rows read as that are not there */
    *c = (struct column){
        .chunks = (struct col_chunk *)(uintptr_t)(s->chunks + record->first_chunk), /* never written: `map` is set */
        .n_chunks = record->n_chunks,
        .tail = (int64_t *)(uintptr_t)zeros,
        .type = record->type,
        .has_null = record->has_null,
        .sorted = record->sorted,
        .min = record->min,
        .max = record->max,
        .map = (uintptr_t)s->map,
        .checked = s->checked + record->first_chunk,
        .source = &s->source,
        .summary = {.min = INT64_MAX, .max = INT64_MIN, .sorted = true},
    };
}

/* ---- the file ---- */

bool snapshot_is(struct slice head)
{
    return head.len >= sizeof(struct snapshot_head) && memcmp(head.p, SNAPSHOT_MAGIC, 8) == 0;
}

static const struct snapshot_trailer *find_trailer(struct slice file, struct error *err)
{
    struct snapshot_head head;
    if (!snapshot_is(file)) {
        error_set(err, -MRD_EFORMAT, "not a snapshot");
        return NULL;
    }
    memcpy(&head, file.p, sizeof head);
    if (head.order != SNAPSHOT_ORDER) {
        error_set(err, -MRD_EUNSUPPORTED,
                  "the snapshot was written on a machine of another byte order; "
                  "write it anew from its trace");
        return NULL;
    }
    if (head.version != SNAPSHOT_VERSION) {
        error_set(err, -MRD_EUNSUPPORTED,
                  "the snapshot is of format version %u, this program reads version %d; write it anew from its trace",
                  head.version, SNAPSHOT_VERSION);
        return NULL;
    }
    if (file.len < sizeof head + sizeof(struct snapshot_trailer) || file.len % 8)
        goto cut;
    const struct snapshot_trailer *t =
        (const void *)(file.p + file.len - sizeof *t); /* aligned: the mapping is, and the length */
    if (memcmp(t->magic, SNAPSHOT_MAGIC, 8) != 0 || t->file_bytes != file.len ||
        t->sum != checksum64(t, offsetof(struct snapshot_trailer, sum)))
        goto cut;
    if (t->schema != snapshot_schema()) {
        error_set(err, -MRD_EUNSUPPORTED,
                  "the snapshot was written by another version of this program, with other tables; write it anew "
                  "from its trace");
        return NULL;
    }
    return t;
cut:
    error_set(err, -MRD_EFORMAT, "the snapshot is truncated or damaged; write it anew from its trace");
    return NULL;
}

/* Pages that were looked at once, to check them, are given back: they would count as this process's. */
static void give_back(const struct snapshot *s, const struct snapshot_place *p)
{
    enum { WORTH = 1 << 20 };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)s->map + p->offset + page - 1) & -page,
              end = ((uintptr_t)s->map + p->offset + p->len) & -page;
    if (!s->own && first < end && end - first > WORTH)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

/* DATA lies before all others: it reads as zeros when something is damaged (snapshot_note_damage()), and the headers of
 * what is in it must not. */
static bool sections_are_good(const struct snapshot *s)
{
    uint64_t most = s->len - sizeof(struct snapshot_trailer);
    const struct snapshot_place *data = &s->trailer->sections[SNAPSHOT_DATA];
    for (int i = 0; i < SNAPSHOT_SECTION_COUNT; i++) {
        const struct snapshot_place *p = &s->trailer->sections[i];
        if (p->offset % SNAPSHOT_ALIGN || p->offset < sizeof(struct snapshot_head) || p->offset > most ||
            p->len > most - p->offset || p->len % element_bytes[i] ||
            (p != data && p->offset < data->offset + data->len))
            return false;
        if (has_one_sum[i] && checksum64(s->map + p->offset, p->len) != p->sum)
            return false;
    }
    return data->len >= SNAPSHOT_SPARE;
}

/* Every chunk is of one column: else what one of them says about its rows would not hold for the other. */
static bool chunks_follow(const struct snapshot *s)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i < s->n_columns; i++) {
        if (s->columns[i].first_chunk != next)
            return false;
        next += s->columns[i].n_chunks;
    }
    return next == s->n_chunks;
}

static int open_parts(struct snapshot *s)
{
    uint64_t n_sums;
    if (!sections_are_good(s))
        return -MRD_EFORMAT;
    s->chunks = snapshot_section_at(s, SNAPSHOT_CHUNKS, &s->n_chunks);
    s->chunk_sums = snapshot_section_at(s, SNAPSHOT_CHUNK_SUMS, &n_sums);
    s->columns = snapshot_section_at(s, SNAPSHOT_COLUMNS, &s->n_columns);
    if (n_sums != s->n_chunks || !chunks_follow(s))
        return -MRD_EFORMAT;
    s->checked = mem_zalloc((size_t)s->n_chunks + 1);
    s->last_rows = mem_zalloc(((size_t)s->n_chunks + 1) * sizeof *s->last_rows);
    if (!s->checked || !s->last_rows)
        return -MRD_ENOMEM;
    int rc = snapshot_open_strings(s, s->trailer);
    return rc ? rc : snapshot_open_args(s, s->trailer);
}

/* Each column is of one table: the rows of the last chunk are checked as far as that table has them. */
static int open_tables(struct snapshot *s, struct storage *st)
{
    uint64_t n, next = 0;
    const struct snapshot_table *tables = snapshot_section_at(s, SNAPSHOT_TABLES, &n);
    for (uint64_t i = 0; i < n; i++) {
        const struct snapshot_table *r = &tables[i];
        if (r->table >= T_COUNT || !r->n_rows || r->n_rows > UINT32_MAX - 1 ||
            r->n_columns != table_defs[r->table].n_columns || (i && r->table <= tables[i - 1].table) ||
            r->first_column != next || next + r->n_columns > s->trailer->n_table_columns)
            return -MRD_EFORMAT;
        next += r->n_columns;
        struct table *t = &st->t[r->table];
        for (uint32_t c = 0; c < r->n_columns; c++) {
            const struct snapshot_column *column = &s->columns[r->first_column + c];
            if (!snapshot_column_is_good(s, column, r->n_rows, (enum col_type)t->def->columns[c].type))
                return -MRD_EFORMAT;
            snapshot_column_of(s, column, &t->columns[c]);
        }
        t->n_rows = r->n_rows;
    }
    for (int i = 0; i < T_COUNT; i++) {
        struct table *t = &st->t[i];
        for (uint32_t c = 0; !t->n_rows && c < t->def->n_columns; c++) {
            struct snapshot_column none = {
                .type = t->def->columns[c].type, .sorted = true, .min = INT64_MAX, .max = INT64_MIN};
            snapshot_column_of(s, &none, &t->columns[c]);
        }
        t->final = true;
    }
    return 0;
}

static int open_stats(const struct snapshot *s, struct stats *stats)
{
    uint64_t n, n_indexed;
    const int64_t *single = snapshot_section_at(s, SNAPSHOT_STATS, &n);
    const struct u64map_slot *indexed = snapshot_section_at(s, SNAPSHOT_STATS_INDEXED, &n_indexed);
    if (n % STAT_COUNT)
        return -MRD_EFORMAT;
    if (!vec_reserve(&stats->single, n))
        return -MRD_ENOMEM;
    if (n)
        memcpy(stats->single.p, single, n * sizeof *single);
    stats->single.n = n;
    for (uint64_t i = 0; i < n_indexed; i++) {
        if ((indexed[i].key >> 32 & 0xffff) >= STAT_COUNT)
            return -MRD_EFORMAT;
        if (!u64map_set(&stats->indexed, indexed[i].key, indexed[i].value))
            return -MRD_ENOMEM;
    }
    return 0;
}

static int open_others(const struct snapshot *s, struct storage *st)
{
    uint64_t n_numbers, n_video;
    const uint32_t *numbers = snapshot_section_at(s, SNAPSHOT_NUMBERS, &n_numbers);
    const uint32_t *video = snapshot_section_at(s, SNAPSHOT_VIDEO, &n_video);
    for (uint64_t i = 0; i < n_video; i++)
        if (video[i] > s->n_strings)
            return -MRD_EFORMAT;
    if (!vec_reserve(&st->video_data, n_video))
        return -MRD_ENOMEM;
    if (n_video)
        memcpy(st->video_data.p, video, n_video * sizeof *video);
    st->video_data.n = n_video;
    st->trace_start_ns = s->trailer->trace_start_ns;
    st->trace_end_ns = s->trailer->trace_end_ns;
    if (!n_numbers)
        return 0;
    if (n_numbers != (uint64_t)s->trailer->n_sets + 1 || n_numbers > ARGS_MAX_NUMBERED + 1)
        return -MRD_EFORMAT;
    for (uint64_t i = 0; i < n_numbers; i++)
        if (i ? numbers[i] < numbers[i - 1] : numbers[i] != 0)
            return -MRD_EFORMAT;
    st->args.numbers = mem_alloc(n_numbers * sizeof *numbers);
    if (!st->args.numbers)
        return -MRD_ENOMEM;
    memcpy(st->args.numbers, numbers, n_numbers * sizeof *numbers);
    st->args.n_numbers = s->trailer->n_sets;
    return 0;
}

/* A mapping of our own of bytes that are in memory. */
static int copy_bytes(struct snapshot *s, struct slice file)
{
    s->own = mmap(NULL, file.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->own == MAP_FAILED) {
        s->own = NULL;
        return -MRD_ENOMEM;
    }
    s->map = memcpy(s->own, file.p, file.len);
    return 0;
}

/* Everything of the file into a storage that is empty. */
static int fill(struct snapshot *s, struct storage *st)
{
    int rc = open_parts(s);
    rc = rc ? rc : storage_init(st);
    if (rc)
        return rc;
    rc = open_tables(s, st);
    rc = rc ? rc : open_stats(s, &st->stats);
    rc = rc ? rc : open_others(s, st);
    if (rc) {
        storage_free(st);
        return rc;
    }
    snapshot_use_strings(s, &st->strings, s->trailer->has_nul != 0);
    snapshot_use_args(s, &st->args);
    st->snapshot = s;
    return 0;
}

int snapshot_attach(struct storage *st, struct slice file, struct map_guard *guard, struct error *err)
{
    struct storage *fresh = mem_zalloc(sizeof *fresh);
    struct snapshot *s = mem_zalloc(sizeof *s);
    int rc = fresh && s ? 0 : -MRD_ENOMEM;
    if (rc == 0 && !find_trailer(file, err))
        goto refused;
    if (rc == 0) {
        s->source.check = snapshot_check_chunk;
        s->map = file.p;
        s->len = file.len;
        s->guard = guard;
        rc = guard ? 0 : copy_bytes(s, file);
    }
    if (rc == 0) {
        s->trailer = (const void *)(s->map + s->len - sizeof *s->trailer);
        rc = fill(s, fresh);
    }
    if (rc == 0) {
        for (int i = 0; i < SNAPSHOT_SECTION_COUNT; i++)
            if (has_one_sum[i])
                give_back(s, &s->trailer->sections[i]);
        fresh->spill = st->spill; /* tables that SQL makes need it still */
        st->spill = NULL;
        storage_free(st);
        *st = *fresh;
        st->args.strings = &st->strings;
        mem_free(fresh);
        return 0;
    }
    error_set(err, rc, rc == -MRD_ENOMEM ? "out of memory" : "the snapshot is damaged; write it anew from its trace");
refused:
    if (s)
        snapshot_close(s);
    mem_free(fresh);
    return rc ? rc : err && err->code ? err->code : -MRD_EFORMAT;
}

struct snapshot_info snapshot_info_of(const struct storage *st)
{
    const struct snapshot *s = st->snapshot;
    if (!s)
        return (struct snapshot_info){0};
    uint64_t n_clocks, n_text;
    const uint8_t *clocks = snapshot_section_at(s, SNAPSHOT_CLOCKS, &n_clocks);
    const uint8_t *text = snapshot_section_at(s, SNAPSHOT_INFO, &n_text);
    return (struct snapshot_info){.source = {s->trailer->source[0], s->trailer->source[1]},
                                  .source_bytes = s->trailer->source_bytes,
                                  .options = s->trailer->options,
                                  .clocks = slice_of(clocks, n_clocks),
                                  .text = slice_of(text, n_text)};
}

void snapshot_close(struct snapshot *s)
{
    if (!s)
        return;
    mem_free(s->checked);
    mem_free(s->last_rows);
    mem_free(s->strings_checked);
    mem_free(s->slots_checked);
    if (s->own)
        munmap(s->own, s->len);
    mem_free(s);
}
