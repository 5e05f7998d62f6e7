-- Records of the Arm Statistical Profiling Extension.

-- One sampled operation a row; the flags are the bits of its event packet (Arm ARM, Statistical Profiling Extension).
CREATE PERFETTO VIEW linux_perf_spe_record(
  -- Time of the operation.
  ts TIMESTAMP,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Level the processor ran at: user, kernel or hypervisor.
  exception_level STRING,
  -- The instruction: row of stack_profile_frame.
  instruction_frame_id LONG,
  -- What the instruction does.
  operation STRING,
  -- Address of its data, virtual.
  data_virtual_address LONG,
  -- Address of its data, physical.
  data_physical_address LONG,
  -- Cycles from dispatch to completion.
  total_latency LONG,
  -- Cycles from dispatch to issue.
  issue_latency LONG,
  -- Cycles for the translation of its address.
  translation_latency LONG,
  -- Where its data came from.
  data_source STRING,
  -- Did it cause an exception?
  exception_gen BOOL,
  -- Was it retired?
  retired BOOL,
  -- Did it use the first-level data cache?
  l1d_access BOOL,
  -- Did it miss there?
  l1d_refill BOOL,
  -- Did it use the TLB?
  tlb_access BOOL,
  -- Did it miss there, so that tables were walked?
  tlb_refill BOOL,
  -- Was it a branch that was not taken?
  not_taken BOOL,
  -- Was it a branch that was guessed wrong?
  mispred BOOL,
  -- Did it use the last-level cache?
  llc_access BOOL,
  -- Did it miss there?
  llc_refill BOOL,
  -- Did its data come from another socket?
  remote_access BOOL,
  -- Was its address not aligned?
  alignment BOOL,
  -- Was it in a memory transaction?
  tme_transaction BOOL,
  -- Was its vector predicate partly set?
  sve_partial_pred BOOL,
  -- Was its vector predicate empty?
  sve_empty_pred BOOL,
  -- Did it use the second-level cache?
  l2d_access BOOL,
  -- Did it hit there?
  l2d_hit BOOL,
  -- Was the data in the cache modified?
  cache_data_modified BOOL,
  -- Was the data fetched a moment ago?
  recenty_fetched BOOL,
  -- Did the data come from another processor's cache?
  data_snooped BOOL
) AS
SELECT
  ts,
  utid,
  exception_level,
  instruction_frame_id,
  operation,
  data_virtual_address,
  data_physical_address,
  total_latency,
  issue_latency,
  translation_latency,
  data_source,
  (events_bitmask >> 0) & 1 AS exception_gen,
  (events_bitmask >> 1) & 1 AS retired,
  (events_bitmask >> 2) & 1 AS l1d_access,
  (events_bitmask >> 3) & 1 AS l1d_refill,
  (events_bitmask >> 4) & 1 AS tlb_access,
  (events_bitmask >> 5) & 1 AS tlb_refill,
  (events_bitmask >> 6) & 1 AS not_taken,
  (events_bitmask >> 7) & 1 AS mispred,
  (events_bitmask >> 8) & 1 AS llc_access,
  (events_bitmask >> 9) & 1 AS llc_refill,
  (events_bitmask >> 10) & 1 AS remote_access,
  (events_bitmask >> 11) & 1 AS alignment,
  (events_bitmask >> 16) & 1 AS tme_transaction,
  (events_bitmask >> 17) & 1 AS sve_partial_pred,
  (events_bitmask >> 18) & 1 AS sve_empty_pred,
  (events_bitmask >> 19) & 1 AS l2d_access,
  (events_bitmask >> 20) & 1 AS l2d_hit,
  (events_bitmask >> 21) & 1 AS cache_data_modified,
  (events_bitmask >> 22) & 1 AS recenty_fetched,
  (events_bitmask >> 23) & 1 AS data_snooped
FROM __intrinsic_spe_record;
