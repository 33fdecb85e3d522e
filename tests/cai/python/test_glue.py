# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the vectors do not say: hostile objects, references, the GIL, sizes of structs."""

import ctypes
import gc
import sys
import threading
import weakref

import hostwait_cai_glue as glue
import pytest
import runner
from objects import maker, other_mapping
from test_vectors import WORLD

from hostwait import _cai_abi as abi

P = WORLD["memory"]["P"]["address"]
S, C = WORLD["streams"]["S"]["handle"], WORLD["streams"]["C"]["handle"]


def descriptor(**changes):
    return {"shape": (4,), "typestr": "<f4", "data": (P, False), "version": 3, **changes}


def exporting(content):
    """An object whose getter returns `content`, or what it returns when it is callable."""
    return type(
        "producer",
        (),
        {
            "__cuda_array_interface__": property(
                lambda self: content(self) if callable(content) else content
            )
        },
    )()


def read(item, **keywords):
    return glue.view(item, **keywords)


def test_struct_sizes_agree_with_ctypes():
    sizes = glue.sizes()
    for name in ("error", "policy", "desc", "loc", "ready", "ticket", "stats", "driver"):
        assert ctypes.sizeof(getattr(abi, name)) == sizes[name], name


def test_errors_carry_code_key_and_index():
    with pytest.raises(ValueError) as caught:
        read(exporting(descriptor(shape=(2, -1))))
    assert (caught.value.code, caught.value.key, caught.value.index) == (
        "shape_negative",
        "shape",
        1,
    )
    assert str(caught.value).startswith("shape_negative: shape: ")


@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_getter_exceptions_pass_unchanged(kind):
    def fail(_):
        raise kind("mine")

    with pytest.raises(kind, match="mine"):
        read(exporting(fail))


@pytest.mark.parametrize("key", ["shape", "data", "version", "stream"])
def test_index_exceptions_pass_unchanged(key):
    class bad:
        def __index__(self):
            raise ZeroDivisionError("index")

    value = {"shape": (bad(),), "data": (bad(), False)}.get(key, bad())
    with pytest.raises(ZeroDivisionError, match="index"):
        read(exporting(descriptor(**{key: value})))


def test_index_that_returns_no_int():
    class bad:
        def __index__(self):
            return "4"

    with pytest.raises(TypeError) as caught:
        read(exporting(descriptor(shape=(bad(),))))
    assert caught.value.code == "type"


def test_descriptor_that_is_emptied_while_it_is_read():
    content = descriptor(stream=S)

    class trap:
        def __index__(self):
            content.clear()
            gc.collect()
            return 4

    content["shape"] = (trap(), trap())
    content["strides"] = (16, 4)
    view = read(exporting(content))
    desc = abi.desc.from_buffer_copy(view.desc)
    assert (list(desc.shape[:2]), desc.stream, content) == ([4, 4], S, {})


def test_list_that_shrinks_while_it_is_read():
    sizes = []

    class trap:
        def __index__(self):
            sizes.clear()
            gc.collect()
            return 2

    sizes += [trap(), trap(), trap()]
    desc = abi.desc.from_buffer_copy(read(exporting(descriptor(shape=sizes))).desc)
    assert list(desc.shape[: desc.ndim]) == [2, 2, 2]


def test_mapping_whose_items_raise():

    class bad(other_mapping):
        def __getitem__(self, key):
            raise RuntimeError("no")

    policy = abi.policy()
    runner.library.hostwait_cai_policy_init(ctypes.byref(policy))
    policy.lenient |= abi.LENIENT["mapping"]
    with pytest.raises(RuntimeError, match="no"):
        read(exporting(bad(descriptor())), policy=bytes(policy))


def test_mask_getter_that_raises():
    class masked:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("mask")

    policy = abi.policy()
    runner.library.hostwait_cai_policy_init(ctypes.byref(policy))
    policy.options |= abi.OPTIONS["accept_mask"]
    with pytest.raises(RuntimeError, match="mask"):
        read(exporting(descriptor(mask=masked())), policy=bytes(policy))


@pytest.mark.parametrize(
    "descr",
    [
        [("a",)],
        [("a", 4)],
        "x",
        [("a", "<f4", 3)],
        [("a", "<f4", (2**70,))],
        [
            (
                "a",
                [
                    (
                        "b",
                        [
                            (
                                "c",
                                [
                                    (
                                        "d",
                                        [("e", [("f", [("g", [("h", [("i", [("j", "<f4")])])])])])],
                                    )
                                ],
                            )
                        ],
                    )
                ],
            )
        ],
        [("a", "|u1")] * 5000,
    ],
)
def test_hostile_descr(descr):
    with pytest.raises((TypeError, ValueError)) as caught:
        read(exporting(descriptor(typestr="|V4", descr=descr)))
    assert caught.value.key == "descr"


def test_nested_descr_is_summed():
    descr = [("a", "<f4", (2, 3)), ("b", [("c", "<i2"), ("d", "|u1", (2,))], (2,))]
    desc = abi.desc.from_buffer_copy(read(exporting(descriptor(typestr="|V32", descr=descr))).desc)
    assert desc.itemsize == 32


