/* Battery counters, power rails, energy estimates and residency of power entities. */
#include "importer/system/system_internal.h"

#include "base/hash.h"
#include "importer/clock/clock_graph.h"
#include "wire/fields.h"

#include <math.h>

static void battery_counter(struct packet *p, strid battery, const char *key, bool has_value, double value)
{
    struct machine_ctx *m = p->m;
    strid name = battery ? strpool_printf(&m->st->strings, "batt.%s.%s", strpool_cstr(&m->st->strings, battery), key)
                         : strpool_printf(&m->st->strings, "batt.%s", key);
    struct track_dim dims[] = {{"battery_name", DIM_STR, battery}, {"counter_name", DIM_STR, import_str(m->im, key)}};
    uint32_t track = system_counter_track(m, "battery_counter", name, NULL, dims, 2);
    if (has_value)
        counter_push(m->im, p->ts, track, value);
}

void battery_parse(struct packet *p)
{
    int64_t v[8] = {0};
    uint32_t has = 0;
    double percent = 0;
    strid battery = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == BATTERY_COUNTERS_CAPACITY_PERCENT)
            percent = (double)pb_float(&f);
        else if (f.id == BATTERY_COUNTERS_NAME)
            battery = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id < 8)
            v[f.id] = pb_i64(&f);
        if (f.id < 8)
            has |= 1u << f.id;
    }
    enum { CHARGE = 1, PERCENT = 2, CURRENT = 3, CURRENT_AVG = 4, ENERGY = 6, VOLTAGE = 7 };
#define HAS(field) (has >> (field)&1)
    if (HAS(CHARGE))
        battery_counter(p, battery, "charge_uah", true, (double)v[CHARGE]);
    else if (HAS(ENERGY) && HAS(VOLTAGE)) /* uWh over V gives uAh */
        battery_counter(p, battery, "charge_uah", v[VOLTAGE] > 0,
                        v[VOLTAGE] > 0 ? floor((double)v[ENERGY] * 1e6 / (double)v[VOLTAGE]) : 0);
    if (HAS(PERCENT))
        battery_counter(p, battery, "capacity_pct", true, percent);
    if (HAS(CURRENT))
        battery_counter(p, battery, "current_ua", true, (double)v[CURRENT]);
    if (HAS(CURRENT_AVG))
        battery_counter(p, battery, "current.avg_ua", true, (double)v[CURRENT_AVG]);
    if (HAS(VOLTAGE))
        battery_counter(p, battery, "voltage_uv", true, (double)v[VOLTAGE]);
    if (HAS(CURRENT) && HAS(VOLTAGE)) /* uA times uV is 1e-12 W; the sign of the current depends on the driver */
        battery_counter(p, battery, "power_mw", true, trunc(fabs((double)v[CURRENT] * (double)v[VOLTAGE] / 1e9)));
#undef HAS
}

static uint64_t rail_key(const struct machine_ctx *m, uint64_t session, uint32_t index)
{
    return hash_keyed(m->im->secret, session, index);
}

/* Rails whose purpose is known get a name that tells it: the end of a rail's name decides, before it stands the
 * regulator. */
static const struct {
    const char *end;
    const char *name;
} rail_names[] = {
    {"M_VDD_CPUCL0", "cpu.little"},
    {"M_VDD_CPUCL0_M", "cpu.little.mem"},
    {"M_VDD_CPUCL1", "cpu.mid"},
    {"M_VDD_CPUCL1_M", "cpu.mid.mem"},
    {"M_VDD_CPUCL2", "cpu.big"},
    {"M_VDD_INT", "system.fabric"},
    {"M_VDD_TPU", "tpu"},
    {"VSYS_PWR_DISP", "display"},
    {"VSYS_PWR_DISPLAY", "display"},
    {"M_DISP", "ldo.main.a.display"},
    {"VSYS_PWR_MODEM", "modem"},
    {"M_VDD_MIF", "memory.interface"},
    {"VSYS_PWR_WLAN_BT", "wifi.bt"},
    {"VSYS_PWR_MMWAVE", "mmwave"},
    {"S_VDD_AOC_RET", "aoc.memory"},
    {"S_VDD_AOC", "aoc.logic"},
    {"S_VDDQ_MEM", "ddr.a"},
    {"S_VDD2L", "ddr.b"},
    {"S_VDD2L_MEM", "ddr.b"},
    {"S_VDD2H_MEM", "ddr.c"},
    {"S_VDD_G3D", "gpu"},
    {"S_VDD_G3D_L2", "gpu.l2"},
    {"S_GNSS_CORE", "gps"},
    {"VSYS_PWR_RFFE", "radio.frontend"},
    {"VSYS_PWR_CAMERA", "camera"},
    {"S_VDD_CAM", "multimedia"},
    {"S_UDFPS", "udfps"},
    {"S_PLL_MIPI_UFS", "ufs"},
    {"M_LLDO1", "ldo.main.a"},
    {"M_LLDO2", "ldo.main.b"},
    {"S_LLDO1", "ldo.sub"},
};

