/* The directory of the cache: whose it is, its files, its size. For cache.c only.
 *
 *     key             random bytes: nobody outside can make a trace whose sum is another's
 *     lock            locked while entries are written and removed; what holds it ends with its process
 *     NAME.mrdsnap    an entry; its time of change is that of its last use
 *     NAME.sum        the sum of a file's bytes, by its device, number, length and times */
#ifndef MERIDIAN_API_CACHE_DIR_H
#define MERIDIAN_API_CACHE_DIR_H

#include "base/checksum.h"
#include "base/error.h"

#include <sys/stat.h>

enum { CACHE_NAME_BYTES = 48 };

struct cache_dir {
    int fd;
    char *path;
    uint64_t seed;
    uint64_t max_bytes;
};

struct cache_file_id {
    char name[CACHE_NAME_BYTES];
    uint64_t words[7]; /* what the name was made of: told apart by all of it */
};

/* An entry while it is written: it has no name where the file system allows that. */
struct cache_part {
    int fd;
    char name[CACHE_NAME_BYTES + 32]; /* "" when it has none */
};

int cache_dir_open(struct cache_dir *d, const char *path, uint64_t max_bytes, struct error *err);
void cache_dir_close(struct cache_dir *d);

void cache_file_id_of(const struct cache_dir *d, const struct stat *st, struct cache_file_id *id);
bool cache_dir_known_sum(const struct cache_dir *d, const struct cache_file_id *id, struct checksum *sum);
void cache_dir_note_sum(const struct cache_dir *d, const struct cache_file_id *id, const struct checksum *sum);

void cache_entry_name(struct checksum sum, char name[CACHE_NAME_BYTES]);

/* Whether there is an entry; then it counts as used now, and its path is written to `path`. */
bool cache_dir_use(const struct cache_dir *d, const char *name, char *path, size_t room);

/* A lock on one entry, to be closed; -1 when another process has it. */
int cache_dir_lock_entry(const struct cache_dir *d, const char *name);

/* Removes what was used longest ago until `bytes` more fit, and what killed processes left. */
void cache_dir_make_room(const struct cache_dir *d, uint64_t bytes);

int cache_part_open(const struct cache_dir *d, struct cache_part *part);
/* Gives it its name in one step (NULL: it goes). */
void cache_part_close(const struct cache_dir *d, struct cache_part *part, const char *name);

#endif
