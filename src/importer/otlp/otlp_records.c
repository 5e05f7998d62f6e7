/* The records that messages of OTLP become: resources, scopes, and spans by their keys. */
#include "importer/otlp/otlp_internal.h"

#include "base/hash.h"
#include "importer/sort/sorter.h"
#include "wire/fields.h"

#include <stdlib.h>
#include <sys/random.h>

enum { SAME_HASH = 8 /* resources that are compared; more of one hash are taken as they come */ };

struct otlp *otlp_of(struct importer *im)
{
    if (im->otlp)
        return im->otlp;
    struct otlp *o = mem_zalloc(sizeof *o);
    if (!o) {
        im->failed = true;
        return NULL;
    }
    o->im = im;
    o->queue = sorter_add_queue(im->sorter, otlp_parse, o);
    /* Keys are the file's: nobody is to know which of them collide. */
    if (getrandom(&o->seed, sizeof o->seed, GRND_NONBLOCK) != sizeof o->seed)
        o->seed = (uintptr_t)o;
    otlp_args_open(o);
    im->otlp = o;
    return o;
}

void otlp_close(struct importer *im)
{
    struct otlp *o = im->otlp;
    if (!o)
        return;
    for (size_t i = 0; i < o->copies.n; i++)
        mem_free(o->copies.p[i]);
    for (size_t i = 0; i < o->processes.n; i++) {
        u64map_free(&o->processes.p[i].tids);
        u64map_free(&o->processes.p[i].names);
    }
    for (size_t i = 0; i < o->threads.n; i++)
        vec_free(&o->threads.p[i].open);
    for (size_t i = 0; i < o->services.n; i++) {
        struct otlp_service *s = &o->services.p[i];
        for (size_t k = 0; k < s->lanes.n; k++)
            vec_free(&s->lanes.p[k].open);
        vec_free(&s->lanes);
        vec_free(&s->busy);
        vec_free(&s->idle);
    }
    vec_free(&o->copies);
    vec_free(&o->files);
    vec_free(&o->resources);
    vec_free(&o->scopes);
    vec_free(&o->spans);
    vec_free(&o->events);
    vec_free(&o->links);
    vec_free(&o->clocks);
    vec_free(&o->processes);
    vec_free(&o->threads);
    vec_free(&o->services);
    vec_free(&o->order);
    vec_free(&o->text);
    u64map_free(&o->by_resource);
    u64map_free(&o->by_key);
    u64map_free(&o->groups);
    mem_free(o);
    im->otlp = NULL;
}

void otlp_count(const struct otlp_reading *r, enum stat_key stat, int64_t n)
{
    const struct otlp_file *f = &r->o->files.p[r->file];
    stats_add_idx(&r->o->im->st->stats, f->input.base_machine, stat, (int32_t)f->trace_file, n);
}

bool otlp_resource_begin(struct otlp_reading *r)
{
    struct otlp *o = r->o;
    struct otlp_resource *res = o->resources.n < OTLP_NONE ? vec_add(&o->resources) : NULL;
    if (!res) {
        o->im->failed = true;
        return false;
    }
    res->file = r->file;
    res->same_hash = OTLP_NONE;
    r->resource = (uint32_t)(o->resources.n - 1);
    return true;
}

/* What the facts are called, in this order. */
static const char *const fact_keys[OTLP_FACTS] = {
    [FACT_SERVICE] = "service.name",
    [FACT_NAMESPACE] = "service.namespace",
    [FACT_INSTANCE] = "service.instance.id",
    [FACT_HOST_ID] = "host.id",
    [FACT_HOST_NAME] = "host.name",
    [FACT_NODE] = "k8s.node.name",
    [FACT_ARCH] = "host.arch",
    [FACT_OS] = "os.type",
    [FACT_OS_TEXT] = "os.description",
    [FACT_EXECUTABLE] = "process.executable.name",
    [FACT_COMMAND] = "process.command",
    [FACT_COMMAND_LINE] = "process.command_line",
    [FACT_CONTAINER] = "container.id",
    [FACT_LANGUAGE] = "telemetry.sdk.language",
    [FACT_PID] = "process.pid",
};
static const char PREFIX[] = "otel.resource.";

/* A process id: an integer, or the text of one. 0 when it is none. */
static int64_t pid_of(struct importer *im, const struct arg *a)
{
    int64_t pid = a->type == ARG_INT      ? a->word
                  : a->type == ARG_STRING ? strtoll(strpool_cstr(&im->st->strings, (strid)a->word), NULL, 10)
                                          : 0;
    return pid > 0 && pid <= INT32_MAX ? pid : 0;
}

