/* A program that changes a message (the state) by another one (the patch): VmProgram. */
#ifndef MERIDIAN_IMPORTER_PROTOVM_PROGRAM_H
#define MERIDIAN_IMPORTER_PROTOVM_PROGRAM_H

#include "importer/protovm/message_tree.h"

enum { VM_REGISTERS = 32 };

struct vm_program {
    struct slice bytes; /* a VmProgram; not owned */
    uint64_t registers[VM_REGISTERS];
    uint32_t known; /* registers that have a value, a bit each */
};

/* Runs it. *work is what it may still do, in instructions and pieces of 64 bytes: a program without end, or of loops
 * within loops, aborts when that is used up. After VM_ABORT the state may be changed in part. */
enum vm_status vm_program_run(struct vm_program *p, struct vm_tree *state, struct slice patch, uint64_t *work);

#endif
