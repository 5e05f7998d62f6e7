-- Tracks whose events carry call stacks.

-- (track_id), once each.
CREATE PERFETTO TABLE _track_event_tracks_with_callstacks AS
SELECT DISTINCT track_id
FROM __intrinsic_track_event_callstacks;
