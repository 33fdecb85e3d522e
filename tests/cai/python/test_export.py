# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Exports: the dict, DLPack capsules, and who may drop them where."""

import ctypes
import time
import weakref

import hostwait_cai_glue as glue
import pytest
import runner
from objects import dl_managed
from test_vectors import WORLD

from hostwait import _cai_abi as abi

P = WORLD["memory"]["P"]["address"]
S = WORLD["streams"]["S"]["handle"]


def capsule_deleter(capsule):
    """(function, argument) of a versioned capsule's deleter, taken over from the capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = get(capsule, b"dltensor_versioned")
    rename(capsule, b"used_dltensor_versioned")
    return dl_managed.from_address(address).deleter, address


class owner_class:
    pass


EXPORT = ("<f4", P, (4,), None, False, (), 0, 5, 0, None)


def test_deleter_on_a_thread_without_the_gil_never_takes_it(driver):
    """Called as a CUDA host callback would: with the GIL held by another thread all the time."""
    owner = owner_class()
    alive = weakref.ref(owner)
    capsule = glue.to_dlpack(EXPORT, owner, {"max_version": (1, 0)}, None)
    deleter, address = capsule_deleter(capsule)
    del owner, capsule
    pthread = ctypes.PyDLL(None)  # PyDLL: this thread keeps the GIL in the calls below
    thread = ctypes.c_ulong()
    assert (
        pthread.pthread_create(
            ctypes.byref(thread),
            None,
            ctypes.cast(deleter, ctypes.c_void_p),
            ctypes.c_void_p(address),
        )
        == 0
    )
    assert pthread.pthread_join(thread, None) == 0  # a deleter that wants the GIL hangs here
    deadline = time.monotonic() + 10
    while alive() is not None and time.monotonic() < deadline:
        glue.collect()
    assert alive() is None


def test_unused_capsule_drops_its_owner(driver):
    owner = owner_class()
    alive = weakref.ref(owner)
    capsule = glue.to_dlpack(EXPORT, owner, {}, None)
    del owner
    assert alive() is not None
    del capsule
    assert alive() is None


def test_view_of_our_own_export_is_equal(driver):
    exported = glue.to_dict(("<c8", P, (3, 5), (5, 1), True, (S,), S, 4, 0, None))
    assert exported == {
        "shape": (3, 5),
        "typestr": "<c8",
        "data": (P, True),
        "version": 3,
        "strides": None,
        "stream": S,
    }

    class exporter:
        __cuda_array_interface__ = exported

    policy = abi.policy()
    runner.library.hostwait_cai_policy_strict(ctypes.byref(policy))
    policy.intent = abi.READ
    desc = abi.desc.from_buffer_copy(glue.view(exporter(), policy=bytes(policy)).desc)
    assert (desc.kind, desc.itemsize, desc.count, desc.readonly) == (b"c", 8, 15, 1)


@pytest.mark.parametrize(
    "keywords, kind",
    [
        ({"stream": 0}, ValueError),
        ({"stream": -2}, ValueError),
        ({"stream": "1"}, (TypeError, ValueError)),
        ({"copy": True}, BufferError),
        ({"dl_device": (2, 7)}, BufferError),
        ({"dl_device": (1, 0)}, BufferError),
        ({"unknown": 1}, TypeError),
        ({"max_version": 1}, TypeError),
    ],
)
def test_dlpack_requests_that_cannot_be_met(driver, keywords, kind):
    with pytest.raises(kind):
        glue.to_dlpack(EXPORT, owner_class(), keywords, None)
    assert driver.take_actions() == []


def test_read_only_needs_a_versioned_capsule(driver):
    spec = (*EXPORT[:4], True, *EXPORT[5:])
    with pytest.raises(BufferError, match="max_version"):
        glue.to_dlpack(spec, owner_class(), {}, None)
    assert glue.to_dlpack(spec, owner_class(), {"max_version": (1, 0)}, None)
