/* CPU profiles of V8 in events of phase P: a call tree that grows, and samples of its nodes. */
#include "base/hash.h"
#include "importer/json/chrome_json.h"
#include "importer/profiling/profile_file.h"
#include "importer/sort/sorter.h"
#include "importer/track/process_tracker.h"

#define NODE_NONE UINT32_MAX

struct v8_node {
    uint32_t profile;
    uint32_t frame;
    uint32_t parent; /* node; NODE_NONE: none is known */
    uint32_t callsite;
    bool resolved, visiting;
};

struct v8_profile {
    uint64_t id;
    int64_t pid;
    int64_t last_us;
    uint32_t mapping; /* UINT32_MAX until needed */
};

struct v8_sample {
    uint32_t thread, node;
};

struct v8_profiles {
    uint32_t queue;
    bool resolved;
    struct u64map by_id; /* hash of id and process -> index into profiles */
    VEC(struct v8_profile)
    profiles;
    struct u64map by_node; /* hash of profile and node id -> index into nodes */
    VEC(struct v8_node)
    nodes;
    struct u64map named; /* hash of profile and node id -> the node that named it a child */
    VEC(struct v8_sample)
    samples;
};

void v8_profiles_close(struct v8_profiles *v)
{
    if (!v)
        return;
    u64map_free(&v->by_id);
    u64map_free(&v->by_node);
    u64map_free(&v->named);
    vec_free(&v->profiles);
    vec_free(&v->nodes);
    vec_free(&v->samples);
    mem_free(v);
}

/* The callsite of a node: those of its callers first. */
static uint32_t resolve(struct chrome *c, uint32_t index)
{
    struct v8_profiles *v = c->v8;
    uint32_t chain = index, below = NODE_NONE;
    /* Up to what is known; on the way each parent's link is turned around, and back on the way down. */
    while (!v->nodes.p[chain].resolved) {
        struct v8_node *n = &v->nodes.p[chain];
        uint32_t up = n->parent;
        n->visiting = true;
        if (up == NODE_NONE || v->nodes.p[up].visiting) { /* a root, or a circle: cut here */
            n->callsite = stack_profile_callsite(c->m, CALLSITE_NONE, n->frame);
            n->resolved = true;
            n->visiting = false;
            n->parent = NODE_NONE;
            break;
        }
        n->parent = below;
        below = chain;
        chain = up;
    }
    while (below != NODE_NONE) {
        struct v8_node *n = &v->nodes.p[below];
        uint32_t next = n->parent;
        n->callsite = stack_profile_callsite(c->m, v->nodes.p[chain].callsite, n->frame);
        n->resolved = true;
        n->visiting = false;
        n->parent = chain;
        chain = below;
        below = next;
    }
    return v->nodes.p[index].callsite;
}

static void parse_samples(void *owner, const struct sort_event *events, size_t n)
{
    struct chrome *c = owner;
    struct v8_profiles *v = c->v8;
    for (uint32_t i = 0; !v->resolved && i < v->nodes.n; i++)
        resolve(c, i);
    v->resolved = true;
    for (size_t i = 0; i < n; i++) {
        struct v8_sample s = v->samples.p[events[i].a];
        const struct chrome_thread *t = chrome_thread_of(c, s.thread);
        profile_file_sample(c->m, events[i].ts, "legacy_v8", t->utid, t->upid, COL_NULL, v->nodes.p[s.node].callsite);
    }
}

bool v8_profiles_open(struct chrome *c)
{
    if (!c->v8 && (c->v8 = mem_zalloc(sizeof *c->v8)))
        c->v8->queue = sorter_add_queue(c->im->sorter, parse_samples, c);
    return c->v8 != NULL;
}

/* What an event of a profile is read into. */
struct chunk {
    struct chrome *c;
    const uint8_t *from, *to; /* the event's text */
    uint32_t thread;
    struct v8_profile *profile; /* NULL: there is none */
    uint32_t index;             /* of it */
    bool has_start;
    int64_t start_us;
    struct slice nodes, samples, deltas; /* arrays; empty: not given */
};

/* A member of an object by its name; an empty slice when it has none or is malformed. */
static struct slice member(struct slice object, const char *name)
{
    struct json_reader r = json_reader(object);
    struct json_text key;
    struct slice value, found = {0};
    r.lenient = true;
    if (!object.len || object.p[0] != '{' || !json_enter(&r, '{'))
        return found;
    while (json_member(&r, &key) && json_skip(&r, &value))
        if (json_text_is(key, name))
            found = value;
    return r.status == JSON_OK ? found : (struct slice){0};
}

