# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Runs one case of a vector through the Python glue and compares what happened with what it
expects.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
import threading
import weakref

import hostwait_cai_glue as glue
from fake_driver import fake_driver
from objects import maker
from producer_steps import library, producer_steps

from hostwait import _cai_abi as abi

LENIENT = {
    "list": "list",
    "mapping": "mapping",
    "no_version": "version",
    "byteorder": "byteorder",
    "bytes_typestr": "bytes",
    "none_pointer": "none_pointer",
    "int_readonly": "bool",
    "stream_zero": "stream_zero",
    "stream_object": "cuda_stream",
    "null_strides": "null_strides",
}
OPTIONS = {
    "accept_newer": "accept_newer",
    "accept_non_native": "accept_byteorder",
    "check_extent": "check_range",
    "check_stream_range": "check_handles",
    "pageable": "accept_pageable",
    "trust_implicit_order": "trust_implicit",
}
MASKS = {
    "none": 0,
    "bool": abi.OPTIONS["accept_mask"],
    "bits": abi.OPTIONS["accept_mask"] | abi.OPTIONS["accept_bit_mask"],
}
INTENT = {
    "read": abi.READ,
    "write": abi.WRITE,
    "read_write": abi.READ | abi.WRITE,
    "copy": abi.READ,
}
FLAG_NAMES = {"unknown_key": "unknown_keys"}
ALIASES = b"NUMBA_CUDA_ARRAY_INTERFACE_SYNC,CUPY_CUDA_ARRAY_INTERFACE_SYNC"
VARIABLES = (
    "HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC",
    "HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION",
    "NUMBA_CUDA_ARRAY_INTERFACE_SYNC",
    "CUPY_CUDA_ARRAY_INTERFACE_SYNC",
)


def stats():
    out = abi.stats()
    assert library.hostwait_cai_stats_get(ctypes.byref(out)) == 0
    return {name: getattr(out, name) for name in abi.STATS}


def make_policy(policy, consumer):
    out = abi.policy()
    library.hostwait_cai_policy_strict(ctypes.byref(out))
    for name in policy.get("lenient", ()):
        out.lenient |= abi.LENIENT[LENIENT[name]]
    if policy.get("ptds") == "legacy_join":
        out.lenient |= abi.LENIENT["thread"]
    out.intent = INTENT[consumer.get("intent", "read_write")]
    for name, option in OPTIONS.items():
        if policy.get(name):
            out.options |= abi.OPTIONS[option]
    out.options |= MASKS[policy.get("mask", "none")]
    if policy.get("misaligned") == "reject":
        out.options |= abi.OPTIONS["reject_unaligned"]
    if policy.get("readonly") == "ignore":
        out.options |= abi.OPTIONS["ignore_readonly"]
    if policy.get("back_edge") == "skip":
        out.options |= abi.OPTIONS["no_back_edge"]
    # Direct access is the default of the vectors; a copy goes through the driver.
    if consumer.get("intent") != "copy":
        out.options |= abi.OPTIONS["check_peer"]
    out.device = policy.get("device", -1)
    out.sync = {None: 0, "on": 1, "off": 2}[policy.get("sync")]
    out.ptds = abi.PTDS[policy.get("ptds", "trust")]
    out.capture = abi.CAPTURE[policy.get("capture", "error")]
    if "legacy" in policy:
        chain = [abi.LEGACY[name] for name in policy["legacy"]]
        out.legacy = (ctypes.c_uint8 * 4)(*chain, *[0] * (4 - len(chain)))
    return bytes(out)


class outcome:
    """What a case did; the attributes are named like the expectations."""

    def __init__(self):
        self.verdict = "accept"
        self.exception = None
        self.segments = []  # actions of each step
        self.values = {}


