include perfetto module slices.time_in_state; select count(*) from thread_slice_time_in_state;
