/* The programs of a trace, and the sequences that they serve. */
#include "importer/protovm/protovm.h"

#include "importer/protovm/program.h"
#include "wire/fields.h"

enum {
    MAX_STATE_BYTES = 128 << 20, /* also of a program that names no limit */
    MAX_SERVED = 1 << 20,        /* pairs of a sequence and a program */
    STATES_BASE = 256 << 20,     /* bytes of all states that are imported: these, … */
    STATES_RATIO = 200,          /* … and so many for each byte of a patch */
    WORK_BASE = 1 << 26,         /* of all programs: see vm_program_run() */
    WORK_RATIO = 64,
    END = UINT32_MAX,
};

struct protovm {
    struct vm_program program;
    struct vm_tree state;
    uint8_t *program_bytes;
};

/* An element of a list that begins in a map. */
struct link {
    uint32_t value, next;
};

struct protovms {
    VEC(struct protovm *)
    vms;
    VEC(struct link)
    links;
    struct u64map producers; /* -> the first of its sequences */
    struct u64map sequences; /* -> the first of the programs that serve it */
    size_t served;
    uint64_t patch_bytes, state_bytes, work;
    bool refused;
    struct pb_writer out;
};

struct protovms *protovms_open(void)
{
    struct protovms *v = mem_zalloc(sizeof *v);
    if (v)
        v->work = WORK_BASE;
    return v;
}

static void vm_close(struct protovm *vm)
{
    if (!vm)
        return;
    vm_tree_close(&vm->state);
    mem_free(vm->program_bytes);
    mem_free(vm);
}

void protovms_close(struct protovms *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->vms.n; i++)
        vm_close(v->vms.p[i]);
    vec_free(&v->vms);
    vec_free(&v->links);
    u64map_free(&v->producers);
    u64map_free(&v->sequences);
    pb_writer_free(&v->out);
    mem_free(v);
}

/* Puts a value at the end of the list of `key`; false when out of memory. */
static bool append(struct protovms *v, struct u64map *map, uint64_t key, uint32_t value)
{
    bool added;
    uint64_t *ends = u64map_put(map, key, &added); /* first and last */
    uint32_t link = (uint32_t)v->links.n;
    if (!ends || v->links.n == END || !vec_push(&v->links, (struct link){value, END}))
        return false;
    if (added)
        *ends = (uint64_t)link << 32 | link;
    else {
        v->links.p[(uint32_t)*ends].next = link;
        *ends = (*ends & ~(uint64_t)UINT32_MAX) | link;
    }
    return true;
}

static uint32_t first_link(const struct u64map *map, uint64_t key)
{
    const uint64_t *ends = u64map_get(map, key);
    return ends ? (uint32_t)(*ends >> 32) : END;
}

static bool add_sequence(struct protovms *v, struct slice sequence)
{
    struct pb_cursor c = pb_cursor(sequence);
    struct pb_field f;
    uint32_t id = 0;
    int32_t producer = 0;
    while (pb_next(&c, &f)) {
        if (f.id == TRACE_PROVENANCE_SEQUENCE_ID)
            id = pb_u32(&f);
        else if (f.id == TRACE_PROVENANCE_SEQUENCE_PRODUCER_ID)
            producer = pb_i32(&f);
    }
    return append(v, &v->producers, (uint32_t)producer, id);
}

bool protovms_provenance(struct protovms *v, struct slice provenance)
{
    struct pb_cursor buffers = pb_cursor(provenance);
    struct pb_field buffer, sequence;
    while (pb_next(&buffers, &buffer)) {
        if (buffer.id != TRACE_PROVENANCE_BUFFERS)
            continue;
        struct pb_cursor sequences = pb_sub(&buffer);
        while (pb_next(&sequences, &sequence))
            if (sequence.id == TRACE_PROVENANCE_BUFFER_SEQUENCES && !add_sequence(v, pb_bytes(&sequence)))
                return false;
    }
    return true;
}

/* The program serves the sequences of a producer. */
static bool serve(struct protovms *v, struct machine_ctx *m, uint32_t vm, uint32_t producer, int64_t byte_offset)
{
    uint32_t i = first_link(&v->producers, producer);
    if (i == END)
        import_log(m, STAT_protovm_registration_error, COL_NULL, byte_offset, ARGSET_NONE);
    for (; i != END; i = v->links.p[i].next) {
        if (v->served == MAX_SERVED) {
            import_log(m, STAT_protovm_registration_error, COL_NULL, byte_offset, ARGSET_NONE);
            return true;
        }
        v->served++;
        if (!append(v, &v->sequences, v->links.p[i].value, vm))
            return false;
    }
    return true;
}

