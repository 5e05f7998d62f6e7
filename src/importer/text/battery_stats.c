/* Reads the history in Android's battery statistics: "9,h,DELTA_MS,+S,Bl=50,…", with the texts of "9,hsp,…".
 *
 * Names and values are those of Android's BatteryStats (frameworks/base, HistoryPrinter). */
#include "importer/text/battery_stats.h"

#include "importer/lines/line_reader.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"

enum {
    WAKELOCK_VERSION = 36, /* from it on, every wake lock is told */
    MAX_WORDS = 24,
};

enum mark_kind { MARK_STATE, MARK_SCREEN, MARK_BATTERY, MARK_STATUS, MARK_PLUG, MARK_EVENT, MARK_LOCK, MARK_UNLOCK };

struct battery_mark {
    uint8_t kind;
    strid track, name;
    int64_t value; /* of a counter; number of a wake lock */
};

struct battery_text {
    strid text;
    int64_t uid;
};

struct battery_stats {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock *clock;
    uint32_t queue;
    int64_t now_ms;
    bool has_time, all_wakelocks;
    struct u64map by_index; /* of hsp lines: number -> index in `texts` + 1 */
    VEC(struct battery_text)
    texts;
    VEC(struct battery_mark)
    marks;
};

struct word_list {
    const char *words[MAX_WORDS];
};

static const struct word_list data_connections = {
    {"oos",    "gprs", "edge",  "umts",  "cdma", "evdo_0",   "evdo_A", "1xrtt",  "hsdpa", "hsupa",  "hspa", "iden",
     "evdo_b", "lte",  "ehrpd", "hspap", "gsm",  "td_scdma", "iwlan",  "lte_ca", "nr",    "emngcy", "other"}};
static const struct word_list phone_states = {{"in", "out", "em", "off"}};
static const struct word_list device_idle = {{"off", "light", "full", "???"}};
static const struct word_list supplicants = {
    {"inv", "dsc", "dis", "inact", "scan", "auth", "ascing", "asced", "4-way", "group", "compl", "dorm", "uninit"}};
static const struct word_list gps_qualities = {{"poor", "good", "none"}};
static const struct word_list no_words = {{NULL}};

/* States: "+S", "-S", "Pcn=lte". */
static const struct {
    const char *key, *name;
    const struct word_list *words;
} states[] = {
    {"r", "running", &no_words},
    {"w", "wake_lock", &no_words},
    {"s", "sensor", &no_words},
    {"g", "gps", &no_words},
    {"Wl", "wifi_full_lock", &no_words},
    {"Ws", "wifi_scan", &no_words},
    {"Wm", "wifi_multicast", &no_words},
    {"Wr", "wifi_radio", &no_words},
    {"Pr", "mobile_radio", &no_words},
    {"Psc", "phone_scanning", &no_words},
    {"a", "audio", &no_words},
    {"S", "screen", &no_words},
    {"BP", "plugged", &no_words},
    {"Sd", "screen_doze", &no_words},
    {"Pcn", "data_conn", &data_connections},
    {"Pst", "phone_state", &phone_states},
    {"Pss", "phone_signal_strength", &no_words},
    {"Sb", "brightness", &no_words},
    {"ps", "power_save", &no_words},
    {"v", "video", &no_words},
    {"Ww", "wifi_running", &no_words},
    {"W", "wifi", &no_words},
    {"fl", "flashlight", &no_words},
    {"di", "device_idle", &device_idle},
    {"ch", "charging", &no_words},
    {"Ud", "usb_data", &no_words},
    {"Pcl", "phone_in_call", &no_words},
    {"b", "bluetooth", &no_words},
    {"Wss", "wifi_signal_strength", &no_words},
    {"Wsp", "wifi_suppl", &supplicants},
    {"ca", "camera", &no_words},
    {"bles", "ble_scan", &no_words},
    {"Chtp", "cellular_high_tx_power", &no_words},
    {"Gss", "gps_signal_quality", &gps_qualities},
    {"nrs", "nr_state", &no_words},
};

