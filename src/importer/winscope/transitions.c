/* Imports transitions between states of the shell. Several packets tell of one; its row is written at the end. */
#include "importer/winscope/winscope_internal.h"

struct transition {
    int64_t id;
    int64_t send, dispatch, first_dispatch, merge, shell_abort, wm_abort, finish, create;
    int64_t start_transaction, finish_transaction, handler, type, flags;
    struct arg_list args; /* of all packets */
};

struct transitions {
    struct u64map by_id; /* id -> index */
    VEC(struct transition)
    list;
};

void transitions_close(struct transitions *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->list.n; i++)
        arg_list_free(&t->list.p[i].args);
    u64map_free(&t->by_id);
    vec_free(&t->list);
    mem_free(t);
}

static struct transition *transition_of(struct winscope_machine *w, int64_t id)
{
    struct transitions *t = w->transitions;
    bool added = false;
    if (!t && !(t = w->transitions = mem_zalloc(sizeof *t)))
        return NULL;
    uint64_t *at = u64map_put(&t->by_id, (uint64_t)id, &added);
    if (!at)
        return NULL;
    if (added) {
        *at = t->list.n;
        struct transition k = {id,       COL_NULL, COL_NULL, COL_NULL, COL_NULL, COL_NULL, COL_NULL, COL_NULL,
                               COL_NULL, COL_NULL, COL_NULL, COL_NULL, COL_NULL, COL_NULL, {0}};
        if (!vec_push(&t->list, k))
            return NULL;
    }
    return *at < t->list.n ? &t->list.p[*at] : NULL;
}

static int64_t bounds_row(struct packet *p, struct slice change, uint32_t field)
{
    struct pb_field f;
    return pb_find(change, field, &f) ? winscope_rect_row(winscope_of(p), winscope_read_rect(pb_bytes(&f))) : COL_NULL;
}

static int64_t unsigned_field(struct slice bytes, uint32_t field)
{
    struct pb_field f;
    return pb_find(bytes, field, &f) ? (int64_t)pb_u32(&f) : COL_NULL;
}

static void add_participant(struct packet *p, int64_t id, struct slice change)
{
    window_manager_shell_transition_participants_insert(
        p->m->st, &(struct window_manager_shell_transition_participants_row){
                      .transition_id = id,
                      .layer_id = unsigned_field(change, SHELL_TRANSITION_CHANGE_LAYER_ID),
                      .window_id = unsigned_field(change, SHELL_TRANSITION_CHANGE_WINDOW_ID),
                      .mode = unsigned_field(change, SHELL_TRANSITION_CHANGE_MODE),
                      .flags = unsigned_field(change, SHELL_TRANSITION_CHANGE_FLAGS),
                      .start_display_id = unsigned_field(change, SHELL_TRANSITION_CHANGE_START_DISPLAY_ID),
                      .end_display_id = unsigned_field(change, SHELL_TRANSITION_CHANGE_END_DISPLAY_ID),
                      .start_rotation = unsigned_field(change, SHELL_TRANSITION_CHANGE_START_ROTATION),
                      .end_rotation = unsigned_field(change, SHELL_TRANSITION_CHANGE_END_ROTATION),
                      .start_abs_bounds_rect_id = bounds_row(p, change, SHELL_TRANSITION_CHANGE_START_ABSOLUTE_BOUNDS),
                      .end_abs_bounds_rect_id = bounds_row(p, change, SHELL_TRANSITION_CHANGE_END_ABSOLUTE_BOUNDS)});
}

/* Later values of a key replace those before. */
static void merge_args(struct packet *p, struct transition *k, argset set)
{
    struct arg_list add = {0};
    struct args *args = &p->m->st->args;
    args_values(args, set, &add);
    for (size_t i = 0; i < add.n; i++) {
        size_t at = 0;
        while (at < k->args.n && k->args.p[at].key != add.p[i].key)
            at++;
        if (at < k->args.n)
            k->args.p[at] = add.p[i];
        else
            arg_list_add(args, &k->args, add.p[i].flat_key, add.p[i].key, add.p[i].type, add.p[i].word);
    }
    arg_list_free(&add);
}