static struct protovm *vm_open(struct slice program, struct slice state, uint64_t limit)
{
    struct protovm *vm = mem_zalloc(sizeof *vm);
    if (!vm || !(vm->program_bytes = mem_alloc(program.len + 1)))
        goto failed;
    if (program.len)
        memcpy(vm->program_bytes, program.p, program.len);
    vm->program.bytes = slice_of(vm->program_bytes, program.len);
    vm_tree_open(&vm->state, state, limit && limit < MAX_STATE_BYTES ? (size_t)limit : MAX_STATE_BYTES);
    if (!vm->state.no_memory)
        return vm;
failed:
    vm_close(vm);
    return NULL;
}

static bool add_instance(struct protovms *v, struct machine_ctx *m, struct slice instance, int64_t byte_offset)
{
    enum { KIB = 1024 };
    struct pb_cursor c = pb_cursor(instance);
    struct pb_field f;
    struct slice program = {0}, state = {0};
    uint64_t limit = 0, producer;
    while (pb_next(&c, &f)) {
        if (f.id == TRACE_PACKET_PROTO_VMS_INSTANCE_PROGRAM)
            program = pb_bytes(&f);
        else if (f.id == TRACE_PACKET_PROTO_VMS_INSTANCE_STATE)
            state = pb_bytes(&f);
        else if (f.id == TRACE_PACKET_PROTO_VMS_INSTANCE_MEMORY_LIMIT_KB)
            limit = (uint64_t)pb_u32(&f) * KIB;
    }
    struct protovm *vm = vm_open(program, state, limit);
    if (!vm || !vec_push(&v->vms, vm)) {
        vm_close(vm);
        return false;
    }
    struct pb_numbers producers = pb_numbers(instance, TRACE_PACKET_PROTO_VMS_INSTANCE_PRODUCER_ID);
    while (pb_next_number(&producers, &producer))
        if (!serve(v, m, (uint32_t)(v->vms.n - 1), (uint32_t)producer, byte_offset))
            return false;
    return true;
}

bool protovms_add(struct protovms *v, struct machine_ctx *m, struct slice vms, int64_t byte_offset)
{
    struct pb_cursor c = pb_cursor(vms);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == TRACE_PACKET_PROTO_VMS_INSTANCE && !add_instance(v, m, pb_bytes(&f), byte_offset))
            return false;
    return true;
}

/* The state as a packet of whom the patch is from. */
static struct slice state_packet(struct protovms *v, const struct protovm *vm, struct slice patch)
{
    struct pb_writer *w = &v->out;
    struct pb_cursor c = pb_cursor(patch);
    struct pb_field f;
    pb_writer_clear(w);
    vm_write(&vm->state.root, w);
    while (pb_next(&c, &f))
        if (f.wire == PB_VARINT && (f.id == TRACE_PACKET_TRUSTED_UID || f.id == TRACE_PACKET_TRUSTED_PID ||
                                    f.id == TRACE_PACKET_MACHINE_ID || f.id == TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID))
            pb_put_varint(w, f.id, f.u);
    return pb_written(w);
}

/* Bounds what small patches of large states cost. */
static bool refused(struct protovms *v, struct machine_ctx *m, size_t state_bytes)
{
    v->state_bytes += state_bytes;
    if (!v->refused && v->state_bytes > STATES_BASE + STATES_RATIO * v->patch_bytes) {
        v->refused = true;
        importer_fail(m->im, -MRD_ELIMIT, "ProtoVM: the states of producers are more than 200 times what they wrote");
    }
    return v->refused;
}

struct slice protovms_apply(struct protovms *v, struct machine_ctx *m, struct slice packet, uint32_t sequence,
                            int64_t byte_offset)
{
    uint32_t i = first_link(&v->sequences, sequence);
    if (i == END || v->refused)
        return (struct slice){0};
    v->patch_bytes += packet.len;
    v->work += WORK_RATIO * (uint64_t)packet.len;
    for (; i != END; i = v->links.p[i].next) {
        struct protovm *vm = v->vms.p[v->links.p[i].value];
        enum vm_status status = vm_program_run(&vm->program, &vm->state, packet, &v->work);
        if (status == VM_OK) {
            struct slice state = state_packet(v, vm, packet);
            m->im->failed |= v->out.failed;
            return v->out.failed || refused(v, m, state.len) ? (struct slice){0} : state;
        }
        if (status == VM_ABORT)
            import_log(m, STAT_protovm_abort, COL_NULL, byte_offset, ARGSET_NONE);
        m->im->failed |= vm->state.no_memory;
    }
    return (struct slice){0};
}
