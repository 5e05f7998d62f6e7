/* Compiles programs: which kernel field becomes which protobuf field, and how. */
#include "kernel/encode.h"
#include "kernel/event_program.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

enum { HEADER_MAX = 64 }; /* FtraceEvent around the payload: tags, lengths (4 bytes each), timestamp, pid */

/* What a kernel declaration is, before it meets a protobuf type. */
enum kernel_type { KERNEL_UNKNOWN, KERNEL_INTEGER, KERNEL_TEXT, KERNEL_BYTES, KERNEL_ARRAY };

struct kernel_field {
    enum kernel_type type;
    uint8_t code; /* enum step_code */
    uint16_t size;
};

static bool has(struct slice s, const char *word)
{
    return memmem(s.p, s.len, word, strlen(word)) != NULL;
}

static bool is_char_type(struct slice type)
{
    return slice_eq_str(type, "char") || slice_eq_str(type, "const char");
}

static bool integer_code(uint32_t size, bool is_signed, uint8_t *code)
{
    switch (size) {
    case 1:
        *code = is_signed ? STEP_S8 : STEP_U8;
        return true;
    case 2:
        *code = is_signed ? STEP_S16 : STEP_U16;
        return true;
    case 4:
        *code = is_signed ? STEP_S32 : STEP_U32;
        return true;
    case 8:
        *code = is_signed ? STEP_S64 : STEP_U64;
        return true;
    default:
        return false;
    }
}

static struct kernel_field classify_pointer(const struct format_field *f, bool user_space)
{
    if (f->size != 8 && f->size != 4 && !user_space)
        return (struct kernel_field){KERNEL_UNKNOWN, 0, 0};
    if (user_space) { /* arguments of system calls: what the program passed, not a kernel address */
        struct kernel_field k = {KERNEL_INTEGER, 0, 0};
        if (!integer_code(f->size, false, &k.code))
            k.type = KERNEL_UNKNOWN;
        return k;
    }
    if (slice_eq_str(f->type, "const char *") || slice_eq_str(f->type, "char *"))
        return (struct kernel_field){KERNEL_TEXT, STEP_STRING_PTR, (uint16_t)f->size};
    return (struct kernel_field){KERNEL_INTEGER, f->size == 4 ? STEP_ADDRESS32 : STEP_ADDRESS, 0};
}

static struct kernel_field classify(const struct format_field *f, bool user_space)
{
    struct kernel_field k = {KERNEL_UNKNOWN, 0, 0};
    bool loc = slice_starts(f->type, "__data_loc"), rel = slice_starts(f->type, "__rel_loc");
    if (loc || rel) {
        if (f->size != 4)
            return k;
        bool text = has(f->type, " char[") || has(f->type, "const char[");
        k.type = text ? KERNEL_TEXT : KERNEL_BYTES;
        k.code = text ? (loc ? STEP_LOC_CHARS : STEP_REL_CHARS) : (loc ? STEP_LOC_BYTES : STEP_REL_BYTES);
        return k;
    }
    if (f->is_array) {
        if (f->size == 0 && is_char_type(f->type))
            return (struct kernel_field){KERNEL_TEXT, STEP_TAIL_CHARS, 0};
        if (f->size == 0)
            return k;
        if (is_char_type(f->type))
            return (struct kernel_field){KERNEL_TEXT, STEP_CHARS, (uint16_t)f->size};
        if (f->count && f->size == f->count * 8)
            return (struct kernel_field){KERNEL_ARRAY, STEP_ARRAY_U64, (uint16_t)f->count};
        if (f->count && f->size == f->count * 4)
            return (struct kernel_field){KERNEL_ARRAY, STEP_ARRAY_U32, (uint16_t)f->count};
        return (struct kernel_field){KERNEL_BYTES, STEP_BYTES, (uint16_t)f->size};
    }
    if (f->type.len && f->type.p[f->type.len - 1] == '*')
        return classify_pointer(f, user_space);
    if (slice_eq_str(f->type, "dev_t") && f->size == 4)
        return (struct kernel_field){KERNEL_INTEGER, STEP_DEV, 0};
    if (integer_code(f->size, f->is_signed, &k.code))
        k.type = KERNEL_INTEGER;
    return k;
}

