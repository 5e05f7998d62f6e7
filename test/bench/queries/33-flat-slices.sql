include perfetto module slices.flat_slices; select count(*) from _slice_flattened;
