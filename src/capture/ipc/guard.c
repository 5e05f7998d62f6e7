/* The allow list, and a budget of connections and bytes for each machine. */
#include "capture/ipc/guard.h"

#include "base/alloc.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { REFILL_MS = 100, NAME_MAX_BYTES = 128 };

struct guarded_machine {
    struct guarded_machine *next;
    struct ipc_guard *guard;
    uint32_t id;
    char name[NAME_MAX_BYTES]; /* certified, or what the first connection claimed */
    struct ipc_guarded_conn *conns;
    unsigned n_conns;
    int64_t budget; /* bytes that may still come before the next refill */
    bool certified, paused, slow_logged;
};

struct ipc_guard {
    struct ipc_guard_options o;
    uv_timer_t refill;
    struct guarded_machine *machines;
    bool refilling;
};

static void on_closed(uv_handle_t *h)
{
    struct ipc_guard *g = h->data;
    for (struct guarded_machine *m = g->machines, *next; m; m = next) {
        next = m->next;
        mem_free(m);
    }
    mem_free(g);
}

struct ipc_guard *ipc_guard_new(uv_loop_t *loop, const struct ipc_guard_options *o)
{
    struct ipc_guard *g = mem_zalloc(sizeof *g);
    if (!g)
        return NULL;
    g->o = *o;
    uv_timer_init(loop, &g->refill);
    g->refill.data = g;
    return g;
}

void ipc_guard_close(struct ipc_guard *g)
{
    if (g)
        uv_close((uv_handle_t *)&g->refill, on_closed);
}

bool ipc_guard_needs_name(const struct ipc_guard *g)
{
    return g && g->o.allow;
}

static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        if (n == len && memcmp(p, name, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* What a machine may send between two refills. */
static int64_t share(const struct ipc_guard *g)
{
    uint64_t bytes = g->o.max_bytes_per_s / (1000 / REFILL_MS);
    return (int64_t)(g->o.max_bytes_per_s && !bytes ? 1 : bytes);
}

/* With a certificate a machine is its name: whatever ids it claims, its budget is one. */
static struct guarded_machine *machine_of(struct ipc_guard *g, uint32_t id, const char *name, bool certified)
{
    for (struct guarded_machine *m = g->machines; m; m = m->next)
        if (certified ? strcmp(m->name, name) == 0 : m->id == id)
            return m;
    struct guarded_machine *m = mem_zalloc(sizeof *m);
    if (!m)
        return NULL;
    m->guard = g;
    m->id = id;
    m->certified = certified;
    m->budget = share(g);
    snprintf(m->name, sizeof m->name, "%s", name);
    m->next = g->machines;
    g->machines = m;
    return m;
}

static bool is_of_another(const struct ipc_guard *g, uint32_t id, const char *name)
{
    for (const struct guarded_machine *m = g->machines; m; m = m->next)
        if (m->id == id && strcmp(m->name, name) != 0)
            return true;
    return false;
}

/* Ids that nobody proves can be made up without end: they are forgotten when they have no connection and no debt. */
static void forget_strays(struct ipc_guard *g)
{
    for (struct guarded_machine **p = &g->machines, *m; (m = *p) != NULL;) {
        if (m->certified || m->n_conns || m->budget < share(g)) {
            p = &m->next;
        } else {
            *p = m->next;
            mem_free(m);
        }
    }
}

const char *ipc_guard_admit(struct ipc_guard *g, struct ipc_guarded_conn *v, uint32_t machine_id, const char *name,
                            const char *certified)
{
    if (certified && strcmp(certified, name) != 0)
        return "its certificate is for another name";
    if (!g)
        return NULL;
    if (g->o.allow && !listed(g->o.allow, name))
        return "its name is not in --relay-allow";
    if (certified && is_of_another(g, machine_id, name))
        return "another machine has this id";
    struct guarded_machine *m = machine_of(g, machine_id, name, certified != NULL);
    if (!m)
        return "out of memory";
    if (g->o.max_connections && m->n_conns >= g->o.max_connections)
        return "it has reached the limit of --relay-max-connections";
    v->machine = m;
    v->next = m->conns;
    v->prev = &m->conns;
    if (v->next)
        v->next->prev = &v->next;
    m->conns = v;
    m->n_conns++;
    if (m->paused)
        v->pause(v, true);
    return NULL;
}

void ipc_guard_leave(struct ipc_guarded_conn *v)
{
    if (!v->machine)
        return;
    struct ipc_guard *g = v->machine->guard;
    v->machine->n_conns--;
    *v->prev = v->next;
    if (v->next)
        v->next->prev = v->prev;
    v->machine = NULL;
    forget_strays(g);
}

static void pause_all(struct guarded_machine *m, bool paused)
{
    m->paused = paused;
    for (struct ipc_guarded_conn *v = m->conns; v; v = v->next)
        v->pause(v, paused);
}

static void on_refill(uv_timer_t *t)
{
    struct ipc_guard *g = t->data;
    int64_t full = share(g);
    bool idle = true;
    for (struct guarded_machine *m = g->machines; m; m = m->next) {
        idle &= m->budget == full;
        m->budget = m->budget < 0 ? m->budget + full : full;
        if (m->paused && m->budget > 0)
            pause_all(m, false);
    }
    forget_strays(g);
    g->refilling = !idle;
    if (idle)
        uv_timer_stop(t);
}

void ipc_guard_count(struct ipc_guarded_conn *v, uint64_t bytes)
{
    struct guarded_machine *m = v->machine;
    if (!m || !m->guard->o.max_bytes_per_s)
        return;
    m->budget -= (int64_t)bytes;
    if (!m->guard->refilling) {
        m->guard->refilling = true;
        uv_timer_start(&m->guard->refill, on_refill, REFILL_MS, REFILL_MS);
    }
    if (m->budget > 0 || m->paused)
        return;
    if (!m->slow_logged)
        log_line("traced: machine %u \"%s\" exceeds --relay-max-bytes; reading from it more slowly", m->id, m->name);
    m->slow_logged = true;
    pause_all(m, true);
}
