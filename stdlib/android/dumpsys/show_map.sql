-- Memory maps of processes, from the section SHOW MAP of a bug report.

-- Lines of those sections: (id, section, line).
CREATE PERFETTO TABLE _show_maps AS
SELECT id, section, trim(line) AS line
FROM android_dumpstate
WHERE section GLOB 'SHOW MAP*';

-- Where the section of each process begins and ends: (section, pid, process_name, first_id, last_id).
CREATE PERFETTO TABLE _show_maps_process_boundary AS
SELECT
  section,
  cast_int!(regexp_extract(section, 'SHOW MAP ([0-9]+)')) AS pid,
  str_split(section, ' ', 3) AS process_name,
  min(id) AS first_id,
  max(id) AS last_id
FROM _show_maps
GROUP BY section;

-- Lines that tell of a mapping, with their process: (id, pid, process_name, line).
CREATE PERFETTO TABLE _show_maps_process AS
SELECT m.id, b.pid, b.process_name, m.line
FROM _show_maps AS m
JOIN _show_maps_process_boundary AS b USING (section)
WHERE m.line GLOB '[0-9]*'
ORDER BY m.id;

-- A row a mapping and process; sizes in kilobytes. A line is read by its words, so that of a name with blanks the first word counts, and
-- of sections of older systems, whose lines have fewer numbers, only the mappings with such a name have a row.
CREATE PERFETTO TABLE android_dumpsys_show_map(
  -- The process.
  process_name STRING,
  -- The kernel's number of the process.
  pid JOINID(process.pid),
  -- Address space, in KiB.
  vss_kb LONG,
  -- In RAM, in KiB.
  rss_kb LONG,
  -- Its share of RAM, what is shared divided among those who map it, in KiB.
  pss_kb LONG,
  -- Shared and not written, in KiB.
  shared_clean_kb LONG,
  -- Shared and written, in KiB.
  shared_dirty_kb LONG,
  -- Its own and not written, in KiB.
  private_clean_kb LONG,
  -- Its own and written, in KiB.
  private_dirty_kb LONG,
  -- In swap, in KiB.
  swap_kb LONG,
  -- Its share of swap, in KiB.
  swap_pss_kb LONG,
  -- Huge pages without a file, in KiB.
  anon_huge_pages_kb LONG,
  -- Shared memory in huge pages, in KiB.
  shmem_pmd_mapped_kb LONG,
  -- Files in huge pages, in KiB.
  file_pmd_mapped_kb LONG,
  -- Shared pages of hugetlbfs, in KiB.
  shared_huge_tlb_kb LONG,
  -- Its own pages of hugetlbfs, in KiB.
  private_hugetlb_kb LONG,
  -- Kept in RAM by mlock(), in KiB.
  locked_kb LONG,
  -- How many mappings.
  mapping_count LONG,
  -- What is mapped: a file or the first word of a name.
  mapped_object STRING
) AS
WITH
  -- the words of a line, apart by one comma each
  cells AS (
    SELECT pid, process_name, regexp_replace_simple(line, ' +', ',') AS words
    FROM _show_maps_process
  )
SELECT
  process_name,
  pid,
  cast_int!(str_split(words, ',', 0)) AS vss_kb,
  cast_int!(str_split(words, ',', 1)) AS rss_kb,
  cast_int!(str_split(words, ',', 2)) AS pss_kb,
  cast_int!(str_split(words, ',', 3)) AS shared_clean_kb,
  cast_int!(str_split(words, ',', 4)) AS shared_dirty_kb,
  cast_int!(str_split(words, ',', 5)) AS private_clean_kb,
  cast_int!(str_split(words, ',', 6)) AS private_dirty_kb,
  cast_int!(str_split(words, ',', 7)) AS swap_kb,
  cast_int!(str_split(words, ',', 8)) AS swap_pss_kb,
  cast_int!(str_split(words, ',', 9)) AS anon_huge_pages_kb,
  cast_int!(str_split(words, ',', 10)) AS shmem_pmd_mapped_kb,
  cast_int!(str_split(words, ',', 11)) AS file_pmd_mapped_kb,
  cast_int!(str_split(words, ',', 12)) AS shared_huge_tlb_kb,
  cast_int!(str_split(words, ',', 13)) AS private_hugetlb_kb,
  cast_int!(str_split(words, ',', 14)) AS locked_kb,
  cast_int!(str_split(words, ',', 15)) AS mapping_count,
  str_split(words, ',', 16) AS mapped_object
FROM cells
WHERE str_split(words, ',', 16) != 'TOTAL';
