/* Reads one event: its fields in one pass, in place. */
#include "base/hash.h"
#include "importer/json/chrome_json.h"
#include "importer/sort/sorter.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* How a value was read. */
enum value { VALUE_OK, VALUE_OTHER /* of another kind, passed over */, VALUE_ERROR /* see the reader */ };

/* An event while it is read. */
struct reading {
    struct chrome *c;
    struct json_reader *r;
    const uint8_t *start;
    struct chrome_event e;
    int64_t pid, tid;
    strid pid_name, tid_name;
    bool has_ts;
    const uint8_t *bad_time; /* behind a duration or thread time that is no number; NULL: none */
    const uint8_t *bad_id2;  /* where a malformed id2 ended; NULL: none */
};

bool chrome_time(const struct json_number *n, int64_t *ns)
{
    /* Doubles of microseconds keep three decimals up to here; what is larger goes from digits to ns without one. */
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                                  1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};
    static const double doubles_do = (double)((uint64_t)1 << 41);
    if (n->integer) {
        if (!n->whole_exact || n->whole > (uint64_t)INT64_MAX / 1000) {
            *ns = -1; /* beyond all times: dropped and counted as the negative ones are */
            return true;
        }
        *ns = (int64_t)(n->whole * 1000);
        *ns = n->negative ? -*ns : *ns;
        return true;
    }
    double d = (double)n->whole;
    if (!n->whole_exact || n->exponent)
        d = json_number_f64(n);
    else if (n->fraction_digits) /* as the public tool adds it up, to the bit */
        d += (double)n->fraction / tens[n->fraction_digits < COUNT(tens) ? n->fraction_digits : COUNT(tens) - 1];
    d = n->negative && d > 0 ? -d : d;
    if (!isfinite(d))
        return false;
    if (fabs(d) >= doubles_do) {
        if (!json_number_scaled(n, 3, ns))
            *ns = -1;
        return true;
    }
    *ns = d == floor(d) ? (int64_t)d * 1000 : (int64_t)llround(d * 1000.0);
    return true;
}

static inline enum value passed_over(struct reading *x)
{
    return json_skip(x->r, NULL) ? VALUE_OTHER : VALUE_ERROR;
}

/* A time, as a number or in a string. */
static enum value read_time(struct reading *x, int64_t *ns)
{
    struct json_number n;
    struct json_text text;
    int c = json_peek(x->r);
    if (c == '"') {
        if (!json_string(x->r, &text))
            return VALUE_ERROR;
        return json_number_of(text.raw, &n) && chrome_time(&n, ns) ? VALUE_OK : VALUE_OTHER;
    }
    if (c != '-' && (c < '0' || c > '9'))
        return passed_over(x);
    if (!json_read_number(x->r, &n))
        return VALUE_ERROR;
    return chrome_time(&n, ns) ? VALUE_OK : VALUE_OTHER;
}

static enum value read_text(struct reading *x, struct json_text *text)
{
    if (json_peek(x->r) != '"')
        return passed_over(x);
    return json_string(x->r, text) ? VALUE_OK : VALUE_ERROR;
}

static enum value read_string(struct reading *x, strid *id)
{
    struct json_text text;
    enum value v = read_text(x, &text);
    *id = v == VALUE_OK && text.raw.len ? chrome_string(x->c, text) : 0;
    return v;
}

/* A pid or tid: a number that fits, else 0; or a text, which stands for a number beyond all those. */
static enum value read_number_or_name(struct reading *x, int64_t *number, strid *name)
{
    struct json_number n;
    struct json_text text;
    int c = json_peek(x->r);
    if (c == '"') {
        if (!json_string(x->r, &text))
            return VALUE_ERROR;
        *name = chrome_string(x->c, text);
        *number = (int64_t)UINT32_MAX + 1 + *name;
        return VALUE_OK;
    }
    if (c != '-' && (c < '0' || c > '9'))
        return passed_over(x);
    if (!json_read_number(x->r, &n))
        return VALUE_ERROR;
    *name = 0;
    if (n.integer) {
        *number = n.whole_exact && !n.negative && n.whole <= UINT32_MAX ? (int64_t)n.whole : 0;
        return VALUE_OK;
    }
    double d = json_number_f64(&n);
    *number = d >= 0 && d < (double)UINT32_MAX + 1 ? (int64_t)d : 0;
    return VALUE_OK;
}

