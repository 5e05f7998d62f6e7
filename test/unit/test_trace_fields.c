/* Tests the schema of a trace. */
#include "wire/ftrace_events.h"
#include "wire/pb_cursor.h"
#include "wire/trace_fields.h"

#include <check.h>
#include <string.h>

static void check_field(const struct trace_message *m, const struct trace_field *f)
{
    ck_assert_ptr_eq(trace_field_by_number(m, f->number), f);
    ck_assert_ptr_eq(trace_field_by_name(m, f->name, strlen(f->name)), f);
    ck_assert(!f->packed || f->repeated);
    ck_assert_int_eq((trace_field_message(f) != NULL), (f->type == TRACE_TYPE_MESSAGE));
    ck_assert_int_eq((trace_field_enum(f) != NULL), (f->type == TRACE_TYPE_ENUM));
}

START_TEST(every_row_is_found_by_number_and_by_name)
{
    const struct trace_message *m;
    const char *last = "";
    for (size_t i = 0; (m = trace_message_at(i)); i++) {
        if (m->name) { /* the binary search needs the rows sorted */
            ck_assert_msg(strcmp(last, m->name) < 0, "%s is out of order", m->name);
            last = m->name;
            ck_assert_ptr_eq(trace_message_by_name(m->name), m);
        }
        for (size_t k = 0; k < m->n_fields; k++) {
            ck_assert(k == 0 || m->fields[k - 1].number < m->fields[k].number);
            check_field(m, &m->fields[k]);
        }
    }
    m = trace_message_by_name("FtraceEvent");
    for (size_t i = 0; i < ftrace_event_count(); i++) {
        const struct trace_field *f = trace_field_by_number(m, ftrace_event_at(i)->id);
        ck_assert_ptr_nonnull(f);
        ck_assert_str_eq(f->name, ftrace_event_at(i)->name);
        check_field(m, f);
    }
}
END_TEST

START_TEST(every_value_of_an_enum_is_found)
{
    const struct trace_message *m;
    size_t seen = 0;
    for (size_t i = 0; (m = trace_message_at(i)); i++) {
        for (size_t k = 0; k < m->n_fields; k++) {
            const struct trace_enum *e = trace_field_enum(&m->fields[k]);
            for (size_t v = 0; e && v < e->n; v++, seen++) {
                int32_t value;
                ck_assert(v == 0 || e->values[v - 1].value <= e->values[v].value);
                ck_assert(trace_enum_value(e, e->values[v].name, strlen(e->values[v].name), &value));
                ck_assert_int_eq(value, e->values[v].value);
                ck_assert_ptr_nonnull(trace_enum_name(e, value)); /* of two names for one value, either */
            }
        }
    }
    ck_assert_uint_gt(seen, 500);
}
END_TEST

static const struct {
    const char *path; /* from TracePacket */
    uint32_t number;  /* of the last field */
    const char *type;
    unsigned wire;
} paths[] = {
    {"timestamp", 8, "uint64", PB_VARINT},
    {"ftrace_events", 1, "FtraceEventBundle", PB_BYTES},
    {"ftrace_events.event.sched_switch", 4, "SchedSwitchFtraceEvent", PB_BYTES},
    {"ftrace_events.event.sched_switch.prev_state", 4, "int64", PB_VARINT},
    {"ftrace_events.event.timestamp", 1, "uint64", PB_VARINT},
    {"ftrace_events.event.kprobe_event", 542, "KprobeEvent", PB_BYTES},
    {"ftrace_events.event.kprobe_event.type", 2, "KprobeEvent.KprobeType", PB_VARINT},
    {"ftrace_events.event.generic.field.int_value", 4, "int64", PB_VARINT},
    {"ftrace_events.compact_sched.switch_timestamp", 1, "uint64", PB_VARINT},
    {"process_tree.threads.tgid", 3, "int32", PB_VARINT},
    {"track_event.type", 9, "TrackEvent.Type", PB_VARINT},
    {"track_event.double_counter_value", 44, "double", PB_FIXED64},
    {"trace_config.buffers.fill_policy", 4, "TraceConfig.BufferConfig.FillPolicy", PB_VARINT},
};

START_TEST(a_path_leads_to_its_field)
{
    const struct trace_message *m = trace_message_by_name("TracePacket");
    const struct trace_field *f = NULL;
    char type[80];
    for (const char *p = paths[_i].path; *p;) {
        size_t len = strcspn(p, ".");
        ck_assert_ptr_nonnull(m);
        f = trace_field_by_name(m, p, len);
        ck_assert_msg(f != NULL, "no field at %s of %s", p, paths[_i].path);
        m = trace_field_message(f);
        p += len + (p[len] == '.');
    }
    ck_assert_uint_eq(f->number, paths[_i].number);
    ck_assert_uint_eq(trace_type_wire(f->type), paths[_i].wire);
    ck_assert_str_eq(trace_field_type_name(f, type, sizeof type), paths[_i].type);
}
END_TEST

START_TEST(what_is_not_there_is_null)
{
    const struct trace_message *packet = trace_message_by_name("TracePacket");
    const struct trace_message *event = trace_message_by_name("FtraceEvent");
    const struct trace_field *type = trace_field_by_name(trace_message_by_name("TrackEvent"), "type", 4);
    int32_t value;
    char small[4];
    ck_assert_ptr_null(trace_message_by_name(""));
    ck_assert_ptr_null(trace_message_by_name("TracePackets"));
    ck_assert_ptr_null(trace_field_by_number(packet, 0));
    ck_assert_ptr_null(trace_field_by_number(packet, UINT32_MAX));
    ck_assert_ptr_null(trace_field_by_number(event, 0));
    ck_assert_ptr_null(trace_field_by_number(event, UINT32_MAX));
    ck_assert_ptr_null(trace_field_by_name(packet, "timestam", 8));
    ck_assert_ptr_null(trace_field_by_name(packet, "timestampx", 10));
    ck_assert_ptr_null(trace_field_by_name(packet, "sched_switch", 12));
    ck_assert_ptr_null(trace_field_message(type));
    ck_assert_ptr_null(trace_enum_name(trace_field_enum(type), 99));
    ck_assert(!trace_enum_value(trace_field_enum(type), "TYPE_", 5, &value));
    ck_assert_str_eq(trace_field_type_name(trace_field_by_number(event, 4), small, sizeof small), "Sch");
}
END_TEST

Suite *trace_fields_suite(void);

Suite *trace_fields_suite(void)
{
    Suite *s = suite_create("trace_fields");
    TCase *t = tcase_create("table");
    tcase_add_test(t, every_row_is_found_by_number_and_by_name);
    tcase_add_test(t, every_value_of_an_enum_is_found);
    tcase_add_loop_test(t, a_path_leads_to_its_field, 0, sizeof paths / sizeof *paths);
    tcase_add_test(t, what_is_not_there_is_null);
    suite_add_tcase(s, t);
    return s;
}
