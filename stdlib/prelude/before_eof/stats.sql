-- Counters of losses and errors; there before any data.

CREATE VIEW stats AS
SELECT id, name, key, idx, severity, source, value, description, machine_id, trace_id
FROM __intrinsic_stats;