static enum value read_id(struct reading *x, struct chrome_id *id)
{
    struct json_number n;
    struct json_text text;
    int c = json_peek(x->r);
    if (c == '"') {
        if (!json_string(x->r, &text))
            return VALUE_ERROR;
        *id = (struct chrome_id){CHROME_ID_TEXT, chrome_string(x->c, text)};
        return VALUE_OK;
    }
    if (c != '-' && (c < '0' || c > '9'))
        return passed_over(x);
    if (!json_read_number(x->r, &n))
        return VALUE_ERROR;
    int64_t v;
    if (!n.integer)
        return VALUE_OTHER;
    if (!json_number_i64(&n, false, &v))
        v = (int64_t)(n.negative ? 0 - n.whole : n.whole);
    *id = (struct chrome_id){CHROME_ID_INT, v};
    return VALUE_OK;
}

/* {local, global}. False when it is malformed: then nothing of it counts. */
static bool read_id2(struct reading *x, struct slice object)
{
    struct json_reader inner = json_reader(object), *outer = x->r;
    struct json_text key;
    struct chrome_id local = {0}, global = {0};
    bool ok = json_enter(&inner, '{');
    inner.lenient = true;
    x->r = &inner;
    while (ok && json_member(&inner, &key)) {
        struct chrome_id *to = json_text_is(key, "local") ? &local : json_text_is(key, "global") ? &global : NULL;
        ok = (to ? read_id(x, to) : passed_over(x)) != VALUE_ERROR;
    }
    x->r = outer;
    if (!ok || inner.status != JSON_OK)
        return false;
    x->e.id2_local = local;
    x->e.id2_global = global;
    return true;
}

static bool read_flag(struct reading *x, uint32_t flag)
{
    int value, c = json_peek(x->r);
    if (c != 't' && c != 'f')
        return json_skip(x->r, NULL);
    if (!json_literal(x->r, &value))
        return false;
    x->e.flags = value == 1 ? x->e.flags | flag : x->e.flags & ~flag;
    return true;
}

/* dur, tts, tdur: an event where one is no time is not used. */
static bool read_span(struct reading *x, int64_t *to, uint32_t flag)
{
    enum value v = read_time(x, to);
    if (v == VALUE_OTHER && !x->bad_time)
        x->bad_time = json_peek(x->r) == ',' ? x->r->p + 1 : x->r->p;
    x->e.flags |= flag;
    return v != VALUE_ERROR;
}

enum field {
    FIELD_OTHER,
    FIELD_PH,
    FIELD_TS,
    FIELD_DUR,
    FIELD_TTS,
    FIELD_TDUR,
    FIELD_PID,
    FIELD_TID,
    FIELD_NAME,
    FIELD_CAT,
    FIELD_ID,
    FIELD_ID2,
    FIELD_BIND_ID,
    FIELD_ARGS,
    FIELD_S,
    FIELD_BP,
    FIELD_FLOW_IN,
    FIELD_FLOW_OUT,
};

#define KEY(text, field)                                                                                               \
    if (len == sizeof(text) - 1 && memcmp(p, text, sizeof(text) - 1) == 0)                                             \
    return field

static enum field field_of(const char *p, size_t len)
{
    switch (len ? *p : 0) { /* the letters that keys begin with */
    case 'a':
        KEY("args", FIELD_ARGS);
        break;
    case 'b':
        KEY("bp", FIELD_BP);
        KEY("bind_id", FIELD_BIND_ID);
        break;
    case 'c':
        KEY("cat", FIELD_CAT);
        break;
    case 'd':
        KEY("dur", FIELD_DUR);
        break;
    case 'f':
        KEY("flow_in", FIELD_FLOW_IN);
        KEY("flow_out", FIELD_FLOW_OUT);
        break;
    case 'i':
        KEY("id", FIELD_ID);
        KEY("id2", FIELD_ID2);
        break;
    case 'n':
        KEY("name", FIELD_NAME);
        break;
    case 'p':
        KEY("ph", FIELD_PH);
        KEY("pid", FIELD_PID);
        break;
    case 's':
        KEY("s", FIELD_S);
        break;
    case 't':
        KEY("ts", FIELD_TS);
        KEY("tid", FIELD_TID);
        KEY("tts", FIELD_TTS);
        KEY("tdur", FIELD_TDUR);
        break;
    }
    return FIELD_OTHER;
}

