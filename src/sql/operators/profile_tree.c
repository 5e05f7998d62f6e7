/* EXPERIMENTAL_FLAMEGRAPH(profile_type, ts, ts_constraints, upid, upid_group, focus_str): one tree of a profile, node
 * by node, each behind its parent.
 *
 * 'graph' is a Java heap by the shortest ways from its roots, merged by class; 'native' what a process allocated;
 * 'perf' where it was sampled. */
#include "sql/operators/profile_tree.h"

#include "base/hash.h"
#include "base/saturate.h"
#include "sql/operators/table_functions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE, COUNT, ALLOC_SIZE, ALLOC_COUNT, SUMS };

uint32_t profile_tree_child(struct profile_tree *t, uint32_t parent, strid name, strid mapping, int64_t file,
                            int64_t line)
{
    uint64_t key = hash_combine(hash_keyed(hash_secret(), (uint64_t)parent + 1, name), mapping);
    bool added = false;
    uint64_t *at = u64map_put(&t->children, key, &added);
    struct profile_node *n = at && added ? vec_add(&t->nodes) : NULL;
    if (!at || (added && !n))
        return NODE_FAILED;
    if (!added)
        return (uint32_t)*at;
    *at = t->nodes.n - 1;
    *n = (struct profile_node){.parent = parent, .name = name, .mapping = mapping, .file = file, .line = line};
    n->depth = parent == NODE_NONE ? 0 : t->nodes.p[parent].depth + 1;
    return (uint32_t)*at;
}

void profile_tree_free(struct profile_tree *t)
{
    vec_free(&t->nodes);
    u64map_free(&t->children);
}

void profile_tree_add(struct profile_node *n, int64_t count, int64_t size)
{
    n->sums[COUNT] = saturating_add(n->sums[COUNT], count);
    n->sums[SIZE] = saturating_add(n->sums[SIZE], size);
}

/* --- call stacks ---------------------------------------------------------------------------------------------------
 */

struct stacks {
    const struct storage *st;
    struct profile_tree *tree;
    uint32_t *node_of; /* by row of stack_profile_callsite */
};

/* The node of a frame below `parent`: one for each function that was inlined there, the outermost first. */
static uint32_t frame_nodes(const struct stacks *s, uint32_t parent, uint32_t frame)
{
    const struct table *frames = &s->st->t[T_stack_profile_frame], *symbols = &s->st->t[T_stack_profile_symbol];
    const struct table *mappings = &s->st->t[T_stack_profile_mapping];
    int64_t mapping = table_get(frames, stack_profile_frame_c_mapping, frame);
    int64_t set = table_get(frames, stack_profile_frame_c_symbol_set_id, frame);
    strid in =
        mapping < mappings->n_rows ? (strid)table_get(mappings, stack_profile_mapping_c_name, (uint32_t)mapping) : 0;
    if (set == COL_NULL) {
        int64_t name = table_get(frames, stack_profile_frame_c_deobfuscated_name, frame);
        if (!name)
            name = table_get(frames, stack_profile_frame_c_name, frame);
        return profile_tree_child(s->tree, parent, (strid)name, in, 0, COL_NULL);
    }
    uint32_t first = table_lower_bound(symbols, stack_profile_symbol_c_symbol_set_id, set, false);
    uint32_t end = table_lower_bound(symbols, stack_profile_symbol_c_symbol_set_id, set, true);
    for (uint32_t r = end; r > first && parent != NODE_FAILED; r--)
        parent = profile_tree_child(s->tree, parent, (strid)table_get(symbols, stack_profile_symbol_c_name, r - 1), in,
                                    table_get(symbols, stack_profile_symbol_c_source_file, r - 1),
                                    table_get(symbols, stack_profile_symbol_c_line_number, r - 1));
    return parent;
}

/* Nodes for all call stacks of the trace: parents stand before what they called. */
static int merge_stacks(struct stacks *s, stop_flag *stop)
{
    const struct table *t = &s->st->t[T_stack_profile_callsite], *frames = &s->st->t[T_stack_profile_frame];
    s->node_of = mem_alloc((t->n_rows + 1) * sizeof *s->node_of);
    if (!s->node_of)
        return -MRD_ENOMEM;
    for (uint32_t r = 0; r < t->n_rows; r++) {
        int64_t parent = table_get(t, stack_profile_callsite_c_parent_id, r);
        int64_t frame = table_get(t, stack_profile_callsite_c_frame_id, r);
        uint32_t above = parent != COL_NULL && parent < r ? s->node_of[parent] : NODE_NONE;
        if (stop_asked(stop))
            return -MRD_ECANCELLED;
        s->node_of[r] = frame < frames->n_rows ? frame_nodes(s, above, (uint32_t)frame) : above;
        if (s->node_of[r] == NODE_FAILED)
            return -MRD_ENOMEM;
    }
    return 0;
}