/* Whether a kernel field can fill a protobuf field of this type. */
static bool fits(const struct kernel_field *k, const struct ftrace_field_desc *d)
{
    switch (d->type) {
    case FTRACE_FIELD_INT32:
    case FTRACE_FIELD_INT64:
    case FTRACE_FIELD_UINT32:
    case FTRACE_FIELD_UINT64:
        return d->repeated ? k->type == KERNEL_ARRAY : k->type == KERNEL_INTEGER;
    case FTRACE_FIELD_STRING:
        return k->type == KERNEL_TEXT;
    case FTRACE_FIELD_BYTES:
        return k->type == KERNEL_BYTES;
    default:
        return false;
    }
}

static void add_step(struct event_program *p, const struct format_field *f, const struct kernel_field *k,
                     uint32_t field_no, bool truncate, const char *name)
{
    struct program_step *s = &p->steps[p->n_steps++];
    bool integers = k->type == KERNEL_INTEGER || k->type == KERNEL_ARRAY;
    uint8_t tag[16];
    *s = (struct program_step){.code = k->code,
                               .truncate = truncate,
                               .offset = (uint16_t)f->offset,
                               .size = k->size,
                               .field_no = (uint16_t)field_no,
                               .name = name};
    s->tag_len = (uint8_t)(encode_tag(tag, field_no, integers ? PB_VARINT : PB_BYTES) - tag);
    memcpy(s->tag, tag, 3);
    uint32_t per_value = s->tag_len + 10u;
    if (name) /* the old encoding repeats the name in every event */
        per_value += (uint32_t)strlen(name) + 16;
    switch (k->code) {
    case STEP_CHARS:
    case STEP_BYTES:
        p->max_fixed += per_value + s->size;
        break;
    case STEP_ARRAY_U64:
    case STEP_ARRAY_U32:
        p->max_fixed += per_value * s->size;
        break;
    case STEP_STRING_PTR:
    case STEP_SYMBOL:
        p->max_fixed += per_value + STEP_STRING_MAX;
        break;
    case STEP_LOC_CHARS:
    case STEP_LOC_BYTES:
    case STEP_REL_CHARS:
    case STEP_REL_BYTES:
    case STEP_TAIL_CHARS:
        p->n_dynamic++;
        p->max_fixed += per_value;
        break;
    default:
        p->max_fixed += per_value;
    }
    uint32_t end = f->offset + f->size;
    if (p->min_size < end)
        p->min_size = (uint16_t)end;
}

/* The fields that every event begins with must be where the page parser looks for them. */
static int check_common(struct event_program *p, const struct format_file *f, struct error *err)
{
    const struct format_field *type = format_file_field(f, "common_type"), *pid = format_file_field(f, "common_pid");
    if (!type || type->offset != 0 || type->size != 2)
        return error_set(err, -MRD_EFORMAT, "common_type is not the first two bytes");
    if (!pid || pid->size != 4)
        return error_set(err, -MRD_EFORMAT, "common_pid is not a 32-bit field");
    p->kernel_id = (uint16_t)f->id;
    p->pid_offset = (uint16_t)pid->offset;
    p->min_size = (uint16_t)(pid->offset + 4);
    p->max_fixed = HEADER_MAX;
    return 0;
}

static int set_identity(struct event_program *p, uint32_t proto_id, const char *group, struct slice name,
                        struct arena *a)
{
    uint8_t tag[16];
    p->proto_id = proto_id;
    p->tag_len = (uint8_t)(encode_tag(tag, proto_id, PB_BYTES) - tag);
    memcpy(p->tag, tag, 4);
    p->group = arena_strndup(a, group, strlen(group));
    p->name = arena_strndup(a, name.p, name.len);
    return p->group && p->name && p->tag_len <= 4 ? 0 : -MRD_ENOMEM;
}