/* Joins the words of process.command_args. */
static strid joined(struct importer *im, const struct arg_list *args, strid flat_key)
{
    VEC(char)
    text = {0};
    for (size_t i = 0; i < args->n; i++) {
        if (args->p[i].flat_key != flat_key || args->p[i].type != ARG_STRING)
            continue;
        struct slice word = strpool_view(&im->st->strings, (strid)args->p[i].word);
        if (!vec_reserve(&text, text.n + word.len + 1)) {
            im->failed = true;
            break;
        }
        if (text.n)
            text.p[text.n++] = ' ';
        memcpy(text.p + text.n, word.p, word.len);
        text.n += word.len;
    }
    strid id = text.n ? import_slice(im, slice_of(text.p, text.n)) : 0;
    vec_free(&text);
    return id;
}

static void read_facts(struct importer *im, struct otlp_resource *res, const struct arg_list *args)
{
    const size_t skip = sizeof PREFIX - 1;
    for (size_t i = 0; i < args->n; i++) {
        struct slice key = strpool_view(&im->st->strings, args->p[i].key);
        for (int f = 0; f < OTLP_FACTS; f++) {
            if (!slice_eq_str(slice_of(key.p + skip, key.len - skip), fact_keys[f]))
                continue;
            if (f == FACT_PID)
                res->pid = pid_of(im, &args->p[i]);
            else if (args->p[i].type == ARG_STRING && strpool_view(&im->st->strings, (strid)args->p[i].word).len)
                res->facts[f] = (strid)args->p[i].word;
        }
    }
    res->command_args = joined(im, args, import_str(im, "otel.resource.process.command_args"));
}

/* A resource of the same file with the same bytes, OTLP_NONE; where there is none, *head is the chain to join. */
static uint32_t same_resource(struct otlp *o, const struct otlp_resource *res, uint64_t **head)
{
    *head = u64map_put(&o->by_resource, hash_bytes(res->raw.p, res->raw.len) ^ o->seed, NULL);
    if (!*head) {
        o->im->failed = true;
        return OTLP_NONE;
    }
    uint32_t at = (uint32_t)(**head - 1);
    for (int i = 0; at != OTLP_NONE && i < SAME_HASH; i++, at = o->resources.p[at].same_hash)
        if (o->resources.p[at].file == res->file && slice_eq(o->resources.p[at].raw, res->raw))
            return at;
    return OTLP_NONE;
}

void otlp_resource_end(struct otlp_reading *r, struct slice raw, uint32_t first_scope)
{
    struct otlp *o = r->o;
    struct otlp_resource *res = &o->resources.p[r->resource];
    uint64_t *head;
    res->raw = raw;
    uint32_t same = same_resource(o, res, &head);
    if (same != OTLP_NONE) {
        for (size_t i = first_scope; i < o->scopes.n; i++)
            o->scopes.p[i].resource = same;
        o->resources.n--;
        r->resource = same;
        return;
    }
    if (head) {
        res->same_hash = (uint32_t)(*head - 1);
        *head = (uint64_t)r->resource + 1;
    }
    struct arg_list args = {0};
    struct otlp_walk w = {.im = o->im, .out = &args};
    bool json = otlp_is_json(raw);
    if (otlp_key_append(&w, slice_str("otel.resource"), true))
        otlp_attributes(&w, json, json ? otlp_json_member(raw, "attributes") : raw, OTLP_RESOURCE_ATTRIBUTES);
    o->im->failed |= w.failed;
    otlp_walk_free(&w);
    read_facts(o->im, res, &args);
    res->args = args_intern(&o->im->st->args, args.p, args.n);
    arg_list_free(&args);
}

bool otlp_scope_begin(struct otlp_reading *r)
{
    struct otlp *o = r->o;
    struct otlp_scope scope = {.resource = r->resource};
    if (o->scopes.n >= OTLP_NONE || !vec_push(&o->scopes, scope)) {
        o->im->failed = true;
        return false;
    }
    r->scope = (uint32_t)(o->scopes.n - 1);
    return true;
}

static uint64_t key_hash(const struct otlp *o, const struct otlp_key *key)
{
    uint64_t w[3];
    _Static_assert(sizeof w == sizeof *key, "three words");
    memcpy(w, key, sizeof w);
    return hash_combine(hash_combine(hash_combine(o->seed, w[0]), w[1]), w[2]);
}

uint32_t otlp_find(const struct otlp *o, const struct otlp_key *key)
{
    const uint64_t *first = u64map_get(&o->by_key, key_hash(o, key));
    uint32_t at = first ? (uint32_t)*first : OTLP_NONE;
    while (at != OTLP_NONE && memcmp(&o->spans.p[at].key, key, sizeof *key) != 0)
        at = o->spans.p[at].same_hash;
    return at;
}

static const struct otlp_resource *resource_of(const struct otlp *o, const struct otlp_span *s)
{
    return &o->resources.p[o->scopes.p[s->scope].resource];
}

