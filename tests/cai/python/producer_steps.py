# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The steps of a case in which we are the producer: export, __dlpack__, the mapping of stream=."""

import ctypes

import hostwait_cai_glue as glue

from hostwait import _cai_abi as abi

library = abi.library()
library.hostwait_cai_typestr.restype = ctypes.c_size_t

EXPORT_NONE, EXPORT_OPT_OUT, EXPORT_KEPT = 1, 2, 4
DEVICE_TYPES = {"cpu": 1, "cuda": 2, "rocm": 10}
DL_ACTIONS = ("no_sync", "wait", "host")


class producer_steps:
    """Mixed into case_runner."""

    def export_spec(self, request):
        shape = tuple(request.get("shape", (4,)))
        strides = request.get("element_strides")
        strides = None if strides is None else tuple(map(self.maker.value, strides))
        pending = tuple(map(self.maker.stream, request.get("pending", ())))
        chosen = request.get("stream")
        flags = 0 if request.get("stream_owner", "promise") in ("none", "object") else EXPORT_KEPT
        if chosen is None:
            flags |= EXPORT_NONE
        if self.policy_spec.get("sync") == "off":
            flags |= EXPORT_OPT_OUT
        owner = object() if request.get("stream_owner") == "object" else None
        chosen = self.maker.stream(chosen) if isinstance(chosen, str) else (chosen or 0)
        if request.get("version") == 2:
            flags |= EXPORT_OPT_OUT
        memory = self.world["memory"][request.get("data", "P")]["address"]
        return (
            "<f4",
            memory if 0 not in shape else 0,
            shape,
            strides,
            request.get("readonly", False),
            pending,
            chosen,
            flags,
            request.get("version", 0),
            owner,
        )

    def do_export(self):
        self.exported = glue.to_dict(self.export_spec(self.case["export"]))
        self.outcome.dict = self.exported

    def do_parse_export(self):
        exported, wanted = self.exported, self.export_spec(self.case["export"])

        class exporter:
            __cuda_array_interface__ = exported

        desc = abi.desc.from_buffer_copy(glue.view(exporter(), policy=self.policy).desc)
        self.outcome.values["round_trip"] = (
            desc.ptr == wanted[1]
            and tuple(desc.shape[: desc.ndim]) == wanted[2]
            and tuple(desc.strides[: desc.ndim]) == tuple(4 * step for step in wanted[3])
            and bool(desc.readonly) == wanted[4]
            and desc.stream == wanted[6]
            and (desc.kind, desc.itemsize, desc.version) == (b"f", 4, 3)
        )

    def do_dlpack_stream(self):
        request = self.case["dlpack_stream"]
        number = (ctypes.c_uint64 * 2)()
        value = request["value"]
        kind = 1 if value is None else 2
        number[0] = abs(value or 0)
        number[1] = kind | (int((value or 0) < 0) << 8)
        action, stream, error = ctypes.c_int(), ctypes.c_uint64(), abi.error()
        if library.hostwait_cai_dlpack_stream(
            number,
            DEVICE_TYPES[request["device_type"]],
            0,
            ctypes.byref(action),
            ctypes.byref(stream),
            ctypes.byref(error),
        ):
            problem = ValueError()
            problem.code = library.hostwait_cai_code_name(error.code).decode()
            problem.key, problem.index = error.key.decode(), error.index
            raise problem
        name = DL_ACTIONS[action.value]
        rocm = request["device_type"] == "rocm" and stream.value == 0
        self.outcome.values["stream"] = (
            name if name != "wait" else "default" if rocm else self.maker.stream_name(stream.value)
        )

    def do_dlpack_export(self):
        request = self.case["dlpack_export"]
        keywords = {"stream": self.maker.value(request["stream"]), "max_version": (1, 0)}
        if "dl_device" in request:
            keywords["dl_device"] = (DEVICE_TYPES[request["dl_device"][0]], request["dl_device"][1])

        def copy(address):
            ctypes.memset(address, 0x2A, 16)
            self.driver.actions.append("COPY")

        glue.to_dlpack(self.export_spec({**request, "stream": None}), self, keywords, copy)
        if request["stream"] is not None:
            self.outcome.values["stream"] = self.maker.stream_name(keywords["stream"])