/* Addresses of kernel functions that their format calls plain numbers. */
static bool is_address(const struct ftrace_event_desc *desc, const struct ftrace_field_desc *d)
{
    bool graph = desc->id == FTRACE_EVENT_FUNCGRAPH_ENTRY || desc->id == FTRACE_EVENT_FUNCGRAPH_EXIT;
    return graph && strcmp(d->name, "func") == 0;
}

static void compile_typed(struct event_program *p, const struct format_file *f, const struct ftrace_event_desc *desc)
{
    for (uint32_t n = 1; n < desc->field_slots; n++) {
        const struct ftrace_field_desc *d = ftrace_field_by_id(desc, n);
        if (!d)
            continue;
        /* `print` is called from one place per program: its address is the same in all events and says nothing */
        if (desc->id == FTRACE_EVENT_PRINT && strcmp(d->name, "ip") == 0)
            continue;
        const struct format_field *field = format_file_field(f, d->name);
        if (!field)
            continue; /* other kernels have other fields */
        struct kernel_field k = classify(field, false);
        if ((k.code == STEP_U64 || k.code == STEP_U32) && is_address(desc, d))
            k.code = k.code == STEP_U32 ? STEP_ADDRESS32 : STEP_ADDRESS;
        if (fits(&k, d))
            add_step(p, field, &k, n, d->type == FTRACE_FIELD_UINT32, NULL);
    }
}

/* Events that name a thread other than the running one, or that make what is known of a thread old. */
static void set_tid_effect(struct event_program *p, const struct format_file *f)
{
    static const struct {
        const char *group, *event, *field;
        enum tid_effect effect;
    } rows[] = {
        {"sched", "sched_switch", "next_pid", TID_EFFECT_SEEN},
        {"task", "task_newtask", "pid", TID_EFFECT_STALE},
        {"task", "task_rename", "pid", TID_EFFECT_STALE},
        {"sched", "sched_process_free", "pid", TID_EFFECT_STALE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].group, p->group) != 0 || strcmp(rows[i].event, p->name) != 0)
            continue;
        const struct format_field *field = format_file_field(f, rows[i].field);
        if (!field || field->size != 4)
            continue;
        p->tid_effect = rows[i].effect;
        p->tid_offset = (uint16_t)field->offset;
        if (p->min_size < field->offset + 4)
            p->min_size = (uint16_t)(field->offset + 4);
    }
}

/* Events that name a file by device and inode number. */
static void set_inode(struct event_program *p, const struct format_file *f)
{
    static const char *const devices[] = {"dev", "s_dev"}, *const inodes[] = {"ino", "i_ino"};
    const struct format_field *device = NULL, *inode = NULL;
    for (int i = 0; i < 2; i++) {
        device = device ? device : format_file_field(f, devices[i]);
        inode = inode ? inode : format_file_field(f, inodes[i]);
    }
    if (!device || !inode || !slice_eq_str(device->type, "dev_t") || device->size != 4 || inode->size != 8)
        return;
    p->has_inode = true;
    p->device_offset = (uint16_t)device->offset;
    p->inode_offset = (uint16_t)inode->offset;
    if (p->min_size < device->offset + 4)
        p->min_size = (uint16_t)(device->offset + 4);
    if (p->min_size < inode->offset + 8)
        p->min_size = (uint16_t)(inode->offset + 8);
}

/* FieldDescriptorProto types. */
enum { DESCRIPTOR_INT64 = 3, DESCRIPTOR_UINT64 = 4, DESCRIPTOR_STRING = 9 };

static unsigned descriptor_type(const struct kernel_field *k)
{
    if (k->type == KERNEL_TEXT)
        return DESCRIPTOR_STRING;
    return k->code >= STEP_S8 && k->code <= STEP_S64 ? DESCRIPTOR_INT64 : DESCRIPTOR_UINT64;
}

