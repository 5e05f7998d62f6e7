/* Dumps of Java heaps in the HPROF format, as Android's runtime and other virtual machines write them.
 *
 * records.c reads the file once: strings, classes, and where each object begins. objects.c then makes objects,
 * references and contents of what lies there, since a class may be told behind its objects; the tables are those of
 * heap graphs (importer/profiling/heap_graph.h). */
#ifndef MERIDIAN_IMPORTER_HPROF_HPROF_H
#define MERIDIAN_IMPORTER_HPROF_HPROF_H

#include "importer/input/format_reader.h"

extern const struct format_reader hprof_format_reader;

#endif