static void count_at(const struct stacks *s, int64_t callsite, int64_t count, int64_t size)
{
    const struct table *t = &s->st->t[T_stack_profile_callsite];
    uint32_t node = callsite >= 0 && callsite < t->n_rows ? s->node_of[callsite] : NODE_NONE;
    if (node == NODE_NONE)
        return;
    struct profile_node *n = &s->tree->nodes.p[node];
    profile_tree_add(n, count, size);
    n->sums[ALLOC_COUNT] = saturating_add(n->sums[ALLOC_COUNT], count > 0 ? count : 0);
    n->sums[ALLOC_SIZE] = saturating_add(n->sums[ALLOC_SIZE], size > 0 ? size : 0);
}

/* --- what is asked for ---------------------------------------------------------------------------------------------
 */

struct request {
    const struct storage *st;
    stop_flag *stop;
    int64_t ts;
    int64_t upid;        /* COL_NULL: not told */
    const char *upids;   /* "1,2"; NULL: not told */
    const char *times;   /* "<=9,>=3"; NULL: not told */
    const char *focus;   /* NULL: not told */
    const char *pattern; /* what LIKE finds it by */
    const char *kind;
};

static bool is_wanted(const struct request *q, int64_t upid)
{
    if (q->upid != COL_NULL)
        return upid == q->upid;
    for (const char *s = q->upids; s && *s;) {
        char *end;
        long long v = strtoll(s, &end, 10);
        if (end == s)
            return false;
        if (v == upid)
            return true;
        s = *end == ',' ? end + 1 : end;
    }
    return false;
}

struct time_rule {
    bool above, below, equal; /* what it lets through: later times, earlier ones, `at` itself */
    int64_t at;
};

/* Reads one rule of the list and goes behind it; false at the end or when it is no rule. */
static bool next_time(const char **s, struct time_rule *rule)
{
    const char *p = *s + strspn(*s, ", ");
    char *end;
    *rule = (struct time_rule){.above = *p == '>', .below = *p == '<'};
    p += rule->above || rule->below;
    rule->equal = *p == '=';
    if (!rule->above && !rule->below && !rule->equal)
        return false;
    p += rule->equal;
    rule->at = strtoll(p, &end, 10);
    *s = end;
    return end != p;
}

static bool is_in_time(const struct request *q, int64_t ts)
{
    struct time_rule r;
    for (const char *s = q->times; s && next_time(&s, &r);)
        if (ts == r.at ? !r.equal : ts > r.at ? !r.above : !r.below)
            return false;
    return true;
}

static int check_times(const struct request *q, struct error *err)
{
    struct time_rule r;
    const char *s = q->times;
    while (s && next_time(&s, &r))
        ;
    if (s && s[strspn(s, ", ")])
        return error_set(err, -MRD_ESQL,
                         "experimental_flamegraph: '%s' is no list of times; write for example '>=100,<200'", q->times);
    return 0;
}

/* The time of all rows: the one that was asked for, or the first bound. */
static int64_t time_of_rows(const struct request *q)
{
    struct time_rule r;
    const char *s = q->times;
    if (!s || !next_time(&s, &r))
        return q->ts;
    return r.equal ? r.at : saturating_add(r.at, r.above ? 1 : -1);
}

static int native_tree(const struct request *q, struct profile_tree *tree)
{
    struct stacks s = {.st = q->st, .tree = tree};
    const struct table *t = &q->st->t[T_heap_profile_allocation];
    int rc = merge_stacks(&s, q->stop);
    for (uint32_t r = 0; r < t->n_rows && rc == 0; r++)
        if (table_get(t, heap_profile_allocation_c_ts, r) <= q->ts &&
            is_wanted(q, table_get(t, heap_profile_allocation_c_upid, r)))
            count_at(&s, table_get(t, heap_profile_allocation_c_callsite_id, r),
                     table_get(t, heap_profile_allocation_c_count, r), table_get(t, heap_profile_allocation_c_size, r));
    mem_free(s.node_of);
    return rc;
}