@pytest.mark.parametrize("typestr", ["\ud800f4", "<f4" * 100000, "\0"])
def test_hostile_typestr(typestr):
    with pytest.raises(ValueError) as caught:
        read(exporting(descriptor(typestr=typestr)))
    assert caught.value.key == "typestr"


def test_no_reference_leaks_on_success_and_on_failure(driver):
    item = exporting(descriptor(stream=S))
    wrong = exporting(descriptor(stream=0))

    def once():
        use = glue.use("stream", C, (read(item),), None)
        use.release()
        with pytest.raises(ValueError):
            read(wrong)

    once()
    glue.collect()
    before = sys.getrefcount(item), sys.getrefcount(wrong)
    for _ in range(50):
        once()
    del _
    glue.collect()
    gc.collect()
    assert (sys.getrefcount(item), sys.getrefcount(wrong)) == before


def test_owner_outlives_release_until_the_stream_has_passed(driver):
    item = exporting(descriptor(stream=S))
    alive = weakref.ref(item)
    use = glue.use("stream", C, (read(item),), None)
    del item
    driver.busy.add("C")
    use.release()
    glue.collect()
    gc.collect()
    assert alive() is not None
    driver.busy.clear()
    assert glue.collect() == 0
    gc.collect()
    assert alive() is None


def test_without_keep_alive_the_owner_goes_at_release(driver):
    item = exporting(descriptor(stream=S))
    alive = weakref.ref(item)
    use = glue.use("stream", C, (read(item),), None, keep_alive=False)
    del item
    driver.busy.add("C")
    use.release()
    del use
    gc.collect()
    assert alive() is None


def test_guard_that_is_moved_and_destroyed_releases_once(driver):
    use = glue.use("stream", C, (read(exporting(descriptor(stream=S))),), None)
    use.move()
    driver.phase = "release"
    use.destroy()
    assert driver.take_actions() == ["WAIT(S->C)", "BACK(C->S)"]


def test_failed_back_edge_in_a_destructor_is_reported(driver, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    use = glue.use("stream", C, (read(exporting(descriptor(stream=S))),), None)
    driver.fail["stream_wait_event"] = 999
    use.destroy()
    driver.fail.clear()
    assert [item.exc_value.code for item in seen] == ["driver"]
    assert seen[0].exc_value.driver == 999


def test_host_wait_gives_the_gil_away(driver):
    """The wait is a C function that sleeps, so that only the glue can have given the GIL away."""
    sleep = ctypes.CDLL(None).usleep
    driver.next_event = 300000 - 16  # the handle is usleep's argument: 0.3 s
    kind = abi.DRIVER_TYPES["event_synchronize"]
    driver.table.event_synchronize = kind(ctypes.cast(sleep, ctypes.c_void_p).value)
    runner.library.hostwait_cai_set_driver(ctypes.byref(driver.table))
    turns, stop = [0], threading.Event()

    def work():
        while not stop.wait(0.001):
            turns[0] += 1

    helper = threading.Thread(target=work)
    helper.start()
    view = read(exporting(descriptor(stream=S)))
    before = turns[0]
    use = glue.use("wait", 0, (view,), None)
    during = turns[0] - before
    stop.set()
    helper.join()
    use.release()
    assert 300000 in driver.events
    assert during >= 5


def test_poll_tells_when_the_data_are_ready(driver):
    driver.busy.add("S")
    use = glue.use("poll", 0, (read(exporting(descriptor(stream=S))),), None)
    assert [use.poll(), use.poll()] == [False, False]
    driver.busy.clear()
    assert use.poll() is True
    assert not [call for call in driver.calls if "synchronize" in call]
    use.release()


def test_hook_exception_passes_and_nothing_is_ordered(driver):
    class producer:
        __cuda_array_interface__ = descriptor(version=2)

        def __dlpack__(self, stream=None, max_version=None):
            raise ZeroDivisionError("in __dlpack__")

    with pytest.raises(ZeroDivisionError, match="in __dlpack__"):
        glue.use("stream", C, (read(producer()),), None)
    assert driver.take_actions() == []


@pytest.mark.parametrize("module, stream", [("other", -1), ("jaxlib._jax", 1)])
def test_producers_that_take_minus_one_for_a_handle(driver, module, stream):
    made = maker(WORLD, driver).object({"dlpack": {}})
    calls = []
    original = type(made).__dlpack__
    kind = type(
        "array",
        (),
        {
            "__module__": module,
            "__dlpack__": lambda self, **keywords: (
                calls.append(keywords["stream"]),
                original(made, **keywords),
            )[1],
        },
    )
    read(kind())
    assert calls == [stream]


def test_many_arrays_one_wait_per_stream(driver):
    views = tuple(
        read(exporting(descriptor(stream=S if n % 2 else WORLD["streams"]["S2"]["handle"])))
        for n in range(40)
    )
    use = glue.use("stream", C, views, None)
    assert sorted(driver.take_actions()) == ["WAIT(S->C)", "WAIT(S2->C)"]
    use.release()


def test_import_brings_no_array_library():
    import subprocess

    out = subprocess.run(
        [
            sys.executable,
            "-c",
            "import hostwait_cai_glue, sys; print([m for m in "
            "('numpy', 'cupy', 'torch') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "[]"
