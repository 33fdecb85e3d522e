# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Uses the outside project's extension module: a good array, and one that is refused."""

import use_cai_python


class array:
    def __init__(self, **changes):
        self.__cuda_array_interface__ = {
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            "stream": None,
            **changes,
        }


assert use_cai_python.rank(array()) == 2
try:
    use_cai_python.rank(array(stream=0))
except Exception as problem:
    assert problem.code == "stream_zero", problem
else:
    raise AssertionError("stream 0 was taken")
