-- GPUs.

-- GPUs of all machines.
CREATE PERFETTO VIEW gpu(
  -- The same as ugpu.
  id ID,
  -- Number of the GPU, unique over all machines.
  ugpu ID,
  -- Number of the GPU on its machine.
  gpu LONG,
  -- Its name.
  name STRING,
  -- Who made it.
  vendor STRING,
  -- Model of the GPU; empty when unknown.
  model STRING,
  -- Architecture of the GPU; empty when unknown.
  architecture STRING,
  -- Its UUID.
  uuid STRING,
  -- Its place on the PCI bus: bus, device, function.
  pci_bdf STRING,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, id AS ugpu, gpu, name, vendor, model, architecture, uuid, pci_bdf, machine_id, arg_set_id
FROM __intrinsic_gpu;
