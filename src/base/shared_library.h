/* Libraries that are loaded when they are needed: linked, they would take their time at each start of a program. */
#ifndef MERIDIAN_BASE_SHARED_LIBRARY_H
#define MERIDIAN_BASE_SHARED_LIBRARY_H

/* Loads `file`, and finds the functions of `names`, a list that ends with NULL: their addresses go to `functions`,
 * pointers that lie one behind the other. The library stays loaded until the process ends. NULL: all are there; "":
 * there is no such library; else the name that it lacks. */
const char *shared_library_load(const char *file, const char *const *names, void *functions);

#endif
