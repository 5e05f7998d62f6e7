/* Reads what an ELF file says of itself: its build id, where its code lies, what symbols it has, and which other files
 * have more. Of 32 or 64 bits and either byte order; no size in it is believed, and only headers are read. */
#ifndef MERIDIAN_SYMBOLS_ELF_IMAGE_H
#define MERIDIAN_SYMBOLS_ELF_IMAGE_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { ELF_MAX_BUILD_ID = 64, ELF_MAX_NAME = 256 };

/* How much can be told of an address in it. */
enum elf_wealth {
    ELF_HAS_NOTHING,
    ELF_HAS_DYNAMIC, /* names of what others may call */
    ELF_HAS_PACKED,  /* and of the other functions, in .gnu_debugdata */
    ELF_HAS_SYMBOLS, /* names of all functions */
    ELF_HAS_LINES,   /* and lines of source code, and what is inlined */
};

struct elf_section {
    uint32_t name, type, link;
    uint64_t flags, address, offset, size, entry_size;
};

struct elf_image {
    int fd;              /* the caller's; -1: the file is in memory */
    struct slice memory; /* the caller's */
    uint64_t file_bytes;
    bool wide, swapped; /* 64 bits; not of this machine's byte order */
    uint8_t build_id[ELF_MAX_BUILD_ID];
    size_t build_id_len;             /* 0: none */
    bool executable;                 /* has a segment of code: */
    uint64_t address, offset, align; /* of the first */
    uint64_t segment_table, n_segments, segment_bytes;
    uint64_t section_table, n_sections, section_bytes;
    uint32_t name_section;

    /* elf_image_sections() */
    VEC(struct elf_section)
    sections;
    enum elf_wealth wealth;
    struct elf_section packed;    /* .gnu_debugdata: an ELF file with symbols, packed by xz; size 0: none */
    char debuglink[ELF_MAX_NAME]; /* name of a file that has what this one lacks; "" */
    uint32_t debuglink_crc;
    char altlink[ELF_MAX_NAME]; /* of a file that it shares debugging information with; "" */
    uint8_t alt_id[ELF_MAX_BUILD_ID];
    size_t alt_id_len;
};

/* Headers, segments and build id. -MRD_EFORMAT when it is no ELF file, -MRD_EIO when it cannot be read. The image is
 * closed in any case. */
int elf_image_open(struct elf_image *e, int fd, struct error *err);

/* The same of a file in memory, which must outlive the image. */
int elf_image_open_memory(struct elf_image *e, struct slice memory, struct error *err);

/* The sections, and what they tell. */
int elf_image_sections(struct elf_image *e, struct error *err);

/* The first section of a type, from `from` on; NULL when there is none. */
const struct elf_section *elf_image_section(const struct elf_image *e, uint32_t type);

/* Reads all of a section into mem_alloc()ed memory; *bytes is set on success. */
int elf_image_read(const struct elf_image *e, const struct elf_section *s, uint8_t **bytes, struct error *err);

/* A number of `size` bytes (1, 2, 4, 8) in the file's byte order. */
uint64_t elf_image_number(const struct elf_image *e, const void *p, size_t size);

/* The address of `rel_pc` as the file's own symbols count: for a mapping of `file_offset` bytes into the file whose
 * recorder took `load_bias` for the difference of addresses and offsets. */
uint64_t elf_image_address(const struct elf_image *e, uint64_t rel_pc, uint64_t file_offset, uint64_t load_bias);

void elf_image_close(struct elf_image *e);

#endif
