/* Reads the call stacks of a trace as a forest. Each query gives the nodes, parents first. */
#include "shell/convert/stack_forest.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "shell/convert/convert.h"

#include <inttypes.h>
#include <string.h>

/* Functions that are inlined at one address, each with its place from the outermost one, which is 1; at most 64. */
#define INLINED                                                                                                        \
    "select symbol_set_id, name, row_number() over (partition by symbol_set_id order by id desc) as place, "           \
    "count(*) over (partition by symbol_set_id) as places from stack_profile_symbol"

/* Rows: id, parent (NULL: none), name, value of the node itself, what the root stands under (NULL: nothing). Callsites
 * have lower numbers than those that they call; slices begin before those in them. */
#define STACKS(values)                                                                                                 \
    "select iif(coalesce(y.place = y.places, 1), c.id, -1 - (c.id * 64 + y.place)), "                                  \
    "iif(coalesce(y.place = 1, 1), c.parent_id, -(c.id * 64 + y.place)), "                                             \
    "coalesce(y.name, f.deobfuscated_name, demangle(f.name), f.name, printf('0x%x', f.rel_pc)), "                      \
    "iif(coalesce(y.place = y.places, 1), coalesce(v.n, 0), 0), null "                                                 \
    "from stack_profile_callsite c join stack_profile_frame f on f.id = c.frame_id left join (" INLINED ") y on "      \
    "y.symbol_set_id = f.symbol_set_id left join (" values ") v on v.callsite_id = c.id order by c.id, y.place"

/* Samples of switches and wakeups, which linux.off_cpu is about, are no processor time: beside others they do not
 * count. */
#define SWITCHES "('sched/sched_switch', 'sched:sched_switch', 'sched/sched_waking', 'sched:sched_waking')"
#define SAMPLES_OF_TIME                                                                                                \
    "(session_id is null or session_id not in (select perf_session_id from perf_counter_track where is_timebase and "  \
    "name in " SWITCHES                                                                                                \
    ") or not exists (select 1 from perf_counter_track where is_timebase and name not in " SWITCHES "))"

struct source {
    const char *unit, *any, *nodes;
};

#define BLOCKED(callsite, tree)                                                                                        \
    {                                                                                                                  \
        "ns blocked",                                                                                                  \
            "INCLUDE PERFETTO MODULE linux.off_cpu; select 1 from linux_off_cpu where " callsite                       \
            " is not null and dur > 0 limit 1",                                                                        \
            "select id, parent_id, coalesce(name, '[no name]'), self_dur, null from " tree " order by id"              \
    }
static const struct source off_cpu[] = {
    [STACKS_OFF_CPU] = BLOCKED("callsite_id", "linux_off_cpu_tree"),
    [STACKS_WAKERS] = BLOCKED("waker_callsite_id", "linux_off_cpu_waker_tree"),
};

static const struct source sources[] = {
    {"samples", "select 1 from stack_sample where callsite_id is not null limit 1",
     STACKS("select callsite_id, count(*) as n from stack_sample where " SAMPLES_OF_TIME " group by 1")},
    {"bytes", "select 1 from heap_profile_allocation limit 1",
     STACKS("select callsite_id, max(sum(size), 0) as n from heap_profile_allocation group by 1")},
    {"", "select 1 from __intrinsic_aggregate_sample limit 1",
     STACKS("select callsite_id, cast(sum(value) as int) as n from __intrinsic_aggregate_sample where "
            "aggregate_profile_id = (select max(aggregate_profile_id) from __intrinsic_aggregate_sample) group by 1")},
    {"ns", "select 1 from slice where dur > 0 limit 1",
     "select s.id, s.parent_id, coalesce(s.name, '[no name]'), max(max(s.dur, 0) - coalesce(k.n, 0), 0), "
     "coalesce(t.name, 'thread ' || t.tid, r.name, r.type) from slice s join track r on r.id = s.track_id left join "
     "thread_track u on u.id = s.track_id left join thread t using (utid) left join (select parent_id, sum(max(dur, "
     "0)) as n from slice where parent_id is not null group by 1) k on k.parent_id = s.id order by s.id"},
};

static int found(void *ctx, struct tp_result *r)
{
    (void)r;
    *(bool *)ctx = true;
    return 0;
}

const char *stack_name(const struct stack_forest *f, uint32_t node)
{
    return f->names.p + f->nodes.p[node].name;
}