/* Events: "+Etp=7", where 7 is the number of a text. */
static const struct {
    const char *key, *name;
} events[] = {
    {"Enl", "null"},      {"Epr", "proc"},         {"Efg", "fg"},         {"Etp", "top"},
    {"Esy", "sync"},      {"Ewl", "wake_lock_in"}, {"Ejb", "job"},        {"Eur", "user"},
    {"Euf", "userfg"},    {"Ecn", "conn"},         {"Eac", "active"},     {"Epi", "pkginst"},
    {"Epu", "pkgunin"},   {"Eal", "alarm"},        {"Est", "stats"},      {"Eai", "pkginactive"},
    {"Eaa", "pkgactive"}, {"Etw", "tmpwhitelist"}, {"Esw", "screenwake"}, {"Ewa", "wakeupap"},
    {"Elw", "longwake"},  {"Eec", "est_capacity"},
};

/* Values of the battery itself. */
static const struct {
    const char *key, *name;
    int64_t scale;
} gauges[] = {{"Bl", "capacity_pct", 1}, {"Bcc", "charge_uah", 1000}, {"Bv", "voltage_uv", 1000}};

/* A letter and the number that Android's BatteryManager gives to what it stands for; 0 for others. */
static const struct {
    char key;
    uint8_t value;
} statuses[] = {{'?', 1}, {'c', 2}, {'d', 3}, {'n', 4}, {'f', 5}}, plugs[] = {{'a', 1}, {'u', 2}, {'w', 4}};

/* --- from marks to rows ------------------------------------------------------------------------------------------ */

static uint32_t track_of(struct battery_stats *b, const char *type, enum track_kind kind, strid name,
                         const struct track_dim *dims, uint32_t n)
{
    return track_intern(
        b->im->tracks, b->m->id,
        &(struct track_spec){
            .type = type, .event_type = kind, .name = name, .parent = UINT32_MAX, .dims = dims, .n_dims = n});
}

static uint32_t counter_of(struct battery_stats *b, const struct battery_mark *k)
{
    struct strpool *strings = &b->im->st->strings;
    struct track_dim dims[2];
    switch ((enum mark_kind)k->kind) {
    case MARK_SCREEN:
        return track_of(b, "screen_state", TRACK_COUNTER, import_str(b->im, "ScreenState"), NULL, 0);
    case MARK_STATUS:
        return track_of(b, "battery_status", TRACK_COUNTER, import_str(b->im, "BatteryStatus"), NULL, 0);
    case MARK_PLUG:
        return track_of(b, "battery_plugged_status", TRACK_COUNTER, import_str(b->im, "PlugType"), NULL, 0);
    case MARK_BATTERY:
        dims[0] = (struct track_dim){"battery_name", DIM_STR, import_str(b->im, "")};
        dims[1] = (struct track_dim){"counter_name", DIM_STR, k->track};
        return track_of(b, "battery_counter", TRACK_COUNTER,
                        strpool_printf(strings, "batt.%s", strpool_cstr(strings, k->track)), dims, 2);
    default:
        dims[0] = (struct track_dim){"counter_key", DIM_STR, k->track};
        return track_of(b, "battery_stats", TRACK_COUNTER, k->track, dims, 1);
    }
}

static uint32_t wakelocks(struct battery_stats *b)
{
    return track_set_intern(b->im->tracks, b->m->id,
                            &(struct track_spec){.type = "dumpstate_wakelocks",
                                                 .event_type = TRACK_SLICE,
                                                 .name = import_str(b->im, "WakeLocks"),
                                                 .parent = UINT32_MAX});
}

static void parse_marks(void *owner, const struct sort_event *sorted, size_t n)
{
    struct battery_stats *b = owner;
    struct strpool *strings = &b->im->st->strings;
    struct slice_tracker *slices = b->im->slices;
    for (size_t i = 0; i < n; i++) {
        const struct battery_mark *k = &b->marks.p[sorted[i].a];
        int64_t ts = sorted[i].ts;
        if (k->kind == MARK_LOCK) {
            slice_begin(slices, b->m->id, ts, track_set_begin(b->im->tracks, wakelocks(b), k->value), 0, k->name,
                        ARGSET_NONE);
        } else if (k->kind == MARK_UNLOCK) {
            slice_end(slices, b->m->id, ts, track_set_end(b->im->tracks, wakelocks(b), k->value), 0, k->name, NULL);
        } else if (k->kind == MARK_EVENT) {
            struct track_dim dim = {"bstats_item_name", DIM_STR, k->track};
            strid name = strpool_printf(strings, "battery_stats.%s", strpool_cstr(strings, k->track));
            slice_scoped(slices, b->m->id, ts, track_of(b, "battery_stats", TRACK_SLICE, name, &dim, 1), 0, k->name, 0,
                         ARGSET_NONE);
        } else {
            counter_push(b->im, ts, counter_of(b, k), (double)k->value);
        }
    }
}

