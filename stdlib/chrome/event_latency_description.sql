-- What the parts of the slices "EventLatency" mean.

-- One row for each part.
CREATE PERFETTO TABLE chrome_event_latency_stage_descriptions(
  -- Name of the part.
  name STRING,
  -- What goes on during it.
  description STRING
) AS
WITH
  stages(name, description) AS (
    VALUES
      ('TouchRendererHandlingToBrowserMain', 'A page that listens for touches has answered, and the browsers main thread has not begun with the scroll yet.'),
      ('GenerationToBrowserMain', 'The system made the input, and the browsers main thread has not begun with it yet.'),
      ('GenerationToRendererCompositor', 'The system made the input, and the renderers compositor has not begun with the touch that starts the scroll yet.'),
      ('BrowserMainToRendererCompositor', 'The browsers main thread handles the input and hands it on; until the renderers compositor begins with it.'),
      ('RendererCompositorQueueingDelay', 'The input waits in the renderers compositor for the next frame to begin.'),
      ('RendererCompositorToMain', 'The compositor could not scroll alone (a listener in the page or its layout stands in the way); until the renderers main thread begins.'),
      ('RendererCompositorProcessing', 'The renderers compositor handles the input.'),
      ('RendererMainProcessing', 'The renderers main thread handles the input.'),
      ('EndActivateToSubmitCompositorFrame', 'The frame is ready in the renderers compositor, which waits for the GPU before it can be submitted.'),
      ('SubmitCompositorFrameToPresentationCompositorFrame', 'From the submitted frame to the screen. Some systems do not tell all times of it.'),
      ('ArrivedInRendererCompositorToTermination', 'The input came to the renderers compositor, and was dropped or put together with another one.'),
      ('RendererCompositorStartedToTermination', 'The renderers compositor had begun with the input when it was dropped or put together with another one.'),
      ('RendererMainFinishedToTermination', 'The renderers main thread was done with the input when it was dropped or put together with another one.'),
      ('RendererCompositorFinishedToTermination', 'The renderers compositor was done with the input when it was put together with another one.'),
      ('RendererMainStartedToTermination', 'The renderers main thread had begun with the input when it was dropped or put together with another one.'),
      ('RendererCompositorFinishedToBeginImplFrame', 'The compositor is done, made no frame (it may wait for the main thread), and waits for the next one to begin.'),
      ('RendererCompositorFinishedToCommit', 'The compositor is done; until the main thread begins to commit what it has drawn.'),
      ('RendererCompositorFinishedToEndCommit', 'The compositor is done; until the main thread has committed what it has drawn.'),
      ('RendererCompositorFinishedToActivation', 'The compositor is done; until a tree that was committed before is put to use.'),
      ('RendererCompositorFinishedToEndActivate', 'The compositor is done; until the tree is in use.'),
      ('RendererCompositorFinishedToSubmitCompositorFrame', 'The compositor is done and needs nothing of the main thread; until the GPU lets it submit the frame.'),
      ('RendererMainFinishedToBeginImplFrame', 'The main thread is done; the compositor waits for the next frame to begin.'),
      ('RendererMainFinishedToSendBeginMainFrame', 'The main thread is done and waits to be asked for a frame.'),
      ('RendererMainFinishedToCommit', 'The main thread is done; until it begins to commit.'),
      ('BeginImplFrameToSendBeginMainFrame', 'The compositors frame has begun; until it asks the main thread for its part.'),
      ('RendererCompositorFinishedToSendBeginMainFrame', 'The compositor is done and knows that the main thread has work; until a frame begins and it can ask.'),
      ('SendBeginMainFrameToCommit', 'The main thread handles inputs, animations, styles and layout of the frame.'),
      ('Commit', 'The main thread copies its tree to the compositor, and stands still while it does.'),
      ('EndCommitToActivation', 'The tree is copied and waits to be put to use.'),
      ('Activation', 'The copied tree becomes the one that is drawn.'),
      ('SubmitToReceiveCompositorFrame', 'The frame is on its way from the renderer to the GPU process.'),
      ('ReceiveCompositorFrameToStartDraw', 'The GPU process waits for the other parts of the picture, such as the browsers bars, or until it gives up on them.'),
      ('StartDrawToSwapStart', 'The GPU process puts the parts together and gives out the commands to draw.'),
      ('SwapStartToBufferAvailable', 'The system makes a buffer ready to draw into.'),
      ('BufferAvailableToBufferReady', 'The frame is drawn into the buffer.'),
      ('BufferReadyToLatch', 'The frame is drawn and waits for the system to take it.'),
      ('LatchToSwapEnd', 'The system has taken the frame; until the buffers are swapped.'),
      ('SwapEndToPresentationCompositorFrame', 'The buffers are swapped; until the frame is seen.')
  )
SELECT name, description FROM stages;