static bool ends_with(struct slice text, const char *end)
{
    size_t n = strlen(end);
    return text.len >= n && memcmp(text.p + text.len - n, end, n) == 0;
}

static strid rail_name(struct machine_ctx *m, struct slice rail)
{
    for (size_t i = 0; i < sizeof rail_names / sizeof *rail_names; i++)
        if (ends_with(rail, rail_names[i].end))
            return strpool_printf(&m->st->strings, "power.rails.%s", rail_names[i].name);
    return strpool_printf(&m->st->strings, "power.%.*s_uws", (int)(rail.len < 200 ? rail.len : 200),
                          rail.len ? (const char *)rail.p : "");
}

static void add_rail(struct packet *p, uint64_t session, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    uint32_t index = 0;
    struct slice rail = {0}, subsystem = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == POWER_RAILS_RAIL_DESCRIPTOR_INDEX)
            index = pb_u32(&f);
        else if (f.id == POWER_RAILS_RAIL_DESCRIPTOR_RAIL_NAME)
            rail = pb_bytes(&f);
        else if (f.id == POWER_RAILS_RAIL_DESCRIPTOR_SUBSYS_NAME)
            subsystem = pb_bytes(&f);
    }
    struct arg_list args = {0};
    arg_list_str(&m->st->args, &args, "raw_name", import_slice(m->im, rail));
    arg_list_str(&m->st->args, &args, "subsystem_name", import_slice(m->im, subsystem));
    struct track_dim dims[] = {{"name", DIM_STR, import_slice(m->im, rail)},
                               {"session_uuid", DIM_INT, (int64_t)session}};
    struct track_spec spec = {.type = "power_rails",
                              .event_type = TRACK_COUNTER,
                              .name = rail_name(m, rail),
                              .parent = UINT32_MAX,
                              .source_args = args_intern(&m->st->args, args.p, args.n),
                              .dims = dims,
                              .n_dims = 2};
    arg_list_free(&args);
    uint32_t track = track_intern(m->im->tracks, m->id, &spec);
    if (!u64map_set(&m->system->rails, rail_key(m, session, index), track))
        m->im->failed = true;
}

static void add_energy(struct packet *p, uint64_t session, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    uint32_t index = 0;
    uint64_t ms = 0, energy = 0;
    bool has_ms = false;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == POWER_RAILS_ENERGY_DATA_INDEX) {
            index = pb_u32(&f);
        } else if (f.id == POWER_RAILS_ENERGY_DATA_TIMESTAMP_MS) {
            ms = pb_u64(&f);
            has_ms = true;
        } else if (f.id == POWER_RAILS_ENERGY_DATA_ENERGY) {
            energy = pb_u64(&f);
        }
    }
    const uint64_t *track = u64map_get(&m->system->rails, rail_key(m, session, index));
    if (!track) {
        stats_add(&m->st->stats, m->id, STAT_power_rail_unknown_index, 1);
        return;
    }
    int64_t ts = p->ts;
    if (has_ms) {
        if (ms > (uint64_t)INT64_MAX / 1000000)
            return;
        struct clock_id boot = {.id = CLOCK_ID_BOOTTIME, .machine = m->id};
        if (clock_graph_to_trace_time(m->im->clocks, boot, (int64_t)(ms * 1000000), &ts) != 0)
            ts = (int64_t)(ms * 1000000);
    }
    struct arg_list args = {0};
    arg_list_uint(&m->st->args, &args, "packet_ts", (uint64_t)p->ts);
    system_counter_later(m->system, ts, (uint32_t)*track, (double)energy, args_intern(&m->st->args, args.p, args.n));
    arg_list_free(&args);
}

