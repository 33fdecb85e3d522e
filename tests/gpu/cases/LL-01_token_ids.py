# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# LL-01, unexpected_sync, vLLM: https://github.com/vllm-project/vllm/pull/22760
# Turning sampled ids into a list waits for the whole stream. The better form, a pinned copy and
# a wait for an event, is one finding of another kind, and is silent where it is declared.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "at": "list"}
# expect case: {"kind": "event_sync", "call": "cuEventSynchronize", "verdict": "stream", "calls":
#               1, "waited": 1, "at": "event"}
# expect control: nothing
import hostwait
from torch_case import busy, cuda, settle, torch

ids = torch.arange(64, device=cuda)
page_locked = torch.empty(64, dtype=ids.dtype, pin_memory=True)
event = torch.cuda.Event()


def pinned_and_event():
    page_locked.copy_(ids, non_blocking=True)
    event.record()
    event.synchronize()  # here event
    return page_locked.tolist()


def case():
    busy()
    a = ids.tolist()  # here list
    busy()
    return a, pinned_and_event()


def control():
    busy()
    with hostwait.allow("sampled ids are needed"):
        return pinned_and_event()
