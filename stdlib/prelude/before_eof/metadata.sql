-- What is known of the trace as a whole; there before any data.

CREATE VIEW metadata AS
SELECT id, name, key_type, int_value, str_value, machine_id, trace_id
FROM __intrinsic_metadata;