static bool read_args(struct reading *x)
{
    bool object = json_peek(x->r) == '{';
    struct slice text;
    if (!json_skip(x->r, &text))
        return false;
    x->e.flags &= ~(uint32_t)(CHROME_HAS_ARGS | CHROME_ARGS_EMPTY);
    if (object) {
        x->e.args = text;
        x->e.flags |= CHROME_HAS_ARGS;
    }
    return true;
}

/* The value of a member. False when the text is cut or wrong. Long: one switch over the fields of an event. */
static bool read_field(struct reading *x, enum field field)
{
    struct chrome_event *e = &x->e;
    struct json_text text;
    struct slice raw;
    enum value v;
    switch (field) {
    case FIELD_PH:
        v = read_text(x, &text);
        e->phase = v == VALUE_OK && text.raw.len ? (char)text.raw.p[0] : 0;
        return v != VALUE_ERROR;
    case FIELD_TS:
        v = read_time(x, &e->ts);
        x->has_ts |= v == VALUE_OK;
        return v != VALUE_ERROR;
    case FIELD_DUR:
        return read_span(x, &e->dur, CHROME_HAS_DUR);
    case FIELD_TTS:
        return read_span(x, &e->tts, CHROME_HAS_TTS);
    case FIELD_TDUR:
        return read_span(x, &e->tdur, CHROME_HAS_TDUR);
    case FIELD_PID:
        v = read_number_or_name(x, &x->pid, &x->pid_name);
        e->flags |= v == VALUE_OK ? CHROME_HAS_PID : 0;
        return v != VALUE_ERROR;
    case FIELD_TID:
        v = read_number_or_name(x, &x->tid, &x->tid_name);
        e->flags |= v == VALUE_OK ? CHROME_HAS_TID : 0;
        return v != VALUE_ERROR;
    case FIELD_NAME:
        return read_string(x, &e->name) != VALUE_ERROR;
    case FIELD_CAT:
        return read_string(x, &e->cat) != VALUE_ERROR;
    case FIELD_ID:
        e->flags |= CHROME_HAS_IDS;
        return read_id(x, &e->id) != VALUE_ERROR;
    case FIELD_BIND_ID:
        e->flags |= CHROME_HAS_IDS;
        return read_id(x, &e->bind_id) != VALUE_ERROR;
    case FIELD_ID2:
        e->flags |= CHROME_HAS_IDS;
        if (json_peek(x->r) != '{')
            return json_skip(x->r, NULL);
        if (!json_skip(x->r, &raw))
            return false;
        x->bad_id2 = read_id2(x, raw) ? NULL : x->r->p;
        return true;
    case FIELD_ARGS:
        return read_args(x);
    case FIELD_S:
        v = read_text(x, &text);
        e->scope = v == VALUE_OK && text.raw.len ? (char)text.raw.p[0] : 0;
        return v != VALUE_ERROR;
    case FIELD_BP:
        v = read_text(x, &text);
        e->flags |= v == VALUE_OK && json_text_is(text, "e") ? CHROME_ENCLOSING : 0;
        return v != VALUE_ERROR;
    case FIELD_FLOW_IN:
        return read_flag(x, CHROME_FLOW_IN);
    case FIELD_FLOW_OUT:
        return read_flag(x, CHROME_FLOW_OUT);
    default:
        return json_skip(x->r, NULL);
    }
}

uint32_t chrome_thread_index(struct chrome *c, struct chrome_thread t)
{
    if (!t.tid && t.pid) {
        t.tid = t.pid;
        t.tid_name = t.pid_name;
    }
    const struct chrome_thread *last = c->threads.n ? &c->threads.p[c->last_thread] : NULL;
    if (last && last->pid == t.pid && last->tid == t.tid)
        return c->last_thread;
    bool added;
    uint64_t key = hash_keyed(c->im->secret, (uint64_t)t.pid, (uint64_t)t.tid), *v;
    for (;; key++) { /* two of one hash: the next key */
        v = u64map_put(&c->thread_index, key, &added);
        if (!v) {
            c->im->failed = true;
            return 0;
        }
        if (added || (c->threads.p[*v].pid == t.pid && c->threads.p[*v].tid == t.tid))
            break;
    }
    if (added) {
        *v = c->threads.n;
        if (!vec_push(&c->threads, t)) {
            c->im->failed = true;
            return 0;
        }
    }
    c->last_thread = (uint32_t)*v;
    return c->last_thread;
}