/* Where the function tracer and its like were: addresses that their formats call plain numbers. */
static bool is_code_pointer(const char *group, const struct format_field *f, const struct kernel_field *k)
{
    return strcmp(group, "ftrace") == 0 && (k->code == STEP_U64 || k->code == STEP_U32) &&
           (slice_eq_str(f->name, "ip") || slice_eq_str(f->name, "parent_ip"));
}

/* Generic events: all integers and strings, numbered from 1 in the order of the format file; the descriptor is
 * GenericEventDescriptor {1 field_id, 2 DescriptorProto {1 name, 2 field {1 name, 3 number, 5 type}}, 3 group_name}. */
static int compile_generic(struct event_program *p, const struct format_file *f, const char *group, bool legacy,
                           struct arena *a)
{
    bool user_space = strcmp(group, "syscalls") == 0;
    struct pb_writer w = {0};
    pb_put_varint(&w, FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTOR_FIELD_ID, p->proto_id);
    pb_put_str(&w, FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTOR_GROUP_NAME, group);
    size_t message = pb_begin(&w, FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTOR_EVENT_DESCRIPTOR);
    pb_put_bytes(&w, DESCRIPTOR_PROTO_NAME, f->name.p, f->name.len);
    uint32_t number = 0;
    for (size_t i = f->n_common; i < f->n_fields; i++) {
        const struct format_field *field = &f->fields[i];
        struct kernel_field k = classify(field, user_space);
        if (k.type != KERNEL_INTEGER && k.type != KERNEL_TEXT)
            continue;
        if (is_code_pointer(group, field, &k))
            k = (struct kernel_field){KERNEL_TEXT, STEP_SYMBOL, (uint16_t)field->size};
        const char *name = legacy ? arena_strndup(a, field->name.p, field->name.len) : NULL;
        if (legacy && !name)
            break;
        add_step(p, field, &k, ++number, false, name);
        size_t entry = pb_begin(&w, DESCRIPTOR_PROTO_FIELD);
        pb_put_bytes(&w, FIELD_DESCRIPTOR_PROTO_NAME, field->name.p, field->name.len);
        pb_put_varint(&w, FIELD_DESCRIPTOR_PROTO_NUMBER, number);
        pb_put_varint(&w, FIELD_DESCRIPTOR_PROTO_TYPE, descriptor_type(&k));
        pb_end(&w, entry);
    }
    pb_end(&w, message);
    if (legacy) {
        pb_writer_clear(&w);
        pb_put_bytes(&w, FTRACE_GENERIC_EVENT_NAME, f->name.p, f->name.len);
    }
    uint8_t *bytes = w.failed ? NULL : arena_alloc_bytes(a, w.n);
    if (bytes) {
        memcpy(bytes, w.p, w.n);
        if (legacy) {
            p->constant = bytes;
            p->constant_len = (uint16_t)w.n;
            p->max_fixed += (uint32_t)w.n;
        } else {
            p->descriptor = slice_of(bytes, w.n);
        }
    }
    pb_writer_free(&w);
    return bytes ? 0 : -MRD_ENOMEM;
}

static bool is_of_words(const struct event_program *p)
{
    bool words = p->kind == PROGRAM_FIELDS && !p->constant_len;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct program_step *s = &p->steps[i];
        bool word = s->code == STEP_U64 || s->code == STEP_S64 || s->code == STEP_ARRAY_U64;
        words = words && word && s->tag_len == 1 && !s->truncate;
    }
    return words;
}

