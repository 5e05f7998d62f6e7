-- Devices whose power can be told from frequencies.

-- Codenames of devices that a power model exists for. Meridian brings none; a package of yours may add rows to a table of
-- this shape.
CREATE PERFETTO TABLE _wattson_device_map(device STRING, wattson_device STRING) AS
SELECT name AS device, name AS wattson_device FROM cpu_available_frequencies JOIN machine USING (id) WHERE 0;

-- The model of the device that the trace is from; no row when there is none.
CREATE PERFETTO TABLE _wattson_device AS
SELECT m.wattson_device AS name
FROM _wattson_device_map AS m
WHERE m.device = extract_metadata('android_device_name')
   OR extract_metadata('android_build_fingerprint') GLOB '*/' || m.device || ':*';