static bool integer(struct slice value, int64_t *out)
{
    struct json_number n;
    return value.len && json_number_of(value, &n) && json_number_i64(&n, true, out);
}

static strid text_of(struct chrome *c, struct slice value)
{
    struct json_reader r = json_reader(value);
    struct json_text text;
    return value.len && value.p[0] == '"' && json_string(&r, &text) && text.raw.len ? chrome_string(c, text) : 0;
}

static bool is_array(struct slice value)
{
    return value.len && value.p[0] == '[';
}

/* The next element of an array; false at its end. */
static bool element(struct json_reader *r, struct slice *value)
{
    return json_element(r) && json_skip(r, value);
}

static size_t count_elements(struct slice array)
{
    struct json_reader r = json_reader(array);
    struct slice value;
    size_t n = 0;
    if (is_array(array) && json_enter(&r, '['))
        while (element(&r, &value))
            n++;
    return n;
}

static uint64_t node_key(const struct chrome *c, uint32_t profile, int64_t id)
{
    return hash_keyed(c->im->secret, profile, (uint64_t)id);
}

static void bad_callsite(const struct chunk *k)
{
    chrome_text_log(k->c, STAT_legacy_v8_cpu_profile_invalid_callsite, k->from, k->to, NULL);
}

/* Notes which nodes a node names its children: they may be there already. */
static void name_children(struct chunk *k, uint32_t index, struct slice children)
{
    struct v8_profiles *v = k->c->v8;
    struct json_reader r = json_reader(children);
    struct slice value;
    int64_t id;
    if (!is_array(children) || !json_enter(&r, '['))
        return;
    while (element(&r, &value)) {
        if (!integer(value, &id))
            continue;
        const uint64_t *child = u64map_get(&v->by_node, node_key(k->c, k->index, id));
        if (child && v->nodes.p[*child].parent == NODE_NONE && *child != index)
            v->nodes.p[*child].parent = index;
        else if (child)
            bad_callsite(k);
        else if (!u64map_set(&v->named, node_key(k->c, k->index, id), index))
            k->c->im->failed = true;
    }
}

static void read_node(struct chunk *k, struct slice node)
{
    struct v8_profiles *v = k->c->v8;
    struct machine_ctx *m = k->c->m;
    int64_t id, parent_id;
    if (!integer(member(node, "id"), &id))
        return;
    bool has_parent = integer(member(node, "parent"), &parent_id);
    uint64_t key = node_key(k->c, k->index, id);
    if (!k->profile || u64map_get(&v->by_node, key)) {
        bad_callsite(k);
        return;
    }
    struct slice frame = member(node, "callFrame");
    strid name = text_of(k->c, member(frame, "functionName")), url = text_of(k->c, member(frame, "url"));
    if (k->profile->mapping == UINT32_MAX)
        k->profile->mapping = profile_file_own_mapping(m, 0);
    uint32_t row = profile_file_frame(m, k->profile->mapping, name ? name : import_str(m->im, ""), url);
    const uint64_t *named = u64map_get(&v->named, key);
    const uint64_t *given = has_parent ? u64map_get(&v->by_node, node_key(k->c, k->index, parent_id)) : NULL;
    if ((has_parent && !given) || (given && named && *given != *named)) {
        bad_callsite(k);
        return;
    }
    struct v8_node n = {.profile = k->index,
                        .frame = row,
                        .parent = given   ? (uint32_t)*given
                                  : named ? (uint32_t)*named
                                          : NODE_NONE,
                        .callsite = CALLSITE_NONE};
    uint32_t index = (uint32_t)v->nodes.n;
    if (n.frame == UINT32_MAX || !vec_push(&v->nodes, n) || !u64map_set(&v->by_node, key, index)) {
        k->c->im->failed = true;
        return;
    }
    name_children(k, index, member(node, "children"));
}