/* Whether two sets of args say the same. Those of a form that is read with as little effort as the second. */
static bool same_args(struct otlp *o, enum otlp_args_of of, uint32_t x, uint32_t y)
{
    struct arg_list a = {0}, b = {0};
    otlp_args_values(o, of, x, &a);
    otlp_args_values(o, of, y, &b);
    bool same = a.n == b.n;
    for (size_t i = 0; same && i < a.n; i++)
        same = a.p[i].key == b.p[i].key && a.p[i].type == b.p[i].type && a.p[i].word == b.p[i].word;
    arg_list_free(&a);
    arg_list_free(&b);
    return same;
}

/* Whether a span that has the key of another says what that says. Spans of very different sizes in the same form do
 * not; else the work is that of reading the second span again, not the first. */
static bool same_span(struct otlp *o, uint32_t x, uint32_t y)
{
    enum { RATIO = 8 };
    const struct otlp_span *a = &o->spans.p[x], *b = &o->spans.p[y];
    if (a->name != b->name || a->ts != b->ts || a->end != b->end || a->kind != b->kind || a->status != b->status ||
        memcmp(a->parent, b->parent, sizeof a->parent) != 0 || a->n_events != b->n_events || a->n_links != b->n_links ||
        resource_of(o, a)->facts[FACT_SERVICE] != resource_of(o, b)->facts[FACT_SERVICE])
        return false;
    if (a->raw_len == b->raw_len && memcmp(a->raw, b->raw, a->raw_len) == 0)
        return true;
    if (a->raw_len / RATIO > b->raw_len || !same_args(o, OTLP_ARGS_SPAN, x, y))
        return false;
    for (uint32_t i = 0; i < a->n_events; i++) {
        const struct otlp_event *e = &o->events.p[a->first_event + i], *f = &o->events.p[b->first_event + i];
        if (e->ts != f->ts || e->name != f->name ||
            !same_args(o, OTLP_ARGS_EVENT, a->first_event + i, b->first_event + i))
            return false;
    }
    for (uint32_t i = 0; i < a->n_links; i++)
        if (memcmp(&o->links.p[a->first_link + i].to, &o->links.p[b->first_link + i].to, sizeof(struct otlp_key)) !=
                0 ||
            !same_args(o, OTLP_ARGS_LINK, a->first_link + i, b->first_link + i))
            return false;
    return true;
}

/* Enters a span into the table of keys; or finds that it is there already. */
static void enter(struct otlp_reading *r, uint32_t index)
{
    struct otlp *o = r->o;
    struct otlp_span *s = &o->spans.p[index];
    uint32_t first = otlp_find(o, &s->key);
    if (first != OTLP_NONE) {
        s->second = true;
        s->dropped = same_span(o, first, index);
        otlp_count(r, s->dropped ? STAT_otlp_duplicate_span : STAT_otlp_reused_span_id, 1);
        return;
    }
    bool added;
    uint64_t *head = u64map_put(&o->by_key, key_hash(o, &s->key), &added);
    if (!head) {
        o->im->failed = true;
        return;
    }
    s->same_hash = added ? OTLP_NONE : (uint32_t)*head;
    *head = index;
}

void otlp_span_add(struct otlp_reading *r, struct otlp_span *s, bool bad_id, size_t first_event, size_t first_link)
{
    struct otlp *o = r->o;
    bool skip = bad_id || otlp_is_zero(s->key.trace, sizeof s->key.trace) ||
                otlp_is_zero(s->key.span, sizeof s->key.span) || s->ts <= 0 || o->spans.n >= OTLP_ARGS_MAX ||
                o->events.n >= OTLP_ARGS_MAX || o->links.n >= OTLP_ARGS_MAX;
    if (!skip && !vec_push(&o->spans, *s))
        o->im->failed = skip = true;
    if (skip) {
        o->events.n = first_event;
        o->links.n = first_link;
        otlp_count(r, STAT_otlp_spans_skipped, 1);
        return;
    }
    uint32_t index = (uint32_t)(o->spans.n - 1);
    s = &o->spans.p[index];
    s->first_event = (uint32_t)first_event;
    s->n_events = (uint32_t)(o->events.n - first_event);
    s->first_link = (uint32_t)first_link;
    s->n_links = (uint32_t)(o->links.n - first_link);
    s->scope = r->scope;
    s->same_hash = s->parent_span = s->thread = s->lane = s->slice = s->row = s->track = OTLP_NONE;
    for (size_t i = first_event; i < o->events.n; i++)
        o->events.p[i].span = index;
    for (size_t i = first_link; i < o->links.n; i++)
        o->links.p[i].span = index;
    r->spans++;
}

void otlp_spans_enter(struct otlp_reading *r, size_t first)
{
    for (size_t i = first; i < r->o->spans.n; i++)
        enter(r, (uint32_t)i);
}
