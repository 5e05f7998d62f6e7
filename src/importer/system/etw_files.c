/* Operations on files of Windows: slices from the event that begins one to the event that ends its request. */
#include "importer/system/etw.h"
#include "importer/track/track_compressor.h"

#include "wire/fields.h"

#include <inttypes.h>

/* Names of operations by opcode, from FIRST_OPCODE on. */
enum { FIRST_OPCODE = 64 };
static const char *const operation_names[] = {
    "CreateFile",
    "Cleanup",
    "Close",
    "ReadFile",
    "WriteFile",
    "SetInformation",
    "DeleteFile",
    "RenameFile",
    "DirectoryEnumeration",
    "Flush",
    "QueryFileInformation",
    "FilesystemControlEvent",
    "EndOperation",
    "DirectoryNotification",
    NULL,
    "DeletePath",
    "RenamePath",
    NULL,
    NULL,
    "FltRead",
    " FltWrite", /* as other importers call it */
    "FltSetInfo",
    "FltQueryInfo",
};

/* Classes of information about files, from 1 on, in Windows' numbers; each name begins with "File" and ends with
 * "Information", where that does not stand within. */
static const char *const info_classes[] = {
    "Directory",
    "FullDirectory",
    "BothDirectory",
    "Basic",
    "Standard",
    "Internal",
    "Ea",
    "Access",
    "Name",
    "Rename",
    "Link",
    "Names",
    "Disposition",
    "Position",
    "FullEa",
    "Mode",
    "Alignment",
    "All",
    "Allocation",
    "EndOfFile",
    "AlternateName",
    "Stream",
    "Pipe",
    "PipeLocal",
    "PipeRemote",
    "MailslotQuery",
    "MailslotSet",
    "Compression",
    "ObjectId",
    "Completion",
    "MoveCluster",
    "Quota",
    "ReparsePoint",
    "NetworkOpen",
    "AttributeTag",
    "Tracking",
    "IdBothDirectory",
    "IdFullDirectory",
    "ValidDataLength",
    "ShortName",
    "IoCompletionNotification",
    "IoStatusBlockRange",
    "IoPriorityHint",
    "SfioReserve",
    "SfioVolume",
    "HardLink",
    "ProcessIdsUsingFile",
    "NormalizedName",
    "NetworkPhysicalName",
    "IdGlobalTxDirectory",
    "IsRemoteDevice",
    "Unused",
    "NumaNode",
    "StandardLink",
    "RemoteProtocol",
    "RenameInformationBypassAccessCheck",
    "LinkInformationBypassAccessCheck",
    "VolumeName",
    "Id",
    "IdExtdDirectory",
    "ReplaceCompletion",
    "HardLinkFullId",
    "IdExtdBothDirectory",
    "DispositionInformationEx",
    "RenameInformationEx",
    "RenameInformationExBypassAccessCheck",
    "DesiredStorageClass",
    "Stat",
    "MemoryPartition",
    "StatLx",
    "CaseSensitive",
    "LinkInformationEx",
    "LinkInformationExBypassAccessCheck",
    "StorageReserveId",
    "CaseSensitiveInformationForceAccessCheck",
    "KnownFolder",
    "StatBasic",
    "Id64ExtdDirectory",
    "Id64ExtdBothDirectory",
    "IdAllExtdDirectory",
    "IdAllExtdBothDirectory",
};
enum { INFO_DISPOSITION = 13, INFO_ALLOCATION = 19, INFO_END_OF_FILE = 20 };

enum arg_kind { AS_UINT, AS_POINTER, AS_TEXT, AS_CLASS, AS_EXTRA, OPCODE, REQUEST };

