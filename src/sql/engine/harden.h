/* What statements may do on our connection: limits, no modules and functions but those a trace needs, an authorizer. */
#ifndef MERIDIAN_SQL_ENGINE_HARDEN_H
#define MERIDIAN_SQL_ENGINE_HARDEN_H

#include "sql/engine.h"

/* On a connection that has just been opened, before anything is registered: what SQLite itself brings goes away here.
 */
int harden_connection(sqlite3 *db);

/* From now on each statement is looked at; before, the engine sets itself up. */
void harden_authorize(struct engine *e);

/* Between these two the engine itself may write SQLite's schema: it is read anew afterwards. */
int harden_open_schema(sqlite3 *db);
int harden_close_schema(struct engine *e);

#endif
