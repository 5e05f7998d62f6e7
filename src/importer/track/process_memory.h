/* What the memory counters of processes count (process_memory.def), in words for users. */
#ifndef MERIDIAN_IMPORTER_TRACK_PROCESS_MEMORY_H
#define MERIDIAN_IMPORTER_TRACK_PROCESS_MEMORY_H

/* The description of a key ("rss.anon"), a literal; NULL for other keys. */
const char *process_memory_description(const char *key);

#endif