int event_program_compile(struct event_program *p, const struct format_file *f, const char *group,
                          enum program_flavour flavour, uint32_t dynamic_id, struct arena *a, struct error *err)
{
    char name[256];
    memset(p, 0, sizeof *p);
    int rc = check_common(p, f, err);
    if (rc)
        return rc;
    if (f->name.len >= sizeof name || strlen(group) >= sizeof name)
        return error_set(err, -MRD_EFORMAT, "a name of more than %zu bytes", sizeof name - 1);
    memcpy(name, f->name.p, f->name.len);
    name[f->name.len] = 0;
    const struct ftrace_event_desc *desc = ftrace_event_by_name(group, name);
    bool legacy = !desc && flavour == PROGRAM_LEGACY;
    p->steps = arena_alloc(a, (f->n_fields + 1) * sizeof *p->steps); /* each kernel field fills one field at most */
    if (!p->steps || set_identity(p, desc ? desc->id : legacy ? FTRACE_EVENT_GENERIC : dynamic_id, group, f->name, a))
        return error_set(err, -MRD_ENOMEM, "out of memory for event %s/%s", group, name);
    if (legacy)
        p->kind = PROGRAM_GENERIC_LEGACY;
    set_tid_effect(p, f);
    set_inode(p, f);
    if (desc)
        compile_typed(p, f, desc);
    else if (compile_generic(p, f, group, legacy, a))
        return error_set(err, -MRD_ENOMEM, "out of memory for event %s/%s", group, name);
    p->of_words = is_of_words(p);
    return 0;
}

int event_program_kprobe(struct event_program *p, const struct format_file *f, const char *group, const char *name,
                         unsigned type, struct arena *a, struct error *err)
{
    memset(p, 0, sizeof *p);
    int rc = check_common(p, f, err);
    if (rc)
        return rc;
    size_t len = strlen(name);
    uint8_t *bytes = arena_alloc_bytes(a, len + 32);
    if (!bytes || len > 1024 || set_identity(p, FTRACE_EVENT_KPROBE_EVENT, group, f->name, a))
        return error_set(err, -MRD_ENOMEM, "out of memory for probe %s", name);
    uint8_t *q = encode_tag(bytes, 1, PB_BYTES);
    q = encode_bytes(q, name, len);
    q = encode_tag(q, 2, PB_VARINT);
    q = encode_varint(q, type);
    p->kind = PROGRAM_CONSTANT;
    p->constant = bytes;
    p->constant_len = (uint16_t)(q - bytes);
    p->max_fixed += p->constant_len;
    return 0;
}

/* One field of the compact encoding: it must be there with exactly this size. */
static bool find_offset(const struct format_file *f, const char *name, uint32_t size, uint16_t *offset)
{
    const struct format_field *field = format_file_field(f, name);
    if (!field || field->size != size)
        return false;
    *offset = (uint16_t)field->offset;
    return true;
}

bool compact_switch_offsets(const struct format_file *f, struct compact_offsets *o)
{
    o->prev_state_is_64 = find_offset(f, "prev_state", 8, &o->prev_state);
    return (o->prev_state_is_64 || find_offset(f, "prev_state", 4, &o->prev_state)) &&
           find_offset(f, "next_pid", 4, &o->next_pid) && find_offset(f, "next_prio", 4, &o->next_prio) &&
           find_offset(f, "next_comm", 16, &o->next_comm);
}

bool compact_waking_offsets(const struct format_file *f, struct compact_offsets *o)
{
    return find_offset(f, "pid", 4, &o->pid) && find_offset(f, "target_cpu", 4, &o->target_cpu) &&
           find_offset(f, "prio", 4, &o->prio) && find_offset(f, "comm", 16, &o->comm) &&
           find_offset(f, "common_flags", 1, &o->common_flags);
}

bool event_program_throttle_rss(struct event_program *p, const struct format_file *f)
{
    if (!find_offset(f, "mm_id", 4, &p->rss_key[0]) || !find_offset(f, "member", 4, &p->rss_key[1]) ||
        !find_offset(f, "size", 8, &p->rss_size))
        return false;
    if (p->min_size < p->rss_size + 8)
        p->min_size = (uint16_t)(p->rss_size + 8);
    return p->throttled = true;
}
