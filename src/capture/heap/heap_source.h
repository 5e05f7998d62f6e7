/* The data source android.heapprofd. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_SOURCE_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_SOURCE_H

struct data_source_type;
extern const struct data_source_type heap_data_source;

#endif