/* What a field of an event becomes; an event's args are in the order of this table. */
static const struct arg_field {
    uint32_t event, field;
    const char *key;
    enum arg_kind kind;
} arg_fields[] = {
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_IRP_PTR, "I/O Request Packet", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_FILE_OBJECT, "File Object", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_TTID, "Thread ID", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_CREATE_OPTIONS, "Create Options", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_FILE_ATTRIBUTES, "File Attributes", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_SHARE_ACCESS, "Share Access", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_CREATE, FILE_IO_CREATE_ETW_EVENT_OPEN_PATH, "Open Path", AS_TEXT},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_IRP_PTR, "I/O Request Packet", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_FILE_OBJECT, "File Object", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_FILE_KEY, "File Key", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_TTID, "Thread ID", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_INFO_CLASS, "Info Class", AS_CLASS},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_FILE_INDEX, "File Index", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_FILE_NAME, "Enumeration Path", AS_TEXT},
    {ETW_TRACE_EVENT_FILE_IO_DIR_ENUM, FILE_IO_DIR_ENUM_ETW_EVENT_OPCODE, NULL, OPCODE},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_IRP_PTR, "I/O Request Packet", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_FILE_OBJECT, "File Object", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_FILE_KEY, "File Key", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_EXTRA_INFO, "Extra Info", AS_EXTRA},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_TTID, "Thread ID", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_INFO_CLASS, "Info Class", AS_CLASS},
    {ETW_TRACE_EVENT_FILE_IO_INFO, FILE_IO_INFO_ETW_EVENT_OPCODE, NULL, OPCODE},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_IRP_PTR, "I/O Request Packet", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_OFFSET, "Offset", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_FILE_OBJECT, "File Object", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_FILE_KEY, "File Key", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_TTID, "Thread ID", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_IO_SIZE, "I/O Size", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_IO_FLAGS, "I/O Flags", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_READ_WRITE, FILE_IO_READ_WRITE_ETW_EVENT_OPCODE, NULL, OPCODE},
    {ETW_TRACE_EVENT_FILE_IO_SIMPLE_OP, FILE_IO_SIMPLE_OP_ETW_EVENT_IRP_PTR, "I/O Request Packet", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_SIMPLE_OP, FILE_IO_SIMPLE_OP_ETW_EVENT_FILE_OBJECT, "File Object", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_SIMPLE_OP, FILE_IO_SIMPLE_OP_ETW_EVENT_FILE_KEY, "File Key", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_SIMPLE_OP, FILE_IO_SIMPLE_OP_ETW_EVENT_TTID, "Thread ID", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_SIMPLE_OP, FILE_IO_SIMPLE_OP_ETW_EVENT_OPCODE, NULL, OPCODE},
    {ETW_TRACE_EVENT_FILE_IO_OP_END, FILE_IO_OP_END_ETW_EVENT_IRP_PTR, NULL, REQUEST},
    {ETW_TRACE_EVENT_FILE_IO_OP_END, FILE_IO_OP_END_ETW_EVENT_EXTRA_INFO, "Extra Info", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_OP_END, FILE_IO_OP_END_ETW_EVENT_NT_STATUS, "NT Status", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_IRP_PTR, "I/O Request Packet",
     AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_FILE_OBJECT, "File Object", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_FILE_KEY, "File Key", AS_POINTER},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_EXTRA_INFO, "Extra Info", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_TTID, "Thread ID", AS_UINT},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_INFO_CLASS, "Info Class", AS_CLASS},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_FILE_NAME, "File Name", AS_TEXT},
    {ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION, FILE_IO_PATH_OPERATION_ETW_EVENT_OPCODE, NULL, OPCODE},
};

/* What an event is called that does not say which operation it is. */
static const char *general_name(uint32_t event)
{
    switch (event) {
    case ETW_TRACE_EVENT_FILE_IO_CREATE:
        return "CreateFile";
    case ETW_TRACE_EVENT_FILE_IO_DIR_ENUM:
        return "DirEnum";
    case ETW_TRACE_EVENT_FILE_IO_INFO:
        return "Info";
    case ETW_TRACE_EVENT_FILE_IO_READ_WRITE:
        return "ReadOrWrite";
    case ETW_TRACE_EVENT_FILE_IO_OP_END:
        return "EndOperation";
    case ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION:
        return "PathOperation";
    default:
        return "SimpleOp";
    }
}

struct file_event {
    bool has_irp;
    uint64_t irp, opcode;
    struct arg_list args;
};

/* The number that a change of information comes with: what it means depends on the class. */
static const char *extra_key(struct slice bytes)
{
    struct pb_field f;
    uint32_t class = pb_find(bytes, FILE_IO_INFO_ETW_EVENT_INFO_CLASS, &f) ? pb_u32(&f) : 0;
    return class == INFO_DISPOSITION                               ? "Disposition"
           : class == INFO_END_OF_FILE || class == INFO_ALLOCATION ? "File Size"
                                                                   : "Extra Info";
}

static void add_arg(struct etw *e, struct file_event *x, const struct arg_field *k, const struct pb_field *f,
                    struct slice bytes)
{
    struct args *args = &e->m->st->args;
    strid key = import_str(e->m->im, k->kind == AS_EXTRA ? extra_key(bytes) : k->key ? k->key : "");
    switch (k->kind) {
    case OPCODE:
        x->opcode = pb_u32(f);
        break;
    case REQUEST: /* the operation that it ends has said it */
        break;
    case AS_TEXT:
        arg_list_add(args, &x->args, key, key, ARG_STRING, import_slice(e->m->im, pb_bytes(f)));
        break;
    case AS_CLASS: {
        uint32_t class = pb_u32(f) - 1;
        if (class < sizeof info_classes / sizeof *info_classes)
            arg_list_add(args, &x->args, key, key, ARG_STRING,
                         strpool_printf(&e->m->st->strings, "File%s%s", info_classes[class],
                                        strstr(info_classes[class], "Information") ? "" : "Information"));
        else
            arg_list_add(args, &x->args, key, key, ARG_UINT, pb_u32(f));
        break;
    }
    default:
        arg_list_add(args, &x->args, key, key, k->kind == AS_POINTER ? ARG_POINTER : ARG_UINT, pb_i64(f));
    }
}

