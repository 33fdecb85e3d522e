# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-21, missed_detection, PyTorch: https://github.com/pytorch/pytorch/pull/84427
# PyTorch's own mode, set to raise at each synchronization, lets a wait for an event pass.
# hostwait reports it. (Waits inside the allocator: PT-09.) A wait of the stream is none of the
# host.
#
# expect case: {"kind": "event_sync", "call": "cuEventSynchronize", "verdict": "stream", "calls":
#               1, "waited": 1, "above_ms": 5, "at": "here"}
# expect control: nothing
from torch_case import busy, settle, torch

event = torch.cuda.Event()


def case():
    torch.cuda.set_sync_debug_mode("error")
    try:
        busy()
        event.record()
        event.synchronize()  # here
    finally:
        torch.cuda.set_sync_debug_mode("default")


def control():
    busy()
    event.record()
    torch.cuda.current_stream().wait_event(event)
