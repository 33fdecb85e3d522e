# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The PyTorch examples of docs/advice.md; advice.cpp says what the marked lines are."""

import pairs
from frameworks import torch_or_77

torch = torch_or_77()

cuda = torch.device("cuda")
x = torch.randn(1024, 1024, device=cuda)
loss = x.square().mean()
batch = torch.randn(4 << 20)  # 16 MiB of ordinary memory
pinned_batch = batch.pin_memory()
pinned = torch.empty(2, pin_memory=True)
side = torch.cuda.Stream()
done = torch.cuda.Event()
events = [torch.cuda.Event(), torch.cuda.Event()]
work = torch.empty(1 << 30, dtype=torch.uint8, device=cuda)
steps = 3


def busy():
    for value in range(64):
        work.fill_(value)


def train_step():
    x.mul_(1.0)


def log(value):
    print(f"loss {float(value) >= 0}")


def device_sync_before():
    # advice: device_sync before
    train_step()
    torch.cuda.synchronize()  # waits for every stream of the device
    print("step queued")
    # advice: end


def device_sync_after():
    # advice: device_sync after
    train_step()
    done.record()
    print("step queued")
    if done.query():  # looks, does not wait
        print("step done")
    # advice: end


def stream_sync_before():
    # advice: stream_sync before
    with torch.cuda.stream(side):
        train_step()
    side.synchronize()  # the host waits, only to order two streams
    train_step()
    # advice: end


def stream_sync_after():
    # advice: stream_sync after
    with torch.cuda.stream(side):
        train_step()
    torch.cuda.current_stream().wait_stream(side)  # the GPU waits, the host goes on
    train_step()
    # advice: end


def event_sync_before():
    # advice: event_sync before
    for step in range(steps):
        pinned[0].copy_(loss, non_blocking=True)
        done.record()
        done.synchronize()  # the queue runs empty in every step
        log(pinned[0])
        train_step()
    # advice: end


def event_sync_after():
    # advice: event_sync after
    for step in range(steps):
        pinned[step % 2].copy_(loss, non_blocking=True)
        events[step % 2].record()
        train_step()
        # The step before: read it if it is there, else in a later step.
        if step > 0 and events[(step + 1) % 2].query():
            log(pinned[(step + 1) % 2])
    # advice: end


def item_before():
    # advice: stream_sync.item before
    train_step()
    log(loss.item())  # also float(loss), if loss > 0
    # advice: end


def item_after():
    # advice: stream_sync.item after
    # Once: pinned = torch.empty(2, pin_memory=True); done = torch.cuda.Event()
    train_step()
    pinned[0].copy_(loss, non_blocking=True)
    done.record()
    if done.query():  # else look again in a later step
        log(pinned[0])
    # advice: end


def shape_before():
    # advice: stream_sync.shape before
    return x[x > 0].sum()  # how many there are must be known on the host
    # advice: end


def shape_after():
    # advice: stream_sync.shape after
    return torch.where(x > 0, x, 0.0).sum()  # the shape does not depend on the data
    # advice: end


def async_copy_before():
    # advice: async_copy before
    train_step()
    log(loss.cpu())  # also loss.tolist()
    # advice: end


def async_copy_after():
    # advice: async_copy after
    # Once: pinned = torch.empty(2, pin_memory=True); done = torch.cuda.Event()
    train_step()
    pinned[0].copy_(loss, non_blocking=True)
    done.record()
    if done.query():  # else look again in a later step
        log(pinned[0])
    # advice: end


def upload_before():
    # advice: async_copy.upload before
    return batch.to(cuda, non_blocking=True)  # ordinary memory: waits all the same
    # advice: end


def upload_after():
    # advice: async_copy.upload after
    # Once: DataLoader(…, pin_memory=True), or pinned_batch = batch.pin_memory()
    return pinned_batch.to(cuda, non_blocking=True)
    # advice: end


def free_before():
    # advice: free before
    block = torch.empty(64 << 20, dtype=torch.uint8, device=cuda)
    del block
    torch.cuda.empty_cache()  # frees: waits for every stream
    # advice: end


def free_after():
    # advice: free after
    block = torch.empty(64 << 20, dtype=torch.uint8, device=cuda)
    del block  # stays in PyTorch's cache for the next one
    # advice: end


def poll_before():
    # advice: poll before
    done.record()
    while not done.query():
        pass
    with torch.cuda.stream(side):
        train_step()
    # advice: end


def poll_after():
    # advice: poll after
    done.record()
    side.wait_event(done)
    with torch.cuda.stream(side):
        train_step()
    # advice: end


if __name__ == "__main__":
    pairs.run({"device_sync": (device_sync_before, device_sync_after),
               "stream_sync": (stream_sync_before, stream_sync_after),
               "stream_sync.item": (item_before, item_after),
               "stream_sync.shape": (shape_before, shape_after),
               "event_sync": (event_sync_before, event_sync_after),
               "async_copy": (async_copy_before, async_copy_after),
               "async_copy.upload": (upload_before, upload_after),
               "free": (free_before, free_after),
               "poll": (poll_before, poll_after)}, busy, torch.cuda.synchronize)
