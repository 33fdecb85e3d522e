# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""From a vector's JSON to Python objects: values, descriptors, DLPack producers
(vectors/README.md).
"""

import ctypes
from collections.abc import Mapping

try:
    import numpy
except ImportError:
    numpy = None


class index_like:
    """Stands in for a NumPy scalar where NumPy is absent."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class other_mapping(Mapping):
    def __init__(self, content):
        self.content = content

    def __getitem__(self, key):
        return self.content[key]

    def __iter__(self):
        return iter(self.content)

    def __len__(self):
        return len(self.content)


class dict_subclass(dict):
    pass


# DLPack's structs, as a producer fills them.
class dl_tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class dl_managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", dl_tensor),
    ]


WORK_STREAM = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))


class exchange_api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("managed_from_object", FROM_OBJECT),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", ctypes.c_void_p),
        ("current_work_stream", WORK_STREAM),
    ]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]

DEVICES = {"cpu": 1, "cuda": 2, "cuda_host": 3, "rocm": 10, "cuda_managed": 13}
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
PLAIN = {
    "version": [1, 0],
    "device": ["cuda", 0],
    "dtype": ["float", 32, 1],
    "shape": [4],
    "strides": [1],
    "data": {"$ptr": "P"},
    "byte_offset": 0,
    "flags": [],
}
_keep = []  # structs and names that capsules point to, for the life of the process


class dlpack_producer:
    """What a case's `dlpack` says: records its calls and what became of its capsules."""

    def __init__(self, maker, spec):
        self.maker = maker
        self.spec = spec
        self.calls = []
        self.made = self.deleted = 0

    def managed(self):
        spec = {**PLAIN, **self.spec.get("capsule", {})}
        out = dl_managed()
        out.major, out.minor = spec["version"]
        tensor = out.tensor
        tensor.data = self.maker.value(spec["data"])
        tensor.device_type, tensor.device_id = DEVICES[spec["device"][0]], spec["device"][1]
        code, tensor.bits, tensor.lanes = spec["dtype"]
        tensor.code = CODES[code]
        tensor.ndim = len(spec["shape"])
        tensor.shape = (ctypes.c_int64 * max(1, tensor.ndim))(*spec["shape"])
        if spec["strides"] is not None:
            tensor.strides = (ctypes.c_int64 * max(1, tensor.ndim))(*spec["strides"])
        tensor.byte_offset = spec["byte_offset"]
        out.flags = int("read_only" in spec["flags"])
        if spec.get("deleter", "ours") is not None:
            out.deleter = DELETER(self.delete)
        _keep.append(out)
        self.made += 1
        return out

    def delete(self, _managed):
        self.deleted += 1

    def capsule(self):
        managed = self.managed()
        used = self.spec.get("consumed", False)
        name = b"used_dltensor_versioned" if used else b"dltensor_versioned"
        finish = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

        def destroy(address):
            if _capsule_name(ctypes.cast(address, ctypes.py_object)) == b"dltensor_versioned":
                if managed.deleter:
                    managed.deleter(ctypes.addressof(managed))

        destructor = finish(destroy)
        _keep.extend((destructor, name))
        return _new_capsule(
            ctypes.addressof(managed), name, ctypes.cast(destructor, ctypes.c_void_p)
        )

    def __call__(self, **keywords):
        call = dict(keywords)
        self.calls.append(call)
        unknown = set(keywords) - set(self.spec.get("signature", keywords))
        if unknown:
            call["raises"] = "TypeError"
            raise TypeError(f"unexpected keyword arguments {sorted(unknown)}")
        ordering = keywords.get("stream") not in (None, -1)
        if self.spec.get("raises") and ordering:
            call["raises"] = self.spec["raises"]
            self.maker.driver.actions.append("DLPACK_REFUSED")
            raise {"BufferError": BufferError}[self.spec["raises"]]("refused")
        if ordering:
            self.maker.driver.actions.append(
                f"DLPACK({self.maker.stream_name(keywords['stream'])})"
            )
        return self.capsule()


