# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The policy of hostwait from Python: what happens when a call of this thread would wait for the
GPU.

    with hostwait.guard("error"):            # refuse waits of this thread
        step()
        with hostwait.allow("loss is logged"):
            print(loss.item())

Everything works, and does nothing, in a process that runs without the preloaded library; present()
tells. Frames belong to the calling thread; process=True makes them the process's, below every
thread's own. Generators and coroutines that change threads between enter and exit leave a frame
behind, which is counted (mismatched_pops) and harmless.
"""

import ctypes
import os

__all__ = [
    "ALL",
    "EXPLICIT",
    "KINDS",
    "SYNC",
    "allow",
    "error",
    "guard",
    "last_refused",
    "present",
    "stats",
    "steady",
    "step",
]

KINDS = {
    name: 1 << bit
    for bit, name in enumerate(
        (
            "device_sync",
            "stream_sync",
            "event_sync",
            "copy",
            "async_copy",
            "memset",
            "free",
            "host_free",
            "alloc",
            "module",
            "context",
            "queue_full",
            "poll",
            "unlisted",
        )
    )
}
EXPLICIT, SYNC, ALL = 0x7, 0x3F, 0x7FF
_GROUPS = {"explicit": EXPLICIT, "sync": SYNC, "all": ALL}
_ACTIONS = {
    name: number for number, name in enumerate(("allow", "log", "fail", "error", "abort", "trap"))
}
_ERRORS = {
    -1: "queue_full, poll and unlisted are armed at start only (arm=...)",
    -2: "unknown action or kind",
    -3: "frames are nested too deep",
}


class error(RuntimeError):
    """The preloaded library refused to change the policy; `code` is its (negative) answer."""

    def __init__(self, code):
        super().__init__(_ERRORS.get(code, f"error {code}"))
        self.code = code


class finding(ctypes.Structure):
    """hostwait_finding of hostwait.h; `call` and `label` are bytes."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("action", ctypes.c_int),
        ("verdict", ctypes.c_int32),
        ("call", ctypes.c_char_p),
        ("label", ctypes.c_char_p),
        ("id", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("ns", ctypes.c_uint64),
        ("thread_id", ctypes.c_uint64),
    ]


class _stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64)
        for name in (
            "calls",
            "waited",
            "latent",
            "refused",
            "held",
            "violations",
            "allowed",
            "mismatched_pops",
            "waited_ns",
        )
    ]


# PYFUNCTYPE keeps the GIL: these functions never block, and giving it away costs more than they do.
_PUSH = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_int
)
_POP = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)
_VOID = ctypes.PYFUNCTYPE(None)


class _table(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("push", _PUSH),
        ("pop", _POP),
        ("set_callback", ctypes.c_void_p),
        ("step", _VOID),
        ("steady", _VOID),
        ("stats_get", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_stats))),
        ("last_refused", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(finding))),
    ]


def _find():
    try:
        table = ctypes.POINTER(_table).in_dll(ctypes.CDLL(None), "hostwait_api")
    except (ValueError, OSError):
        return None
    # An older library with a shorter table is treated as absent rather than read past its end.
    return table.contents if table and table.contents.size >= ctypes.sizeof(_table) else None


def _direct(function):
    """The same function without declared arguments: ints and bytes then pass unconverted, which
    halves the cost of a call."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    return ctypes.PYFUNCTYPE(ctypes.c_int)(address)


_api = _find()
_push = _direct(_api.push) if _api is not None else None
_pop = _direct(_api.pop) if _api is not None else None


def present():
    """True where the preloaded library is in this process."""
    return _api is not None


def kinds_of(kinds):
    """The bits of "sync", "copy,explicit", an iterable of names, or an int."""
    if isinstance(kinds, int):
        return kinds
    bits = 0
    for name in kinds.split(",") if isinstance(kinds, str) else kinds:
        name = name.strip()
        found = _GROUPS.get(name) or KINDS.get(name)
        if found is None:
            raise ValueError(f"unknown kind {name!r}: one of {', '.join([*_GROUPS, *KINDS])}")
        bits |= found
    return bits


class guard:
    """with guard(action, kinds): what happens to waits of these kinds on this thread.

    action: "allow", "log", "fail", "error", "abort" or "trap"; kinds: "sync" (default), "explicit",
    "all", names joined by commas, or bits. May be entered again and nested.
    """

    __slots__ = ("_action", "_kinds", "_label", "_process", "_tokens")

    def __init__(self, action, kinds=SYNC, label=None, process=False):
        if action not in _ACTIONS:
            raise ValueError(f"unknown action {action!r}: one of {', '.join(_ACTIONS)}")
        self._action = _ACTIONS[action]
        self._kinds = kinds if type(kinds) is int else kinds_of(kinds)
        self._label = label.encode() if label else None
        self._process = 1 if process else 0
        self._tokens = []

    def __enter__(self):
        if _push is not None:
            token = _push(self._action, self._kinds, self._label, self._process)
            if token < 0:
                raise error(token)
            self._tokens.append(token)
        return self

    def __exit__(self, *exception):
        if _pop is not None:
            _pop(self._tokens.pop(), self._process)
        return False


def allow(reason, kinds=ALL, process=False):
    """with allow("why"): waits of these kinds are declared; the reason is the findings' label."""
    return guard("allow", kinds, reason, process)


def step():
    """Marks the end of a step."""
    if _api is not None:
        _api.step()


def steady():
    """Marks the end of the warm-up."""
    if _api is not None:
        _api.steady()


def stats():
    """Counters of this process as a dict; None where the preloaded library is absent."""
    out = _stats(size=ctypes.sizeof(_stats))
    if _api is None or _api.stats_get(ctypes.byref(out)) != 0:
        return None
    return {name: getattr(out, name) for name, _ in _stats._fields_[2:]}


def last_refused():
    """This thread's last refused call as a dict, or None."""
    out = finding(size=ctypes.sizeof(finding))
    if _api is None or _api.last_refused(ctypes.byref(out)) != 0:
        return None
    kind = next((name for name, bit in KINDS.items() if bit == out.kind), str(out.kind))
    return {
        "kind": kind,
        "call": os.fsdecode(out.call or b""),
        "label": os.fsdecode(out.label or b""),
        "id": out.id,
        "bytes": out.bytes,
    }