static void read_samples(struct chunk *k)
{
    struct chrome *c = k->c;
    struct v8_profiles *v = c->v8;
    struct json_reader samples = json_reader(k->samples), deltas = json_reader(k->deltas);
    struct slice sample, delta;
    if (!k->samples.len || !json_enter(&samples, '[') || !json_enter(&deltas, '['))
        return;
    while (element(&samples, &sample) && element(&deltas, &delta)) {
        int64_t id, us, ts;
        if (!integer(delta, &us) || !integer(sample, &id))
            continue;
        k->profile->last_us = (int64_t)((uint64_t)k->profile->last_us + (uint64_t)us);
        const uint64_t *node = u64map_get(&v->by_node, node_key(k->c, k->index, id));
        if (!node) {
            stats_add(&c->im->st->stats, c->m->id, STAT_legacy_v8_cpu_profile_invalid_sample, 1);
            continue;
        }
        int64_t ns;
        if (__builtin_mul_overflow(k->profile->last_us, (int64_t)1000, &ns))
            ns = -1;
        if (!file_clock_to_trace_time(&c->clock, ns, -1, &ts))
            continue;
        if (!vec_push(&v->samples, (struct v8_sample){k->thread, (uint32_t)*node})) {
            c->im->failed = true;
            return;
        }
        sorter_push(c->im->sorter, v->queue, (struct sort_event){.ts = ts, .a = v->samples.n - 1});
    }
}

/* The profile of an id, made when `start`. */
static bool find_profile(struct chunk *k, uint64_t id, int64_t pid, bool start)
{
    struct v8_profiles *v = k->c->v8;
    uint64_t key = hash_keyed(k->c->im->secret, id, (uint64_t)pid);
    const uint64_t *at = u64map_get(&v->by_id, key);
    if (!at && !start)
        return true;
    if (start) { /* again: nodes and samples that are there stay as they are */
        if (!vec_push(&v->profiles, (struct v8_profile){id, pid, k->start_us, UINT32_MAX}) ||
            !u64map_set(&v->by_id, key, v->profiles.n - 1))
            return false;
        at = u64map_get(&v->by_id, key);
    }
    k->index = (uint32_t)*at;
    k->profile = &v->profiles.p[k->index];
    return true;
}

/* Nodes and samples of an event or a document. */
static void read_chunk(struct chunk *k)
{
    struct json_reader nodes = json_reader(k->nodes);
    struct slice node;
    if (is_array(k->nodes) && json_enter(&nodes, '['))
        while (element(&nodes, &node))
            read_node(k, node);
    size_t n_samples = count_elements(k->samples);
    if (n_samples != count_elements(k->deltas))
        chrome_text_error(k->c, k->from, k->to, "a CPU profile has not as many time deltas as samples");
    else if (!k->profile && n_samples)
        chrome_text_error(k->c, k->from, k->to, "samples of a CPU profile that has not begun");
    else if (k->profile)
        read_samples(k);
}

void v8_profile_event(struct chrome *c, const uint8_t *from, const uint8_t *to, const struct chrome_event *e)
{
    struct chunk k = {.c = c, .from = from, .to = to, .thread = e->thread, .index = UINT32_MAX};
    uint64_t id = (uint64_t)e->id.value;
    struct json_reader check = json_reader(e->args);
    if (e->id.kind == CHROME_NO_ID || !(e->flags & CHROME_HAS_ARGS) || !json_check(&check))
        return;
    if (e->id.kind == CHROME_ID_TEXT && !chrome_hex(strpool_view(&c->im->st->strings, (strid)e->id.value), &id)) {
        chrome_text_error(c, from, to, "the id of a CPU profile is no hexadecimal number");
        return;
    }
    struct slice data = member(e->args, "data"), profile = member(data, "cpuProfile");
    bool start = integer(member(data, "startTime"), &k.start_us);
    if (!v8_profiles_open(c) || !find_profile(&k, id, c->threads.p[e->thread].pid, start)) {
        c->im->failed = true;
        return;
    }
    if (start)
        return;
    k.nodes = member(profile, "nodes");
    k.samples = member(profile, "samples");
    k.deltas = member(data, "timeDeltas");
    read_chunk(&k);
}

void v8_profile_document(struct chrome *c, const struct slice parts[V8_PARTS])
{
    uint32_t thread = chrome_thread_index(c, (struct chrome_thread){.track = UINT32_MAX});
    const uint8_t *end = c->buffer;
    struct chunk k = {.c = c,
                      .from = end,
                      .to = end,
                      .thread = thread,
                      .nodes = parts[V8_NODES],
                      .samples = parts[V8_SAMPLES],
                      .deltas = parts[V8_DELTAS]};
    if (!integer(parts[V8_START], &k.start_us))
        k.start_us = 0;
    if (!v8_profiles_open(c) || !find_profile(&k, 0, 0, true))
        c->im->failed = true;
    else
        read_chunk(&k);
}