static struct file_event read_event(struct etw *e, uint32_t event, struct slice bytes)
{
    struct file_event x = {0};
    struct pb_field f;
    bool first = true;
    for (size_t i = 0; i < sizeof arg_fields / sizeof *arg_fields; i++) {
        const struct arg_field *k = &arg_fields[i];
        if (k->event != event)
            continue;
        if (pb_find(bytes, k->field, &f)) {
            if (first) {
                x.has_irp = true;
                x.irp = pb_u64(&f);
            }
            add_arg(e, &x, k, &f, bytes);
        }
        first = false; /* the request comes first for all of them */
    }
    return x;
}

static uint32_t track_set_of(struct etw *e, uint32_t utid)
{
    struct track_dim dim = {"utid", DIM_INT, utid};
    struct track_spec spec = {
        .type = "etw_fileio",
        .event_type = TRACK_SLICE,
        .name = strpool_printf(&e->m->st->strings, "File I/O (%" PRId64 ")", ROW_GET(e->m->st, thread, tid, utid)),
        .parent = UINT32_MAX,
        .dims = &dim,
        .n_dims = 1};
    return track_set_intern(e->m->im->tracks, e->m->id, &spec);
}

static void missing(struct etw *e, struct arg_list *list, const char *what)
{
    arg_list_str(&e->m->st->args, list, "Missing Event", import_str(e->m->im, what));
}

/* A slice of no length: an operation of which one event is all there is. */
static void add_moment(struct etw *e, int64_t ts, uint32_t utid, strid name, const struct arg_list *list)
{
    struct machine_ctx *m = e->m;
    uint32_t set = track_set_of(e, utid);
    uint32_t track = set == TRACK_SET_NONE ? UINT32_MAX : track_set_scoped(m->im->tracks, set, ts, 0);
    if (track == UINT32_MAX)
        m->im->failed = true;
    else
        slice_scoped(m->im->slices, m->id, ts, track, 0, name, 0, args_intern(&m->st->args, list->p, list->n));
}

/* Ends an operation; at its own beginning when its end did not come. */
static void end_operation(struct etw *e, struct etw_operation *o, int64_t ts, const struct arg_list *list)
{
    struct machine_ctx *m = e->m;
    o->open = false;
    slice_end(m->im->slices, m->id, ts, o->track, 0, 0, list);
}

static void end_missing(struct etw *e, struct etw_operation *o)
{
    struct arg_list list = {0};
    missing(e, &list, "End");
    end_operation(e, o, o->ts, &list);
    arg_list_free(&list);
}

static void begin_operation(struct etw *e, int64_t ts, uint32_t utid, strid name, const struct file_event *x)
{
    struct machine_ctx *m = e->m;
    uint64_t *open = u64map_put(&e->by_irp, x->irp, NULL);
    uint32_t set = track_set_of(e, utid);
    if (!open || set == TRACK_SET_NONE) {
        m->im->failed = true;
        return;
    }
    if (*open) {
        struct etw_operation *o = &e->operations.p[*open - 1];
        track_set_end(m->im->tracks, o->set, (int64_t)(*open - 1));
        end_missing(e, o);
    }
    uint32_t track = track_set_begin(m->im->tracks, set, (int64_t)e->operations.n);
    struct etw_operation o = {.irp = x->irp, .ts = ts, .track = track, .set = set, .open = true};
    if (track == UINT32_MAX || !vec_push(&e->operations, o)) {
        m->im->failed = true;
        return;
    }
    slice_begin(m->im->slices, m->id, ts, track, 0, name, args_intern(&m->st->args, x->args.p, x->args.n));
    *open = e->operations.n;
}

void etw_file_event(struct etw *e, int64_t ts, uint32_t utid, uint32_t field, struct slice bytes)
{
    struct file_event x = read_event(e, field, bytes);
    uint64_t *open = x.has_irp ? u64map_get(&e->by_irp, x.irp) : NULL;
    bool ends = field == ETW_TRACE_EVENT_FILE_IO_OP_END;
    bool named = x.opcode >= FIRST_OPCODE &&
                 x.opcode - FIRST_OPCODE < sizeof operation_names / sizeof *operation_names &&
                 operation_names[x.opcode - FIRST_OPCODE];
    strid name = import_str(e->m->im, named ? operation_names[x.opcode - FIRST_OPCODE] : general_name(field));
    if (ends && open && *open) {
        struct etw_operation *o = &e->operations.p[*open - 1];
        track_set_end(e->m->im->tracks, o->set, (int64_t)(*open - 1));
        end_operation(e, o, ts, &x.args);
        *open = 0;
    } else if (ends || !x.has_irp) {
        if (ends && x.has_irp)
            missing(e, &x.args, "Start");
        add_moment(e, ts, utid, name, &x.args);
    } else {
        begin_operation(e, ts, utid, name, &x);
    }
    arg_list_free(&x.args);
}

void etw_files_finish(struct etw *e)
{
    for (size_t i = 0; i < e->operations.n; i++)
        if (e->operations.p[i].open)
            end_missing(e, &e->operations.p[i]);
}
