# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The recording driver as a fixture; at the end the library goes back to the real one, or none."""

import ctypes
import gc
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def real_driver_afterwards():
    gc.freeze()  # each case collects; what pytest and NumPy hold need not be walked every time
    yield
    from runner import library

    library.hostwait_cai_set_driver(None)


@pytest.fixture
def driver():
    """A recording driver with the vectors' world."""
    import runner
    from fake_driver import fake_driver
    from test_vectors import WORLD

    made = fake_driver(WORLD)
    runner.current_driver = made
    assert runner.library.hostwait_cai_set_driver(ctypes.byref(made.table)) == 0
    yield made
    made.busy.clear()
    runner.glue.collect()
