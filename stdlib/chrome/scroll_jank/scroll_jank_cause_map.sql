-- Which threads to look at when a part of an input's way took too long.

INCLUDE PERFETTO MODULE chrome.event_latency_description;

-- By part; a part may have several.
CREATE PERFETTO TABLE chrome_scroll_jank_cause_descriptions(
  -- Name of the part.
  event_latency_stage STRING,
  -- Kind of process.
  cause_process STRING,
  -- The thread.
  cause_thread STRING,
  -- What to look for.
  cause_description STRING
) AS
WITH
  causes(event_latency_stage, cause_process, cause_thread, cause_description) AS (
    VALUES
      ('GenerationToBrowserMain', 'Browser', 'CrBrowserMain', 'The browsers main thread was busy: look at its tasks, at blocking calls of its workers and at the network service. Loading of pages, long frames of its own and callbacks of Java are common.'),
      ('RendererCompositorQueueingDelay', 'Renderer', 'Compositor', 'The renderer could not begin a frame, as its main thread had to find the target of a touch or ran a script first.'),
      ('RendererCompositorQueueingDelay', 'GPU', 'VizCompositorThread', 'No frame was begun. A fling before or during the scroll makes one input stand for many.'),
      ('ReceiveCompositorFrameToStartDraw', 'GPU', 'VizCompositorThread', 'The frame was kept while others were waited for, or the system kept the buffer: look at the task that began a frame and ended in this part.'),
      ('ReceiveCompositorFrameToStartDraw', 'GPU', 'CrGpuMain', 'The GPUs main thread was busy and did not give the buffer back; if it was idle, the system had the buffer.'),
      ('ReceiveCompositorFrameToStartDraw', 'Browser', 'CrBrowserMain', 'The browsers bars were late, because other tasks were before them.'),
      ('BufferReadyToLatch', 'GPU', 'VizCompositorThread', 'The frame missed the moment at which the system takes one, and waited for the next. If the frame before took longer to get here, the system was late, else Chrome was.'),
      ('SwapEndToPresentationCompositorFrame', 'GPU', 'VizCompositorThread', 'As for BufferReadyToLatch: the frame missed the moment at which the system takes one. If the frame before took longer to get there, the system was late, else Chrome was.'),
      ('SwapEndToPresentationCompositorFrame', 'GPU', 'CrGpuMain', 'When there is also a StartDrawToBufferAvailable, the GPUs main thread was busy or had no CPU. Look at surfaceflinger too.'),
      ('SwapEndToPresentationCompositorFrame', 'GPU', 'surfaceflinger', 'When there is also a StartDrawToBufferAvailable, surfaceflinger did not say that the buffer may be written to.')
  )
SELECT event_latency_stage, cause_process, cause_thread, cause_description FROM causes;

-- All parts, with the threads to look at where there are any.
CREATE PERFETTO VIEW chrome_scroll_jank_causes_with_event_latencies(
  -- Name of the part.
  name STRING,
  -- What goes on during it.
  description STRING,
  -- Kind of process.
  cause_process STRING,
  -- The thread.
  cause_thread STRING,
  -- What to look for.
  cause_description STRING
) AS
SELECT s.name, s.description, c.cause_process, c.cause_thread, c.cause_description
FROM chrome_event_latency_stage_descriptions AS s
LEFT JOIN chrome_scroll_jank_cause_descriptions AS c ON c.event_latency_stage = s.name;