struct battery_stats *battery_stats_open(struct importer *im, struct file_clock *clock)
{
    struct battery_stats *b = mem_zalloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (struct battery_stats){.im = im, .m = text_machine(im), .clock = clock};
    b->queue = sorter_add_queue(im->sorter, parse_marks, b);
    return b;
}

void battery_stats_close(struct battery_stats *b)
{
    if (!b)
        return;
    u64map_free(&b->by_index);
    vec_free(&b->texts);
    vec_free(&b->marks);
    mem_free(b);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static void count_error(struct battery_stats *b)
{
    stats_add_idx(&b->im->st->stats, b->m->id, STAT_battery_history_errors, (int32_t)b->im->trace_file, 1);
}

static void push(struct battery_stats *b, struct battery_mark mark)
{
    int64_t ns, ts;
    if (!b->has_time || __builtin_mul_overflow(b->now_ms, 1000000, &ns)) {
        count_error(b);
        return;
    }
    if (!file_clock_to_trace_time(b->clock, ns, -1, &ts))
        return;
    if (vec_push(&b->marks, mark))
        sorter_push(b->im->sorter, b->queue, (struct sort_event){.ts = ts, .a = b->marks.n - 1});
    else
        b->im->failed = true;
}

/* The text up to `end`, which is cut off with it; all of it when there is no `end`. */
static struct slice cut(struct slice *s, char end)
{
    const uint8_t *at = s->len ? memchr(s->p, end, s->len) : NULL;
    struct slice first = at ? slice_of(s->p, (size_t)(at - s->p)) : *s;
    *s = at ? slice_of(at + 1, s->len - first.len - 1) : slice_of(s->p + s->len, 0);
    return first;
}

static const struct battery_text *text_at(const struct battery_stats *b, struct slice number)
{
    int64_t index;
    const uint64_t *at = number_decimal(number, &index) ? u64map_get(&b->by_index, (uint64_t)index) : NULL;
    return at ? &b->texts.p[*at - 1] : NULL;
}

/* hsp,NUMBER,UID,"TEXT" */
static void read_text(struct battery_stats *b, struct slice line)
{
    int64_t index;
    struct battery_text t;
    struct slice number = cut(&line, ','), uid = cut(&line, ',');
    cut(&line, '"'); /* what it holds stands as it is told, marks of quotes inside it included */
    while (line.len && line.p[line.len - 1] != '"')
        line.len--;
    line.len -= line.len != 0;
    if (!number_decimal(number, &index) || !number_decimal(uid, &t.uid)) {
        count_error(b);
        return;
    }
    t.text = import_slice(b->im, line);
    uint64_t *slot = vec_push(&b->texts, t) ? u64map_put(&b->by_index, (uint64_t)index, NULL) : NULL;
    if (slot)
        *slot = b->texts.n;
    else
        b->im->failed = true;
}

static void read_event(struct battery_stats *b, const char *name, char sign, struct slice value)
{
    struct strpool *strings = &b->im->st->strings;
    const struct battery_text *t = text_at(b, value);
    char plus[2] = {sign, 0};
    if (!t) {
        count_error(b);
        return;
    }
    push(b, (struct battery_mark){.kind = MARK_EVENT,
                                  .track = import_str(b->im, name),
                                  .name = strpool_printf(strings, "%s%s=%lld:\"%s\"", plus, name, (long long)t->uid,
                                                         strpool_cstr(strings, t->text))});
}

static void read_wakelock(struct battery_stats *b, char sign, struct slice value)
{
    const struct battery_text *t = text_at(b, value);
    int64_t index;
    if (!t || !number_decimal(value, &index)) {
        count_error(b);
        return;
    }
    if (b->all_wakelocks)
        push(b, (struct battery_mark){.kind = sign == '-' ? MARK_UNLOCK : MARK_LOCK, .name = t->text, .value = index});
}

static void read_state(struct battery_stats *b, size_t which, char sign, struct slice value)
{
    strid track = strpool_printf(&b->im->st->strings, "battery_stats.%s", states[which].name);
    int64_t number = sign == '+';
    if (!sign && !number_decimal(value, &number)) {
        const struct word_list *list = states[which].words;
        size_t i = 0;
        while (i < MAX_WORDS && list->words[i] && !slice_eq_str(value, list->words[i]))
            i++;
        if (i == MAX_WORDS || !list->words[i]) {
            count_error(b);
            return;
        }
        number = (int64_t)i;
    }
    push(b, (struct battery_mark){.kind = MARK_STATE, .track = track, .value = number});
    if (sign && strcmp(states[which].name, "screen") == 0)
        push(b, (struct battery_mark){.kind = MARK_SCREEN, .value = sign == '+' ? 2 : 1});
}

/* Status of the battery, and what it is plugged to: a letter each. False when the key is neither. */
static bool read_letter(struct battery_stats *b, struct slice key, struct slice value)
{
    bool status = slice_eq_str(key, "Bs");
    if (!status && !slice_eq_str(key, "Bp"))
        return false;
    if (!value.len)
        return false;
    size_t n = status ? sizeof statuses / sizeof *statuses : sizeof plugs / sizeof *plugs;
    int64_t number = 0;
    for (size_t i = 0; i < n; i++)
        if (value.p[0] == (uint8_t)(status ? statuses[i].key : plugs[i].key))
            number = status ? statuses[i].value : plugs[i].value;
    push(b, (struct battery_mark){.kind = status ? MARK_STATUS : MARK_PLUG, .value = number});
    return true;
}

static bool read_gauge(struct battery_stats *b, struct slice key, struct slice value)
{
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++) {
        int64_t number;
        if (!slice_eq_str(key, gauges[i].key))
            continue;
        if (number_decimal(value, &number) && !__builtin_mul_overflow(number, gauges[i].scale, &number))
            push(b, (struct battery_mark){
                        .kind = MARK_BATTERY, .track = import_str(b->im, gauges[i].name), .value = number});
        else
            count_error(b);
        return true;
    }
    return false;
}

