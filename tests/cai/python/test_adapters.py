# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The pybind11 and nanobind adapters as real modules. One interpreter builds them; it suffices."""

import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest
from test_vectors import WORLD

HERE = pathlib.Path(__file__).resolve().parent
P = WORLD["memory"]["P"]["address"]
S, C = WORLD["streams"]["S"]["handle"], WORLD["streams"]["C"]["handle"]


def command(name, folder):
    """Compiler arguments for one of the two binding libraries."""
    library = pytest.importorskip(name)
    if name == "pybind11":
        return ["-DUSE_PYBIND11", f"-I{library.get_include()}"]
    root = pathlib.Path(library.include_dir()).parent
    return [
        f"-I{root / 'include'}",
        f"-I{root / 'ext' / 'robin_map' / 'include'}",
        str(root / "src" / "nb_combined.cpp"),
        "-fno-strict-aliasing",
    ]


@pytest.fixture(scope="module", params=["pybind11", "nanobind"])
def adapter(request, tmp_path_factory):
    if sys.version_info[:2] != (3, 12):
        pytest.skip("CPython 3.12 builds the adapters")
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp(request.param)
    name = f"adapter_{request.param}"
    libraries = pathlib.Path(os.environ["HOSTWAIT_CAI_LIBRARY"]).parent
    subprocess.run(
        [
            compiler,
            "-std=c++20",
            "-O0",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            f"-DADAPTER_NAME={name}",
            *command(request.param, folder),
            f"-I{HERE.parent.parent.parent / 'include'}",
            f"-I{sysconfig.get_path('include')}",
            str(HERE / "adapters.cpp"),
            "-o",
            str(folder / f"{name}.so"),
            f"-L{libraries}",
            "-lhostwait_cai",
            f"-Wl,-rpath,{libraries}",
        ],
        check=True,
    )
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


class producer:
    def __init__(self, stream):
        self.__cuda_array_interface__ = {
            "shape": (4,),
            "typestr": "<f4",
            "data": (P, False),
            "version": 3,
            "stream": stream,
        }


def test_views_and_order(adapter, driver):
    assert adapter.length(producer(None)) == 4
    adapter.order(producer(S), C)
    assert len(driver.take_actions()) == 2


def test_errors_pass(adapter, driver):
    with pytest.raises(ValueError) as caught:
        adapter.length(producer(0))
    assert caught.value.code == "stream_zero"
    with pytest.raises(ValueError, match="stream_zero"):
        adapter.order(producer(S), 0)
    driver.fail["stream_wait_event"] = 999
    with pytest.raises(RuntimeError) as caught:
        adapter.order(producer(S), C)
    assert caught.value.driver == 999


def test_exports(adapter, driver):
    assert adapter.dict(P) == {
        "shape": (4,),
        "typestr": "<f4",
        "data": (P, False),
        "version": 3,
        "strides": None,
        "stream": None,
    }
    assert "dltensor_versioned" in repr(adapter.dlpack(producer(None), P, max_version=(1, 0)))
    with pytest.raises(BufferError):
        adapter.dlpack(producer(None), P, copy=True)
