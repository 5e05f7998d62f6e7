/* What a service says about broken links to its machines: kept until the file ends, since it repeats itself. */
#ifndef MERIDIAN_IMPORTER_PROTO_MACHINE_LOSSES_H
#define MERIDIAN_IMPORTER_PROTO_MACHINE_LOSSES_H

struct importer;
struct machine_losses;

/* The end of a file: the rows of machine_absence and machine_absence_sequence. */
void machine_losses_end_file(struct importer *im);

void machine_losses_free(struct machine_losses *all);

#endif