enum tokenize_result power_rails_tokenize(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t session = 0;
    bool any = false;
    if (pb_find(p->field, POWER_RAILS_SESSION_UUID, &f))
        session = pb_u64(&f);
    while (pb_next(&c, &f)) {
        if (f.id == POWER_RAILS_RAIL_DESCRIPTOR)
            add_rail(p, session, pb_bytes(&f));
        any |= f.id == POWER_RAILS_ENERGY_DATA;
    }
    c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == POWER_RAILS_ENERGY_DATA)
            add_energy(p, session, pb_bytes(&f));
    if (!any)
        import_log(p->m->im->machines.p[0], STAT_power_rail_empty_packet, COL_NULL, p->byte_offset,
                   ARGSET_NONE); /* kept for the host, whoever sent it */
    return TOKENIZE_DONE;
}

/* AndroidEnergyConsumer.type and .ordinal become args of the consumer's tracks. */
static void add_consumer(struct machine_ctx *m, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    struct arg_list args = {0};
    struct energy_consumer consumer = {0};
    int32_t id = 0, ordinal = 0;
    strid type = 0;
    bool has_id = false;
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_ENERGY_CONSUMER_ENERGY_CONSUMER_ID) {
            id = pb_i32(&f);
            has_id = true;
        } else if (f.id == ANDROID_ENERGY_CONSUMER_NAME) {
            consumer.name = import_slice(m->im, pb_bytes(&f));
        } else if (f.id == ANDROID_ENERGY_CONSUMER_TYPE) {
            type = import_slice(m->im, pb_bytes(&f));
        } else if (f.id == ANDROID_ENERGY_CONSUMER_ORDINAL) {
            ordinal = pb_i32(&f);
        }
    }
    if (!has_id) {
        stats_add(&m->st->stats, m->id, STAT_energy_descriptor_invalid, 1);
        return;
    }
    arg_list_str(&m->st->args, &args, "consumer_type", type);
    arg_list_int(&m->st->args, &args, "ordinal", ordinal);
    consumer.args = args_intern(&m->st->args, args.p, args.n);
    arg_list_free(&args);
    if (!vec_push(&m->system->energy, consumer) ||
        !u64map_set(&m->system->energy_consumers, (uint64_t)(uint32_t)id, m->system->energy.n - 1))
        m->im->failed = true;
}

/* The descriptor counts for the packets that stand before it in time, too. */
enum tokenize_result energy_breakdown_tokenize(struct packet *p)
{
    struct pb_field f, g;
    if (!pb_find(p->field, ANDROID_ENERGY_ESTIMATION_BREAKDOWN_ENERGY_CONSUMER_DESCRIPTOR, &f))
        return TOKENIZE_PUSH;
    struct pb_cursor c = pb_sub(&f);
    while (pb_next(&c, &g))
        if (g.id == ANDROID_ENERGY_CONSUMER_DESCRIPTOR_ENERGY_CONSUMERS)
            add_consumer(p->m, pb_bytes(&g));
    return TOKENIZE_DONE;
}

static uint32_t energy_track(struct machine_ctx *m, const char *type, const struct energy_consumer *consumer,
                             const struct track_dim *dims, uint32_t n_dims)
{
    struct track_spec spec = {.type = type,
                              .event_type = TRACK_COUNTER,
                              .name = consumer->name,
                              .parent = UINT32_MAX,
                              .source_args = n_dims == 1 ? consumer->args : ARGSET_NONE, /* not those of one user */
                              .dims = dims,
                              .n_dims = n_dims};
    return track_intern(m->im->tracks, m->id, &spec);
}

void energy_breakdown_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct pb_field f, g;
    int32_t consumer = 0;
    int64_t total = 0;
    bool has_consumer = false, has_total = false;
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_ENERGY_ESTIMATION_BREAKDOWN_ENERGY_CONSUMER_ID) {
            consumer = pb_i32(&f);
            has_consumer = true;
        } else if (f.id == ANDROID_ENERGY_ESTIMATION_BREAKDOWN_ENERGY_UWS) {
            total = pb_i64(&f);
            has_total = true;
        }
    }
    const uint64_t *known = u64map_get(&m->system->energy_consumers, (uint64_t)(uint32_t)consumer);
    if (!has_consumer || !known || !has_total) {
        stats_add(&m->st->stats, m->id, STAT_energy_breakdown_missing_values, 1);
        return;
    }
    const struct energy_consumer *of = &m->system->energy.p[*known];
    struct track_dim dims[] = {{"energy_consumer_id", DIM_INT, consumer}, {"uid", DIM_INT, 0}};
    counter_push(m->im, p->ts, energy_track(m, "android_energy_estimation_breakdown", of, dims, 1), (double)total);
    c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        if (f.id != ANDROID_ENERGY_ESTIMATION_BREAKDOWN_PER_UID_BREAKDOWN)
            continue;
        uint32_t seen = 0;
        int64_t energy = 0;
        struct pb_cursor entry = pb_sub(&f);
        while (pb_next(&entry, &g)) {
            if (g.id == ANDROID_ENERGY_ESTIMATION_BREAKDOWN_ENERGY_UID_BREAKDOWN_UID)
                dims[1].value = pb_i32(&g);
            else if (g.id == ANDROID_ENERGY_ESTIMATION_BREAKDOWN_ENERGY_UID_BREAKDOWN_ENERGY_UWS)
                energy = pb_i64(&g);
            seen |= g.id < 32 ? 1u << g.id : 0;
        }
        if ((seen & 6) != 6) {
            stats_add(&m->st->stats, m->id, STAT_energy_uid_breakdown_missing_values, 1);
            continue;
        }
        counter_push(m->im, p->ts, energy_track(m, "android_energy_estimation_breakdown_per_uid", of, dims, 2),
                     (double)energy);
    }
}

