/* Messages that have begun, under one bound. */
#include "capture/ipc/halves.h"

#include "base/alloc.h"

struct half_user {
    struct half_user *next;
    uint64_t id;
    size_t bytes;
    unsigned n;
};

static struct half_user *find_user(struct ipc_halves *h, uint64_t id)
{
    struct half_user *u = h->users;
    while (u && u->id != id)
        u = u->next;
    if (u)
        return u;
    u = mem_zalloc(sizeof *u);
    if (u) {
        u->id = id;
        u->next = h->users;
        h->users = u;
    }
    return u;
}

static void forget_user(struct ipc_halves *h, struct half_user *gone)
{
    struct half_user **at = &h->users;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    mem_free(gone);
}

static void take_out(struct ipc_halves *h, struct ipc_half *v)
{
    *(v->prev ? &v->prev->next : &h->oldest) = v->next;
    *(v->next ? &v->next->prev : &h->newest) = v->prev;
    h->bytes -= v->bytes;
    v->user->bytes -= v->bytes;
    if (--v->user->n == 0)
        forget_user(h, v->user);
    v->next = v->prev = NULL;
    v->user = NULL;
    v->bytes = 0;
}

static bool put_in(struct ipc_halves *h, struct ipc_half *v)
{
    v->user = find_user(h, v->user_id);
    if (!v->user)
        return false;
    v->user->n++;
    v->prev = h->newest;
    *(v->prev ? &v->prev->next : &h->oldest) = v;
    h->newest = v;
    return true;
}

static struct ipc_half *victim(const struct ipc_halves *h)
{
    const struct half_user *most = h->users;
    for (const struct half_user *u = h->users; u; u = u->next)
        most = u->bytes > most->bytes ? u : most;
    struct ipc_half *v = h->oldest;
    while (v->user != most)
        v = v->next;
    return v;
}

bool ipc_half_hold(struct ipc_halves *h, struct ipc_half *v, size_t bytes, bool anew)
{
    if (v->bytes && (anew || !bytes))
        take_out(h, v);
    if (!bytes)
        return true;
    if (!v->bytes && !put_in(h, v))
        return false;
    h->bytes += bytes - v->bytes;
    v->user->bytes += bytes - v->bytes;
    v->bytes = bytes;
    while (h->bytes > h->max) {
        struct ipc_half *out = victim(h);
        if (out == v) {
            take_out(h, v);
            return false;
        }
        out->drop(out);
    }
    return true;
}