void shell_transition_parse(struct packet *p)
{
    struct winscope_machine *w = winscope_of(p);
    struct pb_field f;
    int64_t id = (int32_t)winscope_number(p->field, SHELL_TRANSITION_ID, 0);
    struct transition *k = transition_of(w, id);
    if (!k) {
        p->m->im->failed = true;
        return;
    }
    const struct {
        uint32_t field;
        int64_t *value;
    } values[] = {{SHELL_TRANSITION_CREATE_TIME_NS, &k->create},
                  {SHELL_TRANSITION_SEND_TIME_NS, &k->send},
                  {SHELL_TRANSITION_DISPATCH_TIME_NS, &k->dispatch},
                  {SHELL_TRANSITION_MERGE_TIME_NS, &k->merge},
                  {SHELL_TRANSITION_SHELL_ABORT_TIME_NS, &k->shell_abort},
                  {SHELL_TRANSITION_WM_ABORT_TIME_NS, &k->wm_abort},
                  {SHELL_TRANSITION_FINISH_TIME_NS, &k->finish},
                  {SHELL_TRANSITION_START_TRANSACTION_ID, &k->start_transaction},
                  {SHELL_TRANSITION_FINISH_TRANSACTION_ID, &k->finish_transaction},
                  {SHELL_TRANSITION_HANDLER, &k->handler},
                  {SHELL_TRANSITION_TYPE, &k->type},
                  {SHELL_TRANSITION_FLAGS, &k->flags}};
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            if (values[i].field == f.id)
                *values[i].value = pb_i64(&f);
        if (f.id == SHELL_TRANSITION_DISPATCH_TIME_NS && k->first_dispatch == COL_NULL)
            k->first_dispatch = k->dispatch;
        if (f.id == SHELL_TRANSITION_CHANGES)
            add_participant(p, id, pb_bytes(&f));
    }
    if (c.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_shell_transitions_parse_errors, 1);
    argset set = winscope_args(p, WINSCOPE_SHELL_TRANSITION, p->field, NULL);
    merge_args(p, k, set);
    window_manager_shell_transition_protos_insert(
        p->m->st, &(struct window_manager_shell_transition_protos_row){.transition_id = id,
                                                                       .base64_proto_id = winscope_proto_id(set)});
}

static int64_t as_unsigned(int64_t value)
{
    return value == COL_NULL ? COL_NULL : (int64_t)(uint32_t)value;
}

static void write_transition(struct winscope_machine *w, struct transition *k)
{
    const char *status = NULL;
    int64_t duration = COL_NULL;
    if (k->merge != COL_NULL) {
        status = "merged";
    } else if (k->dispatch != COL_NULL && k->finish != COL_NULL) {
        status = "played";
        if (__builtin_sub_overflow(k->finish, k->dispatch, &duration))
            duration = COL_NULL;
    } else if ((k->shell_abort != COL_NULL || k->wm_abort != COL_NULL) && k->dispatch == COL_NULL) {
        status = "aborted";
    }
    window_manager_shell_transitions_insert(
        w->m->st,
        &(struct window_manager_shell_transitions_row){.ts = k->send != COL_NULL             ? k->send
                                                             : k->first_dispatch != COL_NULL ? k->first_dispatch
                                                                                             : 0,
                                                       .transition_id = k->id,
                                                       .arg_set_id = args_intern(&w->m->st->args, k->args.p, k->args.n),
                                                       .transition_type = as_unsigned(k->type),
                                                       .send_time_ns = k->send,
                                                       .dispatch_time_ns = k->dispatch,
                                                       .duration_ns = duration,
                                                       .finish_time_ns = k->finish,
                                                       .shell_abort_time_ns = k->shell_abort,
                                                       .wm_abort_time_ns = k->wm_abort,
                                                       .merge_time_ns = k->merge,
                                                       .create_time_ns = k->create,
                                                       .handler = k->handler,
                                                       .status = status ? import_str(w->m->im, status) : 0,
                                                       .flags = as_unsigned(k->flags),
                                                       .start_transaction_id = k->start_transaction,
                                                       .finish_transaction_id = k->finish_transaction});
}

void transitions_finish(struct winscope_machine *w)
{
    for (size_t i = 0; w->transitions && i < w->transitions->list.n; i++)
        write_transition(w, &w->transitions->list.p[i]);
}

void shell_handlers_parse(struct packet *p)
{
    argset set = winscope_args(p, WINSCOPE_SHELL_HANDLERS, p->field, NULL);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == SHELL_HANDLER_MAPPINGS_MAPPING)
            window_manager_shell_transition_handlers_insert(
                p->m->st, &(struct window_manager_shell_transition_handlers_row){
                              .handler_id = (int32_t)winscope_number(pb_bytes(&f), SHELL_HANDLER_MAPPING_ID, 0),
                              .handler_name = winscope_text(p->m, pb_bytes(&f), SHELL_HANDLER_MAPPING_NAME),
                              .base64_proto_id = winscope_proto_id(set)});
    if (c.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_shell_transitions_parse_errors, 1);
}