/* One item of a line of history; those that are not known here are passed over. */
static void read_item(struct battery_stats *b, struct slice item)
{
    char sign = item.len && (item.p[0] == '+' || item.p[0] == '-') ? (char)item.p[0] : 0;
    if (sign)
        item = slice_from(item, 1);
    bool has_value = item.len && memchr(item.p, '=', item.len);
    struct slice value = item, key = cut(&value, '=');
    if (sign && has_value && slice_eq_str(key, "w")) {
        read_wakelock(b, sign, value);
        return;
    }
    if (!sign && (read_letter(b, key, value) || read_gauge(b, key, value)))
        return;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (slice_eq_str(key, events[i].key)) {
            read_event(b, events[i].name, sign, value);
            return;
        }
    if (sign && slice_eq_str(key, "w")) /* who holds locks, and how long, is told with numbers */
        return;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (slice_eq_str(key, states[i].key) && !sign == has_value) {
            read_state(b, i, sign, value);
            return;
        }
}

/* h,DELTA[:COMMAND[:TIME:MS]],ITEM,… */
static void read_history(struct battery_stats *b, struct slice line)
{
    struct slice first = cut(&line, ','), delta = cut(&first, ':');
    const uint8_t *time = first.len ? memmem(first.p, first.len, "TIME:", 5) : NULL;
    int64_t ms;
    if (time && number_decimal(slice_of(time + 5, first.len - (size_t)(time + 5 - first.p)), &ms)) {
        b->now_ms = ms;
        b->has_time = true;
    } else if (time || !number_decimal(delta, &ms) || __builtin_add_overflow(b->now_ms, ms, &b->now_ms)) {
        count_error(b);
        return;
    }
    while (line.len)
        read_item(b, cut(&line, ','));
}

bool battery_stats_begins(struct slice line)
{
    return slice_starts(line, "9,0,i,vers,");
}

void battery_stats_line(struct battery_stats *b, struct slice line)
{
    int64_t version;
    if (battery_stats_begins(line)) {
        line = slice_from(line, strlen("9,0,i,vers,"));
        b->all_wakelocks = number_decimal(cut(&line, ','), &version) && version >= WAKELOCK_VERSION;
        return;
    }
    if (slice_starts(line, "9,hsp,"))
        read_text(b, slice_from(line, strlen("9,hsp,")));
    else if (slice_starts(line, "9,h,"))
        read_history(b, slice_from(line, strlen("9,h,")));
}