class maker:
    """Builds the objects of one case."""

    def __init__(self, world, driver):
        self.world = world
        self.driver = driver
        self.producers = []
        self.getter_calls = 0

    def stream(self, name):
        if name in ("1", "2"):
            return int(name)
        if name in self.world["destroyed_streams"]:
            return self.world["destroyed_streams"][name]
        return self.world["streams"][name]["handle"]

    def stream_name(self, value):
        if value in (1, 2):
            return str(value)
        return next(n for n, s in self.world["streams"].items() if s["handle"] == value)

    def value(self, spec):
        if not isinstance(spec, dict):
            return spec
        marker = next((key for key in spec if key.startswith("$")), None)
        if marker is None:
            return {key: self.value(item) for key, item in spec.items()}
        inner = spec[marker]
        return getattr(self, "make_" + marker[1:].replace(".", "_"))(inner, spec)

    def make_tuple(self, inner, _):
        return tuple(map(self.value, inner))

    def make_list(self, inner, _):
        return list(map(self.value, inner))

    def make_int(self, inner, _):
        return int(inner)

    def make_float(self, inner, _):
        return float(inner)

    def make_bytes(self, inner, _):
        return inner.encode()

    def make_np_int64(self, inner, _):
        value = self.value(inner)
        return numpy.int64(value) if numpy else index_like(value)

    def make_np_uint64(self, inner, _):
        value = self.value(inner)
        return numpy.uint64(value) if numpy else index_like(value)

    def make_ptr(self, inner, spec):
        return self.world["memory"][inner]["address"] + spec.get("offset", 0)

    def make_stream(self, inner, _):
        return self.stream(inner)

    def make_cuda_stream(self, inner, _):
        handle = self.stream(inner)

        class stream_object:
            def __cuda_stream__(self):
                return 0, handle

        return stream_object()

    def make_mapping(self, inner, _):
        return other_mapping(self.value(inner))

    def make_dict_subclass(self, inner, _):
        return dict_subclass(self.value(inner))

    def make_method(self, inner, _):
        content = self.value(inner)

        class holder:
            def method(self):
                return content

        return holder().method

    def make_object(self, inner, _):
        return self.object(inner)

    def make_self_masked(self, inner, _):
        content = self.value(inner)

        class masked:
            @property
            def __cuda_array_interface__(self):
                return {**content, "mask": self}

        return masked()

    def getter(self, spec):
        """What the property does at each reading."""
        if isinstance(spec, dict) and "$raises" in spec:
            kind = {"AttributeError": AttributeError, "RuntimeError": RuntimeError}[spec["$raises"]]

            def fail(_):
                raise kind("as the vector says")

            return fail
        if isinstance(spec, dict) and "$returns" in spec:
            answers = [self.value(item) for item in spec["$returns"]]

            def change(_):
                self.getter_calls += 1
                return answers[min(self.getter_calls, len(answers)) - 1]

            return change
        content = self.value(spec)

        def answer(_):
            self.getter_calls += 1
            return content

        return answer

    def exchange(self, spec, producer):
        api = exchange_api()
        api.major, api.minor = spec["version"]
        if "current_work_stream" in spec:
            name = spec["current_work_stream"]
            handle = None if name is None else self.stream(name)

            def current(_type, _device, out):
                out[0] = handle
                return 0

            def convert(_object, out):
                out[0] = ctypes.addressof(producer.managed())
                return 0

            api.current_work_stream = WORK_STREAM(current)
            api.managed_from_object = FROM_OBJECT(convert)
        if "prev_api" in spec:
            api.previous = ctypes.addressof(self.exchange(spec["prev_api"], producer))
        _keep.append(api)
        return api

    def object(self, spec):
        """An object with what `spec` names, of a type of its own."""
        if "dict" in spec:
            return self.value(spec["dict"])
        members = {"__slots__": ("__weakref__",)}
        if "cai" in spec:
            members["__cuda_array_interface__"] = property(self.getter(spec["cai"]))
        producer = dlpack_producer(self, spec.get("dlpack", {}))
        self.producers.append(producer)
        if "dlpack" in spec:
            members["__dlpack__"] = lambda _self, **keywords: producer(**keywords)
            members["__dlpack_device__"] = lambda _self: (2, 0)
        if "exchange_api" in spec:
            name = b"dlpack_exchange_api"
            _keep.append(name)
            api = self.exchange(spec["exchange_api"], producer)
            members["__dlpack_c_exchange_api__"] = _new_capsule(ctypes.addressof(api), name, None)
        bases = (bytearray,) if spec.get("buffer") else (object,)
        if spec.get("buffer"):
            del members["__slots__"]
        return type("producer", bases, members)()