class case_runner(producer_steps):
    def __init__(self, world, case):
        self.world = world
        self.case = case
        self.consumer = case.get("consumer", {})
        self.policy_spec = case.get("policy", {})
        self.driver = fake_driver(world, case.get("driver", {}))
        self.maker = maker(world, self.driver)
        self.outcome = outcome()
        self.views = []
        self.uses = {}
        self.objects = []
        self.exported = None
        self.alive = []  # weak references of the producers, for "owner"

    # -- set-up ------------------------------------------------------------------------------------

    def environment(self):
        for name in VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(self.case.get("environment", {}))
        aliases = ALIASES if self.policy_spec.get("env_aliases") else None
        assert library.hostwait_cai_env_aliases(aliases) == 0  # reads the environment again

    def run(self):
        global current_driver  # ctypes callbacks must outlive the table
        current_driver = self.driver
        assert library.hostwait_cai_set_driver(ctypes.byref(self.driver.table)) == 0
        self.environment()
        self.policy = make_policy(self.policy_spec, self.consumer)
        before = stats()
        specs = (
            self.case.get("objects") or [self.case["object"]]
            if "object" in self.case or "objects" in self.case
            else []
        )
        self.objects = [self.maker.object(spec) for spec in specs]
        try:
            for step in self.case["do"]:
                self.step(step)
                self.take()
        except Exception as problem:  # the verdict; what it is gets compared
            self.take()
            self.outcome.exception = problem
            self.outcome.verdict = "error" if hasattr(problem, "code") else "raise"
        self.outcome.stats = {name: stats()[name] - before[name] for name in before}
        return self.outcome

    def take(self):
        self.outcome.segments.append(self.driver.take_actions())

    def clean_up(self):
        """Whatever a case left open ends before the next one."""
        self.driver.busy.clear()
        self.driver.capture.clear()
        self.driver.elsewhere = None
        self.uses.clear()
        self.views.clear()
        gc.collect()
        glue.collect()

    # -- steps -------------------------------------------------------------------------------------

    def stream(self):
        stream = self.consumer.get("stream", "C")
        return self.maker.stream(stream) if isinstance(stream, str) else stream

    def capturing(self):
        stream = self.consumer.get("stream", "C")
        return stream in self.driver.capture

    def read(self, from_dict=False):
        """Views of all objects, once per acquire."""
        self.views = []
        for item, spec in zip(self.objects, self.case.get("objects", [self.case.get("object")])):
            safe = self.policy_spec.get("capture_safe_producers", False)
            keywords = {
                "policy": self.policy,
                "prefer": self.policy_spec.get("prefer", "automatic"),
                "other_thread": self.consumer.get("producer_thread") == "other",
                "ignores_stream": self.policy_spec.get("stream_ignoring_producer", False),
                "capture_safe": safe,
                "from_dict": from_dict,
            }
            if "cai" not in spec or keywords["prefer"] == "dlpack":
                if self.consumer.get("stream", "C") is not None and (safe or not self.capturing()):
                    keywords["consumer"] = self.stream()
            self.views.append(glue.view(item, **keywords))
        return self.views

    def step(self, step):
        if isinstance(step, dict):
            name = next(iter(step))
            getattr(self, "do_" + name)(step[name], step)
        else:
            getattr(self, "do_" + step)()

    def do_parse(self):
        self.read()

    def do_resolve(self):
        for view in self.views:
            self.outcome.loc = abi.loc.from_buffer_copy(view.locate(self.policy))

    def do_element_strides(self):
        desc = abi.desc.from_buffer_copy(self.views[0].desc)
        out, error = (ctypes.c_int64 * 64)(), abi.error()
        if library.hostwait_cai_element_strides(ctypes.byref(desc), out, ctypes.byref(error)):
            problem = ValueError()
            problem.code = library.hostwait_cai_code_name(error.code).decode()
            problem.key, problem.index, problem.driver = (
                error.key.decode(),
                error.index,
                error.driver,
            )
            raise problem

    def use(self, how, stream, views):
        return glue.use(how, stream or 0, tuple(views), self.policy)

    def do_acquire(self, ticket="a", spec=None):
        self.driver.phase = "acquire"
        stream = self.maker.stream(spec["stream"]) if spec else self.stream()
        views = self.views if self.views and spec is None and not self.uses else self.read()
        self.uses[ticket] = self.use("stream", stream, views)

    def do_acquire_from_dict(self):
        self.uses["a"] = self.use("stream", self.stream(), self.read(from_dict=True))

    def do_wait_host(self):
        self.uses["a"] = self.use("wait", 0, self.read())
        self.uses["a"].release()

    def do_wait_host_then_enqueue(self):
        self.uses["a"] = self.use("wait", 0, self.read())
        self.uses["a"].attach(self.stream())

    def do_release(self, ticket="a", spec=None):
        self.driver.phase = "release"
        if ticket not in self.uses:
            return
        use = self.uses[ticket]
        if spec and spec.get("thread") == "other":
            problems = []

            def release():
                try:
                    use.release()
                except Exception as problem:  # handed to the main thread
                    problems.append(problem)

            worker = threading.Thread(target=release)
            worker.start()
            worker.join()
            if problems:
                raise problems[0]
        else:
            use.release()
        if "move" in self.case.get("name", ""):
            use.move()

    def do_launch(self):
        self.driver.busy.add(self.consumer.get("stream", "C"))

    def do_raise(self):
        """An exception leaves the scope of the guard: its destructor has to release."""
        self.driver.phase = "release"
        use = self.uses.pop("a")
        try:
            try:
                raise KeyError("between acquire and release")
            finally:
                use.destroy()
        except KeyError:
            pass

    def do_drop_owner(self):
        self.alive = [weakref.ref(item) for item in self.objects]
        self.objects.clear()
        self.views.clear()
        gc.collect()

    def do_complete(self):
        gc.collect()
        self.outcome.values["alive_while_running"] = all(item() is not None for item in self.alive)
        self.driver.busy.clear()

    def do_next_call(self):
        glue.collect()
        gc.collect()
        self.outcome.values["alive_after"] = any(item() is not None for item in self.alive)

    def do_finalize(self):
        """The guard dies while the interpreter goes away."""
        self.do_drop_owner()
        calls = len(self.driver.calls)
        glue.set_finalizing(True)
        self.uses.pop("a").destroy()
        glue.set_finalizing(False)
        gc.collect()
        self.outcome.values["calls_while_finalizing"] = len(self.driver.calls) - calls
        self.outcome.values["leaked"] = all(item() is not None for item in self.alive)

    def do_exit(self):
        """The rest of the life of this process, seen from a child that does the same and exits."""
        script = (
            "import json, sys; sys.path.insert(0, sys.argv[1]); import runner\n"
            "case, world = json.loads(sys.argv[2]), json.loads(sys.argv[3])\n"
            "case['do'] = [s for s in case['do'] if s != 'exit']\n"
            "run = runner.case_runner(world, case); run.run()\n"
            "import os; run.driver.do_event_destroy = lambda *_: os._exit(9)\n"
        )
        child = subprocess.run(
            [
                sys.executable,
                "-c",
                script,
                os.path.dirname(__file__),
                json.dumps(self.case),
                json.dumps(self.world),
            ],
            check=False,
        )
        self.outcome.values["child"] = child.returncode

    def do_read_environment(self):
        out, error = (ctypes.c_uint8 * 8)(8), abi.error()
        library.hostwait_cai_env_get(ctypes.byref(out), ctypes.byref(error))

    def do_setenv(self, pair, _):
        os.environ[pair[0]] = pair[1]

    def do_refresh_environment(self):
        library.hostwait_cai_env_refresh()

    def do_begin_capture(self, stream, _):
        self.driver.capture[stream] = 7

    def do_capture_elsewhere(self, mode, _):
        self.driver.elsewhere = mode

    def do_prepare_events(self):
        assert library.hostwait_cai_prepare(None) == 0

    def do_reset_context(self, name, _):
        self.driver.reset_context(name)
        self.views.clear()
        self.uses.clear()

    def do_fork(self):
        child = os.fork()
        if child == 0:
            self.driver.calls.clear()
            try:
                self.use("stream", self.stream(), self.read())
                code = 1
            except Exception as problem:  # reported by the status
                good = getattr(problem, "code", "") == "forked" and not self.driver.calls
                code = 0 if good else 2
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.outcome.values["child"] = status


current_driver = None
