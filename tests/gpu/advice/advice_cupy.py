# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The CuPy examples of docs/advice.md; advice.cpp says what the marked lines are."""

import pairs
from frameworks import cupy_or_77

cp = cupy_or_77()

import cupyx
import numpy as np

stream = cp.cuda.Stream(non_blocking=True)
side = cp.cuda.Stream(non_blocking=True)
stream.use()
x = cp.ones((1024, 1024), dtype=cp.float32)
loss = x.mean().reshape(1)
batch = np.ones(4 << 20, dtype=np.float32)  # 16 MiB of ordinary memory
pinned_batch = cupyx.zeros_pinned(4 << 20, dtype=np.float32)
pinned = cupyx.zeros_pinned((1,), dtype=np.float32)
slots = [cupyx.zeros_pinned((1,), dtype=np.float32), cupyx.zeros_pinned((1,), dtype=np.float32)]
upload = cp.empty(4 << 20, dtype=cp.float32)
done = cp.cuda.Event(disable_timing=True)
events = [cp.cuda.Event(disable_timing=True), cp.cuda.Event(disable_timing=True)]
work = cp.empty(1 << 30, dtype=cp.uint8)
steps = 3


def busy():
    for value in range(64):
        work.fill(value)


def train_step():
    cp.multiply(x, np.float32(1), out=x)


def log(value):
    print(f"loss {float(value) >= 0}")


def device_sync_before():
    # advice: device_sync before
    train_step()
    cp.cuda.Device().synchronize()  # waits for every stream of the device
    print("step queued")
    # advice: end


def device_sync_after():
    # advice: device_sync after
    train_step()
    done.record()
    print("step queued")
    if done.done:  # looks, does not wait
        print("step done")
    # advice: end


def stream_sync_before():
    # advice: stream_sync before
    train_step()
    stream.synchronize()  # the host waits, only to order two streams
    with side:
        train_step()
    # advice: end


def stream_sync_after():
    # advice: stream_sync after
    train_step()
    side.wait_event(stream.record())  # the GPU waits, the host goes on
    with side:
        train_step()
    # advice: end


def event_sync_before():
    # advice: event_sync before
    for step in range(steps):
        loss.get(out=pinned, blocking=False)
        done.record()
        done.synchronize()  # the queue runs empty in every step
        log(pinned[0])
        train_step()
    # advice: end


def event_sync_after():
    # advice: event_sync after
    for step in range(steps):
        loss.get(out=slots[step % 2], blocking=False)
        events[step % 2].record()
        train_step()
        # The step before: read it if it is there, else in a later step.
        if step > 0 and events[(step + 1) % 2].done:
            log(slots[(step + 1) % 2][0])
    # advice: end


def async_copy_before():
    # advice: async_copy before
    train_step()
    log(loss.get()[0])  # also float(loss), cp.asnumpy(loss), if loss > 0
    # advice: end


def async_copy_after():
    # advice: async_copy after
    # Once: pinned = cupyx.zeros_pinned((1,), dtype=np.float32); done = cp.cuda.Event()
    train_step()
    loss.get(out=pinned, blocking=False)
    done.record()
    if done.done:  # else look again in a later step
        log(pinned[0])
    # advice: end


def shape_before():
    # advice: async_copy.shape before
    return x[x > 0].sum()  # how many there are must be known on the host
    # advice: end


def shape_after():
    # advice: async_copy.shape after
    return cp.where(x > 0, x, np.float32(0)).sum()  # the shape does not depend on the data
    # advice: end


def upload_before():
    # advice: async_copy.upload before
    upload.set(batch, stream=stream)  # ordinary memory: waits all the same
    # advice: end


def upload_after():
    # advice: async_copy.upload after
    # Once: pinned_batch = cupyx.zeros_pinned(batch.shape, dtype=batch.dtype), and fill it
    upload.set(pinned_batch, stream=stream)
    # advice: end


def free_before():
    # advice: free before
    block = cp.empty(64 << 20, dtype=cp.uint8)
    del block
    cp.get_default_memory_pool().free_all_blocks()  # frees: waits for every stream
    # advice: end


def free_after():
    # advice: free after
    block = cp.empty(64 << 20, dtype=cp.uint8)
    del block  # stays in CuPy's pool for the next one
    # advice: end


def poll_before():
    # advice: poll before
    done.record()
    while not done.done:
        pass
    with side:
        train_step()
    # advice: end


def poll_after():
    # advice: poll after
    done.record()
    side.wait_event(done)
    with side:
        train_step()
    # advice: end


if __name__ == "__main__":
    pairs.run({"device_sync": (device_sync_before, device_sync_after),
               "stream_sync": (stream_sync_before, stream_sync_after),
               "event_sync": (event_sync_before, event_sync_after),
               "async_copy": (async_copy_before, async_copy_after),
               "async_copy.shape": (shape_before, shape_after),
               "async_copy.upload": (upload_before, upload_after),
               "free": (free_before, free_after),
               "poll": (poll_before, poll_after)}, busy, cp.cuda.Device().synchronize)