/* Where an event stands among others of its time, once a complete event was seen: ends, then complete events by falling
 * duration, then the rest. It counts from the earliest time that came late or twice. */
static uint64_t order_of(struct chrome *c, const struct chrome_event *e)
{
    enum { RANK = 62 };
    const uint64_t most = ((uint64_t)1 << RANK) - 1;
    c->seen_complete |= e->phase == 'X';
    if (e->ts > c->max_ts)
        c->max_ts = e->ts;
    else if ((e->ts < c->max_ts || c->seen_complete) && e->ts < c->tie_from)
        c->tie_from = e->ts;
    if (e->phase == 'E')
        return 0;
    if (e->phase != 'X' || e->dur <= 0 || !(e->flags & CHROME_HAS_DUR))
        return (uint64_t)2 << RANK;
    return (uint64_t)1 << RANK | (most - ((uint64_t)e->dur < most ? (uint64_t)e->dur : most));
}

/* Args out of bytes that go are kept. */
static void keep_args(struct chrome *c, struct chrome_event *e)
{
    if (!(e->flags & CHROME_HAS_ARGS))
        return;
    if (!chrome_args_any(e->args))
        e->flags |= CHROME_ARGS_EMPTY;
    if (c->stable)
        return;
    uint8_t *copy = arena_alloc_bytes(&c->kept, e->args.len);
    if (!copy) {
        c->im->failed = true;
        e->flags &= ~(uint32_t)CHROME_HAS_ARGS;
        return;
    }
    memcpy(copy, e->args.p, e->args.len);
    e->args.p = copy;
}

static void queue_event(struct reading *x)
{
    struct chrome *c = x->c;
    struct chrome_event *e = &x->e;
    if (x->bad_id2)
        chrome_text_error(c, x->start, x->bad_id2, NULL);
    if (!e->phase || (!x->has_ts && e->phase != 'M')) {
        chrome_text_error(c, x->start, x->r->p, NULL);
        return;
    }
    if (x->bad_time) {
        chrome_text_error(c, x->start, x->bad_time, NULL);
        return;
    }
    if (!x->has_ts)
        e->ts = 0;
    if (c->base_ns && e->ts >= 0 && __builtin_add_overflow(e->ts, c->base_ns, &e->ts))
        e->ts = -1; /* beyond all times */
    if (!file_clock_to_trace_time(&c->clock, e->ts, (int64_t)(c->base_offset + (uint64_t)(x->start - c->buffer)),
                                  &e->ts))
        return;
    e->thread = chrome_thread_index(
        c, (struct chrome_thread){
               .pid = x->pid, .tid = x->tid, .pid_name = x->pid_name, .tid_name = x->tid_name, .track = UINT32_MAX});
    if (e->phase == 'P') {
        v8_profile_event(c, x->start, x->r->p, e);
        return;
    }
    struct sort_event s = {.ts = e->ts};
    if (e->ts >= 0) {
        s.b = order_of(c, e);
        keep_args(c, e);
        s.a = chrome_record_put(c->records, e, c->stable ? c->file_first : NULL);
        if (s.a == UINT64_MAX) {
            c->im->failed = true;
            return;
        }
    }
    sorter_push(c->im->sorter, c->queue, s);
}

bool chrome_event_read(struct chrome *c, struct json_reader *r)
{
    struct reading x = {.c = c, .r = r, .start = r->p, .e.dur = -1};
    struct json_text key;
    char plain[16];
    x.e.tts = x.e.tdur = COL_NULL;
    r->lenient = true;
    if (!json_enter(r, '{'))
        return false;
    bool empty = true;
    while (json_member(r, &key)) {
        struct slice k = key.raw;
        empty = false;
        if (key.escaped) {
            size_t n = k.len <= sizeof plain * 6 ? k.len : 0;
            char long_key[sizeof plain * 6];
            n = n ? json_unescape(key, JSON_TOLERANT, long_key) : 0;
            k = slice_of(memcpy(plain, long_key, n < sizeof plain ? n : 0), n < sizeof plain ? n : 0);
        }
        if (!read_field(&x, field_of((const char *)k.p, k.len)))
            return false;
    }
    if (r->status != JSON_OK)
        return false;
    if (!empty) {
        c->n_events++;
        queue_event(&x);
    }
    return true;
}
