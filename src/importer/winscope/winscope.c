/* What Android's window system says of itself: the table of handlers and the state of a machine. */
#include "importer/winscope/winscope_internal.h"

static void input_method(struct packet *p, uint32_t field, struct slice bytes)
{
    struct storage *st = p->m->st;
    if (field == WINSCOPE_EXTENSIONS_INPUTMETHOD_CLIENTS) {
        argset set = winscope_args(p, WINSCOPE_IME_CLIENTS, bytes, NULL);
        winscope_count_damage(p, bytes, STAT_winscope_inputmethod_clients_parse_errors);
        inputmethod_clients_insert(st, &(struct inputmethod_clients_row){p->ts, set, winscope_proto_id(set)});
    } else if (field == WINSCOPE_EXTENSIONS_INPUTMETHOD_SERVICE) {
        argset set = winscope_args(p, WINSCOPE_IME_SERVICE, bytes, NULL);
        winscope_count_damage(p, bytes, STAT_winscope_inputmethod_service_parse_errors);
        inputmethod_service_insert(st, &(struct inputmethod_service_row){p->ts, set, winscope_proto_id(set)});
    } else {
        argset set = winscope_args(p, WINSCOPE_IME_MANAGER, bytes, NULL);
        winscope_count_damage(p, bytes, STAT_winscope_inputmethod_manager_service_parse_errors);
        inputmethod_manager_service_insert(
            st, &(struct inputmethod_manager_service_row){p->ts, set, winscope_proto_id(set)});
    }
}

/* A carrier: the first message that is known counts. */
static void extensions_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case WINSCOPE_EXTENSIONS_INPUTMETHOD_CLIENTS:
        case WINSCOPE_EXTENSIONS_INPUTMETHOD_SERVICE:
        case WINSCOPE_EXTENSIONS_INPUTMETHOD_MANAGER_SERVICE:
            input_method(p, f.id, pb_bytes(&f));
            return;
        case WINSCOPE_EXTENSIONS_VIEWCAPTURE:
            view_capture_parse(p, pb_bytes(&f));
            return;
        case WINSCOPE_EXTENSIONS_ANDROID_INPUT_EVENT:
            input_event_parse(p, pb_bytes(&f));
            return;
        case WINSCOPE_EXTENSIONS_WINDOWMANAGER:
            window_manager_parse(p, pb_bytes(&f));
            return;
        }
    }
}

const struct packet_handler winscope_packet_handlers[] = {
    {TRACE_PACKET_SURFACEFLINGER_LAYERS_SNAPSHOT, "surfaceflinger_layers_snapshot", NULL, layers_snapshot_parse},
    {TRACE_PACKET_SURFACEFLINGER_TRANSACTIONS, "surfaceflinger_transactions", NULL, transactions_parse},
    {TRACE_PACKET_SHELL_TRANSITION, "shell_transition", NULL, shell_transition_parse},
    {TRACE_PACKET_SHELL_HANDLER_MAPPINGS, "shell_handler_mappings", NULL, shell_handlers_parse},
    {TRACE_PACKET_PROTOLOG_MESSAGE, "protolog_message", NULL, protolog_parse},
    {TRACE_PACKET_PROTOLOG_VIEWER_CONFIG, "protolog_viewer_config", protolog_config_tokenize, NULL},
    {TRACE_PACKET_WINSCOPE_EXTENSIONS, "winscope_extensions", NULL, extensions_parse},
    {0, NULL, NULL, NULL},
};

struct winscope_machine *winscope_machine_open(struct machine_ctx *m)
{
    struct winscope_machine *w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    w->m = m;
    if (m->id == 0)
        winscope_args_open(m->im);
    return w;
}

void winscope_machine_finish(struct winscope_machine *w)
{
    transitions_finish(w);
}

void winscope_machine_close(struct winscope_machine *w)
{
    if (!w)
        return;
    arena_free(&w->arena);
    u64map_free(&w->rects);
    u64map_free(&w->transforms);
    u64map_free(&w->flag_sets);
    protolog_close(w->protolog);
    transitions_close(w->transitions);
    mem_free(w);
}