uint32_t stack_node(struct stack_forest *f, uint32_t parent, const char *name)
{
    bool added;
    size_t len = strlen(name), at = f->names.n;
    uint64_t key = hash_combine(hash_bytes_seeded(name, len, hash_secret()), parent), *slot;
    if (f->nodes.n >= STACK_NO_NODE || !vec_reserve(&f->names, f->names.n + len + 1)) {
        f->failed = true;
        return 0;
    }
    for (size_t i = 0; i < len;) {
        size_t n = utf8_sequence(name + i, len - i);
        char c = n ? name[i] : '?';
        f->names.p[at + i++] = (char)(c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c);
        for (; n > 1; n--, i++)
            f->names.p[at + i] = name[i];
    }
    f->names.p[at + len] = '\0';
    for (;; key++) { /* two of one hash: the next key */
        slot = u64map_put(&f->named, key, &added);
        if (!slot) {
            f->failed = true;
            return 0;
        }
        if (added ||
            (f->nodes.p[*slot].parent == parent && strcmp(stack_name(f, (uint32_t)*slot), f->names.p + at) == 0))
            break;
    }
    if (!added)
        return (uint32_t)*slot;
    *slot = f->nodes.n;
    f->names.n += len + 1;
    struct stack_node *p = parent == STACK_NO_NODE ? NULL : &f->nodes.p[parent];
    struct stack_node n = {parent, p ? p->depth + 1 : 0, STACK_NO_NODE, p ? p->first_child : STACK_NO_NODE, 0, 0, at};
    if (p)
        p->first_child = (uint32_t)f->nodes.n;
    if (!vec_push(&f->nodes, n)) {
        if (p)
            p->first_child = n.next;
        f->failed = true;
        return 0;
    }
    return (uint32_t)*slot;
}

static int add_row(void *ctx, struct tp_result *r)
{
    struct stack_forest *f = ctx;
    const uint64_t *at = tp_column_type(r, 1) == TP_NULL ? NULL : u64map_get(&f->by_id, (uint64_t)tp_int64(r, 1));
    const char *root = tp_text(r, 4, NULL), *name;
    uint32_t parent = at ? (uint32_t)*at : root ? stack_node(f, 0, root) : 0;
    name = tp_text(r, 2, NULL);
    uint32_t node = stack_node(f, parent, name && *name ? name : "[unknown]");
    int64_t value = tp_int64(r, 3);
    if (value > 0 && __builtin_add_overflow(f->nodes.p[node].self, (uint64_t)value, &f->nodes.p[node].self))
        f->nodes.p[node].self = UINT64_MAX;
    if (!u64map_set(&f->by_id, (uint64_t)tp_int64(r, 0), node))
        f->failed = true;
    return f->failed;
}

void stack_forest_free(struct stack_forest *f)
{
    vec_free(&f->nodes);
    vec_free(&f->names);
    u64map_free(&f->by_id);
    u64map_free(&f->named);
}

void stack_forest_sum(struct stack_forest *f)
{
    for (size_t k = 0; k < f->nodes.n; k++)
        f->nodes.p[k].total = 0;
    for (size_t k = f->nodes.n; k-- > 0;) { /* children stand behind their parents */
        struct stack_node *node = &f->nodes.p[k];
        node->total = node->total > UINT64_MAX - node->self ? UINT64_MAX : node->total + node->self;
        if (node->parent == STACK_NO_NODE)
            continue;
        struct stack_node *p = &f->nodes.p[node->parent];
        p->total = p->total > UINT64_MAX - node->total ? UINT64_MAX : p->total + node->total;
    }
}

int stack_forest_read(struct shell *sh, struct stack_forest *f, enum stack_values what, const char **unit,
                      struct error *err)
{
    const struct source *from = what == STACKS_ANY ? sources : &off_cpu[what];
    bool any = false;
    int rc = 0;
    size_t i = 0, n = what == STACKS_ANY ? sizeof sources / sizeof *sources : 1;
    u64map_clear(&f->by_id); /* of the trace before */
    stack_node(f, STACK_NO_NODE, "all");
    for (; i < n && !any && !rc; i++)
        rc = convert_rows(sh, from[i].any, found, &any, err);
    if (!rc && !any)
        return error_set(
            err, -MRD_ENOTFOUND,
            what == STACKS_ANY
                ? "convert: the trace has neither call stacks nor slices"
                : "convert: the trace has no stacks of blocked threads; tracebox profile --off-cpu records them");
    if (rc)
        return rc;
    *unit = from[i - 1].unit;
    rc = convert_rows(sh, from[i - 1].nodes, add_row, f, err);
    if (f->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    stack_forest_sum(f);
    return rc;
}