static void add_entity_state(struct machine_ctx *m, struct slice bytes)
{
    int32_t entity = 0, state = 0;
    strid entity_name = 0, state_name = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint32_t seen = 0;
    while (pb_next(&c, &f)) {
        if (f.id == ENTITY_STATE_RESIDENCY_POWER_ENTITY_STATE_ENTITY_INDEX)
            entity = pb_i32(&f);
        else if (f.id == ENTITY_STATE_RESIDENCY_POWER_ENTITY_STATE_STATE_INDEX)
            state = pb_i32(&f);
        else if (f.id == ENTITY_STATE_RESIDENCY_POWER_ENTITY_STATE_ENTITY_NAME)
            entity_name = import_slice(m->im, pb_bytes(&f));
        else if (f.id == ENTITY_STATE_RESIDENCY_POWER_ENTITY_STATE_STATE_NAME)
            state_name = import_slice(m->im, pb_bytes(&f));
        seen |= f.id < 32 ? 1u << f.id : 0;
    }
    if ((seen & 0x1e) != 0x1e)
        stats_add(&m->st->stats, m->id, STAT_entity_state_descriptor_invalid, 1);
    else if (!u64map_set(&m->system->entity_states, (uint64_t)(uint32_t)entity << 32 | (uint32_t)state,
                         (uint64_t)entity_name << 32 | state_name))
        m->im->failed = true;
}

static void add_residency(struct packet *p, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    int32_t entity = 0, state = 0;
    uint64_t total_ms = 0;
    uint32_t seen = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == ENTITY_STATE_RESIDENCY_STATE_RESIDENCY_ENTITY_INDEX)
            entity = pb_i32(&f);
        else if (f.id == ENTITY_STATE_RESIDENCY_STATE_RESIDENCY_STATE_INDEX)
            state = pb_i32(&f);
        else if (f.id == ENTITY_STATE_RESIDENCY_STATE_RESIDENCY_TOTAL_TIME_IN_STATE_MS)
            total_ms = pb_u64(&f);
        seen |= f.id < 32 ? 1u << f.id : 0;
    }
    if ((seen & 0xe) != 0xe) {
        stats_add(&m->st->stats, m->id, STAT_entity_state_residency_invalid, 1);
        return;
    }
    const uint64_t *known = u64map_get(&m->system->entity_states, (uint64_t)(uint32_t)entity << 32 | (uint32_t)state);
    if (!known) {
        stats_add(&m->st->stats, m->id, STAT_entity_state_residency_lookup_failed, 1);
        return;
    }
    strid entity_name = (strid)(*known >> 32), state_name = (strid)*known;
    struct track_dim dims[] = {{"entity_name", DIM_STR, entity_name}, {"state_name", DIM_STR, state_name}};
    strid name = strpool_printf(&m->st->strings, "Entity residency: %s is %s",
                                strpool_cstr(&m->st->strings, entity_name), strpool_cstr(&m->st->strings, state_name));
    counter_push(m->im, p->ts, system_counter_track(m, "entity_state", name, NULL, dims, 2), (double)total_ms);
}

void entity_state_residency_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == ENTITY_STATE_RESIDENCY_POWER_ENTITY_STATE)
            add_entity_state(p->m, pb_bytes(&f));
    c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == ENTITY_STATE_RESIDENCY_RESIDENCY)
            add_residency(p, pb_bytes(&f));
}
