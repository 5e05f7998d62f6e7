/* Imports packets between a device and its Bluetooth controller. */
#include "importer/android/android_internal.h"

void bluetooth_parse(struct packet *p)
{
    static const char *const types[] = {NULL,         "HCI_CMD",    "HCI_EVT",    "HCI_ACL_RX", "HCI_ACL_TX",
                                        "HCI_SCO_RX", "HCI_SCO_TX", "HCI_ISO_RX", "HCI_ISO_TX"};
    static const struct {
        uint32_t field;
        const char *key;
    } numbers[] = {{BLUETOOTH_TRACE_EVENT_COUNT, "Count"},
                   {BLUETOOTH_TRACE_EVENT_LENGTH, "Length"},
                   {BLUETOOTH_TRACE_EVENT_OP_CODE, "Op Code"},
                   {BLUETOOTH_TRACE_EVENT_EVENT_CODE, "Event Code"},
                   {BLUETOOTH_TRACE_EVENT_SUBEVENT_CODE, "Subevent Code"},
                   {BLUETOOTH_TRACE_EVENT_CONNECTION_HANDLE, "Handle"}};
    struct machine_ctx *m = p->m;
    struct args *args = &m->st->args;
    struct arg_list list = {0};
    struct pb_field f;
    if (pb_find(p->field, BLUETOOTH_TRACE_EVENT_PACKET_TYPE, &f)) {
        uint64_t type = pb_u64(&f);
        bool known = type && type < sizeof types / sizeof *types;
        arg_list_str(args, &list, "TracePacketType", known ? import_str(m->im, types[type]) : 0);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (pb_find(p->field, numbers[i].field, &f))
            arg_list_uint(args, &list, numbers[i].key, pb_u32(&f));
    struct track_spec spec = {.type = "bluetooth_trace_event",
                              .event_type = TRACK_SLICE,
                              .name = import_str(m->im, "BluetoothTraceEvent"),
                              .parent = UINT32_MAX};
    android_slice(m, p->ts, (uint32_t)android_number(p->field, BLUETOOTH_TRACE_EVENT_DURATION), &spec,
                  import_str(m->im, "BluetoothTraceEvent"), &list);
}
