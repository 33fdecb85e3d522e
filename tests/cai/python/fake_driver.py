# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""A recording driver for libhostwait_cai: answers what a vector's world says, keeps every call, and
breaks a capture where the real driver would."""

import ctypes
import threading

from hostwait import _cai_abi as abi

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY = 1, 201, 400, 600
CAPTURE_UNSUPPORTED, CAPTURE_ISOLATION, CAPTURE_IMPLICIT = 900, 905, 906
WAIT_EXTERNAL = 1
RELAXED = 2

ORDERING = {"event_record", "stream_wait_event", "event_synchronize", "ctx_synchronize"}


class fake_driver:
    """`world` is world.json, `changes` a case's `driver`. Every stream handle is a name outside."""

    def __init__(self, world, changes=()):
        changes = dict(changes)
        self.world = world
        self.contexts = {name: spec["handle"] for name, spec in world["contexts"].items()}
        self.context_names = {handle: name for name, handle in self.contexts.items()}
        self.context_ids = {handle: 100 + n for n, handle in enumerate(self.context_names)}
        self.streams = {spec["handle"]: (name, spec) for name, spec in world["streams"].items()}
        self.current = changes.get("current_context", world["current_context"])
        self.peer = changes.get("peer_access", world["peer_access"])
        self.pageable = changes.get("pageable_memory_access", world["pageable_memory_access"])
        self.capture = dict(changes.get("capture", {}))  # stream name -> id, or "invalidated"
        self.capture_broken = False
        self.elsewhere = None  # mode of a capture on another thread
        self.events = {
            spec["handle"]: {
                "context": self.contexts[spec["context"]],
                "name": name,
                "on": None,
                "capture": None,
            }
            for name, spec in world["events"].items()
        }
        self.next_event = 0x10000
        self.busy = set()  # stream names whose events are not ready
        self.calls = []
        self.actions = []
        self.failures = []  # (call, code) of everything that a correct caller would not get
        self.destroyed = []
        self.event_contexts = []
        self.unsafe = 0
        self.threads = threading.local()
        self.fail = {}  # call name -> code
        self.phase = "acquire"
        self._callbacks = {name: kind(self._wrap(name)) for name, kind in abi.DRIVER_TYPES.items()}
        self.table = abi.driver(**self._callbacks)

    # -- plumbing ----------------------------------------------------------------------------------

    def _wrap(self, name):
        function = getattr(self, "do_" + name)

        def call(*arguments):
            self.calls.append(name)
            code = self.fail.get(name, 0) or function(*arguments)
            if code not in (0, NOT_READY, CAPTURE_IMPLICIT):
                self.failures.append((name, code))
            return code

        return call

    def stack(self):
        if not hasattr(self.threads, "stack"):
            first = self.contexts[self.current] if self.current else None
            self.threads.stack = [first] if first else []
            self.threads.mode = 0
        return self.threads.stack

    def top(self):
        return self.stack()[-1] if self.stack() else None

    def context_of(self, stream):
        """Context handle of a stream as called now; None for an unknown handle."""
        if stream in (1, 2):
            return self.top()
        return self.contexts[self.streams[stream][1]["context"]] if stream in self.streams else None

    def name_of(self, stream):
        if stream in (1, 2):
            context = self.context_names.get(self.top())
            return str(stream) if context == "ctx0" else f"{stream}@{context}"
        return self.streams[stream][0]

    def capture_of(self, stream):
        return self.capture.get(self.name_of(stream))

    def legacy_is_captured(self, stream):
        return stream == 1 and any(
            name not in ("1", "2") and self.world["streams"][name]["blocking"]
            for name in self.capture
        )

    def relaxed(self):
        self.stack()
        return self.threads.mode == RELAXED

    def risky(self):
        """A call that a capture in global mode, here or elsewhere, does not survive."""
        if (self.capture or self.elsewhere) and not self.relaxed():
            self.unsafe += 1
            self.capture_broken = True
            return CAPTURE_UNSUPPORTED
        return 0

    # -- contexts ----------------------------------------------------------------------------------

    def do_ctx_get_current(self, out):
        out[0] = self.top()
        return 0

    def do_ctx_push_current(self, context):
        self.stack().append(context)
        return 0

    def do_ctx_pop_current(self, out):
        if not self.stack():
            return INVALID_CONTEXT
        out[0] = self.stack().pop()
        return 0

    def do_ctx_get_device(self, out):
        if self.top() is None:
            return INVALID_CONTEXT
        out[0] = self.world["contexts"][self.context_names[self.top()]]["device"]
        return 0

    def do_ctx_get_id(self, context, out):
        out[0] = self.context_ids[context or self.top()]
        return 0

    def do_ctx_synchronize(self):
        if self.top() is None:
            return INVALID_CONTEXT
        if self.capture:
            self.capture_broken = True
            return CAPTURE_UNSUPPORTED
        self.actions.append(f"HOST({self.context_names[self.top()]})")
        return 0

    def do_primary_ctx_retain(self, out, device):
        out[0] = self.contexts[f"ctx{device}"]
        return 0

    def do_thread_exchange_capture_mode(self, mode):
        self.stack()
        mode[0], self.threads.mode = self.threads.mode, mode[0]
        return 0

    # -- streams -----------------------------------------------------------------------------------

    def do_stream_get_ctx(self, stream, out):
        context = self.context_of(stream)
        if context is None:
            return INVALID_HANDLE
        if self.legacy_is_captured(stream):
            return CAPTURE_IMPLICIT
        out[0] = context
        return 0

    def do_stream_get_flags(self, stream, out):
        if self.context_of(stream) is None:
            return INVALID_HANDLE
        out[0] = 0 if stream in (1, 2) or self.streams[stream][1]["blocking"] else 1
        return 0

    def do_stream_query(self, stream):
        if self.context_of(stream) is None:
            return INVALID_HANDLE
        if self.legacy_is_captured(stream):
            return CAPTURE_IMPLICIT
        if self.capture_of(stream) is not None:
            self.capture_broken = True
            return CAPTURE_UNSUPPORTED
        return self.risky() or (NOT_READY if self.name_of(stream) in self.busy else 0)

    def do_stream_is_capturing(self, stream, status):
        if self.context_of(stream) is None:
            return INVALID_HANDLE
        if self.legacy_is_captured(stream):
            return CAPTURE_IMPLICIT
        capture = self.capture_of(stream)
        status[0] = 0 if capture is None else 2 if capture == "invalidated" else 1
        return 0

    def do_stream_get_capture_info(self, stream, status, number, graph, nodes, count):
        code = self.do_stream_is_capturing(stream, status)
        if code == 0 and number and status[0] == 1:
            number[0] = self.capture_of(stream)
        return code

    # -- events ------------------------------------------------------------------------------------

    def do_event_create(self, out, flags):
        if self.top() is None:
            return INVALID_CONTEXT
        code = self.risky()
        if code:
            return code
        self.next_event += 16
        self.events[self.next_event] = {
            "context": self.top(),
            "name": hex(self.next_event),
            "on": None,
            "capture": None,
        }
        out[0] = self.next_event
        return 0

    def do_event_destroy(self, event):
        self.destroyed.append(self.events.pop(event)["name"])
        return 0

    def do_event_record(self, event, stream):
        context = self.context_of(stream)
        if event not in self.events or context is None:
            return INVALID_HANDLE
        if self.legacy_is_captured(stream):
            return CAPTURE_IMPLICIT
        if self.events[event]["context"] != context:
            return INVALID_HANDLE
        self.events[event].update(on=self.name_of(stream), capture=self.capture_of(stream))
        return 0

    def do_stream_wait_event(self, stream, event, flags):
        if event not in self.events or self.context_of(stream) is None:
            return INVALID_HANDLE
        if self.legacy_is_captured(stream):
            return CAPTURE_IMPLICIT
        entry, into = self.events[event], self.name_of(stream)
        capture = self.capture_of(stream)
        external = bool(flags & WAIT_EXTERNAL)
        if entry["capture"] != capture and not external:
            self.capture_broken = True
            return CAPTURE_ISOLATION
        if entry["on"] is None:
            self.actions.append(f"WAIT_EVENT({entry['name']}->{into})")
        else:
            kind = "EXTERNAL" if external else "BACK" if self.phase == "release" else "WAIT"
            self.actions.append(f"{kind}({entry['on']}->{into})")
            self.event_contexts.append(self.context_names[entry["context"]])
        entry["last_capture"] = capture
        return 0

    def do_event_query(self, event):
        if event not in self.events:
            return INVALID_HANDLE
        return self.risky() or (NOT_READY if self.events[event]["on"] in self.busy else 0)

    def do_event_synchronize(self, event):
        if event not in self.events:
            return INVALID_HANDLE
        code = self.risky()
        if code:
            return code
        on = self.events[event]["on"]
        self.actions.append(f"HOST({on})" if on else f"HOST_EVENT({self.events[event]['name']})")
        return 0

    # -- memory and devices ------------------------------------------------------------------------

    def memory_at(self, address):
        for spec in self.world["memory"].values():
            size = spec.get("reservation", spec)["bytes"]
            if spec["address"] <= address < spec["address"] + size:
                return spec
        return None

    def do_pointer_get_attributes(self, count, attributes, data, address):
        spec = self.memory_at(address) or {"kind": "host"}
        kind = spec["kind"]
        known = kind != "host"
        device_pointer = address if known else 0
        if "device_address" in spec:
            other = self.world["memory"][spec["device_address"]]["address"]
            device_pointer = other + address - spec["address"]
        extent = spec.get("reservation", spec)
        answers = {
            1: (ctypes.c_uint64, self.contexts[f"ctx{spec['device']}"] if kind == "device" else 0),
            2: (ctypes.c_uint, {"device": 2, "managed": 2, "pinned": 1}.get(kind, 0)),
            3: (ctypes.c_uint64, device_pointer),
            8: (ctypes.c_uint, int(kind == "managed")),
            9: (ctypes.c_int, spec.get("device", -2)),
            11: (ctypes.c_uint64, extent["address"] if known else 0),
            12: (ctypes.c_uint64, extent["bytes"] if known else 0),
        }
        for i in range(count):
            if attributes[i] in answers:
                kind_of, value = answers[attributes[i]]
                ctypes.cast(data[i], ctypes.POINTER(kind_of))[0] = value
        return 0

    def do_device_can_access_peer(self, out, device, peer):
        out[0] = int(device == peer or self.peer)
        return 0

    def do_device_get_attribute(self, out, attribute, device):
        out[0] = int(self.pageable) if attribute == 88 else 0
        return 0

    def do_get_error_name(self, code, out):
        out[0] = b"CUDA_ERROR_FAKE"
        return 0

    # -- for the steps -----------------------------------------------------------------------------

    def reset_context(self, name):
        handle = self.contexts[name]
        self.context_ids[handle] += 1000
        self.events = {key: e for key, e in self.events.items() if e["context"] != handle}

    def take_actions(self):
        taken, self.actions = self.actions, []
        return taken
