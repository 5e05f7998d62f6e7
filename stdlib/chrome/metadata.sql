-- What Chrome tells about the machine it runs on.

-- The class of the hardware, which names brand and model.
CREATE PERFETTO FUNCTION chrome_hardware_class()
-- The class; NULL: not recorded.
RETURNS STRING AS
SELECT extract_metadata('cr-hardware-class');
