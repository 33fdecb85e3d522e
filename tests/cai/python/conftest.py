# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The library goes back to the real driver, or none, when the tests are over."""

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