static bool is_sample_wanted(const struct request *q, const struct table *t, uint32_t row)
{
    const struct table *tasks = &q->st->t[T_profiler_task_context];
    int64_t task = table_get(t, profiler_sample_c_task_context_id, row);
    strid source = (strid)table_get(t, profiler_sample_c_source, row);
    return task != COL_NULL && task < tasks->n_rows &&
           strcmp(strpool_cstr(&q->st->strings, source), "linux.perf") == 0 &&
           is_in_time(q, table_get(t, profiler_sample_c_ts, row)) &&
           is_wanted(q, table_get(tasks, profiler_task_context_c_upid, (uint32_t)task));
}

static int perf_tree(const struct request *q, struct profile_tree *tree)
{
    struct stacks s = {.st = q->st, .tree = tree};
    const struct table *t = &q->st->t[T_profiler_sample];
    uint32_t first = 0;
    while (first < t->n_rows && !is_sample_wanted(q, t, first))
        first++;
    int rc = first < t->n_rows ? merge_stacks(&s, q->stop) : 0;
    for (uint32_t r = first; r < t->n_rows && rc == 0; r++)
        if (is_sample_wanted(q, t, r))
            count_at(&s, table_get(t, profiler_sample_c_callsite_id, r), 1, 0);
    mem_free(s.node_of);
    return rc;
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 */

/* Marks the nodes that stay: those whose name has the text, and all above and below them. */
static void mark_focus(const struct request *q, struct profile_tree *tree)
{
    size_t n = tree->nodes.n;
    struct profile_node *p = tree->nodes.p;
    for (size_t i = 0; i < n; i++) {
        const char *name = strpool_cstr(&q->st->strings, p[i].name);
        p[i].kept = !q->pattern || (p[i].parent != NODE_NONE && p[p[i].parent].kept) ||
                    (p[i].name && sqlite3_strlike(q->pattern, name, '\\') == 0);
    }
    for (size_t i = n; i > 0; i--)
        if (p[i - 1].kept && p[i - 1].parent != NODE_NONE)
            p[p[i - 1].parent].kept = true;
}

static const struct column_def columns[] = {
    {"profile_type", COL_STR, 0, "Kind that was asked for."},
    {"ts_in", COL_I64, COL_NULLABLE, "Time that was asked for."},
    {"ts_constraint", COL_STR, COL_NULLABLE, "Times that were asked for."},
    {"upid", COL_U32, COL_NULLABLE, "Process that was asked for."},
    {"upid_group", COL_STR, COL_NULLABLE, "Processes that were asked for."},
    {"focus_str", COL_STR, COL_NULLABLE, "Text that was asked for."},
    {"ts", COL_I64, 0, "Time of the profile."},
    {"depth", COL_U32, 0, "Nodes above."},
    {"name", COL_STR, COL_NULLABLE, "Function or class."},
    {"map_name", COL_STR, COL_NULLABLE, "File of the code."},
    {"count", COL_I64, 0, "Samples, allocations or objects."},
    {"cumulative_count", COL_I64, 0, "The same with all below."},
    {"size", COL_I64, 0, "Bytes."},
    {"cumulative_size", COL_I64, 0, "The same with all below."},
    {"alloc_count", COL_I64, 0, "Allocations, freed or not."},
    {"cumulative_alloc_count", COL_I64, 0, "The same with all below."},
    {"alloc_size", COL_I64, 0, "Bytes allocated, freed or not."},
    {"cumulative_alloc_size", COL_I64, 0, "The same with all below."},
    {"parent_id", COL_U32, COL_NULLABLE, "Node above; NULL at the top."},
    {"source_file", COL_STR, COL_NULLABLE, "Source file."},
    {"line_number", COL_U32, COL_NULLABLE, "Line in it."},
};
static const struct table_def def = {"", columns, sizeof columns / sizeof *columns, ""};

static strid intern_text(struct strpool *strings, const char *text)
{
    return text ? strpool_intern_str(strings, text) : 0;
}

/* Appends the nodes that stay. Their sums with all below go from the last node up: a child stands behind its parent. */
static int append_nodes(const struct request *q, struct strpool *strings, struct profile_tree *tree, struct table *out)
{
    struct profile_node *p = tree->nodes.p;
    const int64_t ts = time_of_rows(q), kind = intern_text(strings, q->kind), times = intern_text(strings, q->times),
                  group = intern_text(strings, q->upids), focus = intern_text(strings, q->focus);
    int64_t below[SUMS];
    mark_focus(q, tree);
    for (size_t i = tree->nodes.n; i > 0; i--) {
        struct profile_node *n = &p[i - 1];
        for (int k = 0; k < SUMS && n->kept; k++) {
            n->below[k] = saturating_add(n->below[k], n->sums[k]);
            if (n->parent != NODE_NONE)
                p[n->parent].below[k] = saturating_add(p[n->parent].below[k], n->below[k]);
        }
    }
    for (size_t i = 0; i < tree->nodes.n; i++) {
        struct profile_node *n = &p[i];
        if (!n->kept)
            continue;
        memcpy(below, n->below, sizeof below);
        int64_t words[] = {kind,
                           q->ts,
                           times,
                           q->upid,
                           group,
                           focus,
                           ts,
                           n->depth,
                           n->name,
                           n->mapping,
                           n->sums[COUNT],
                           below[COUNT],
                           n->sums[SIZE],
                           below[SIZE],
                           n->sums[ALLOC_COUNT],
                           below[ALLOC_COUNT],
                           n->sums[ALLOC_SIZE],
                           below[ALLOC_SIZE],
                           n->parent == NODE_NONE ? COL_NULL : p[n->parent].row,
                           n->file,
                           n->line};
        n->row = out->n_rows;
        if (table_append(out, words) == UINT32_MAX)
            return -MRD_ENOMEM;
    }
    return 0;
}

static const char *text_or_null(sqlite3_value *v)
{
    return sqlite3_value_type(v) == SQLITE_NULL ? NULL : (const char *)sqlite3_value_text(v);
}

static int make_tree(struct engine *e, const struct request *q, struct profile_tree *tree, struct error *err)
{
    const char *kind = q->kind;
    if (strcmp(kind, "graph") == 0) {
        if (q->upid == COL_NULL || q->ts == COL_NULL)
            return error_set(err, -MRD_ESQL, "experimental_flamegraph: 'graph' needs a ts and a upid");
        return profile_tree_of_heap_graph(engine_storage(e), q->upid, q->ts, tree, q->stop, err);
    }
    bool is_native = strcmp(kind, "native") == 0;
    if (!is_native && strcmp(kind, "perf") != 0)
        return error_set(err, -MRD_ESQL, "experimental_flamegraph: '%s' is no profile; known are graph, native, perf",
                         kind);
    if (q->upid == COL_NULL && !q->upids)
        return error_set(err, -MRD_ESQL, "experimental_flamegraph: '%s' needs a upid or a upid_group", kind);
    if (is_native && q->ts == COL_NULL)
        return error_set(err, -MRD_ESQL, "experimental_flamegraph: 'native' needs a ts");
    int rc = check_times(q, err);
    return rc ? rc : is_native ? native_tree(q, tree) : perf_tree(q, tree);
}

static int experimental_flamegraph(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct profile_tree tree = {0};
    struct request q = {.st = engine_storage(e), .stop = engine_stop(e), .ts = COL_NULL, .upid = COL_NULL};
    q.kind = text_or_null(args[0]);
    q.focus = text_or_null(args[5]);
    if (!q.kind)
        return 0;
    if (sqlite3_value_type(args[1]) != SQLITE_NULL)
        q.ts = sqlite3_value_int64(args[1]);
    if (sqlite3_value_type(args[3]) != SQLITE_NULL)
        q.upid = sqlite3_value_int64(args[3]);
    q.times = text_or_null(args[2]);
    q.upids = text_or_null(args[4]);
    char *like = NULL;
    if (q.focus) { /* as a pattern of LIKE, which does not mind case */
        sqlite3_str *s = sqlite3_str_new(NULL);
        sqlite3_str_appendchar(s, 1, '%');
        for (const char *p = q.focus; *p; p++)
            sqlite3_str_appendf(s, "%s%c", strchr("%_\\", *p) ? "\\" : "", *p);
        sqlite3_str_appendchar(s, 1, '%');
        like = sqlite3_str_finish(s);
        q.pattern = like;
    }
    int rc = q.focus && !like ? -MRD_ENOMEM : make_tree(e, &q, &tree, err);
    if (rc == 0)
        rc = append_nodes(&q, &engine_storage(e)->strings, &tree, out);
    sqlite3_free(like);
    profile_tree_free(&tree);
    return rc == -MRD_ENOMEM ? error_set(err, -MRD_ENOMEM, "out of memory") : rc;
}

const struct engine_table_function profile_tree_table_functions[] = {
    {"experimental_flamegraph", &def, 6, ROWS_BOTH, experimental_flamegraph},
};
const size_t profile_tree_table_functions_n =
    sizeof profile_tree_table_functions / sizeof *profile_tree_table_functions;
