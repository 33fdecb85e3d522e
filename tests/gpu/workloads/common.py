# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the workloads share: each prints one line per operation, its name and a digest of the bytes
that it produced. Two runs that print the same lines produced the same bits."""

import hashlib
import sys


def digest(*arrays):
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.dtype).encode() + str(array.shape).encode())
        total.update(array.tobytes())
    return total.hexdigest()[:24]


def each(operations):
    """Runs {name: function returning NumPy arrays}; a failing operation is a line too."""
    for name, operation in operations.items():
        try:
            made = operation()
            print(f"{name}\t{digest(*(made if isinstance(made, (list, tuple)) else [made]))}")
        except Exception as error:  # noqa: BLE001: an operation that this version lacks
            print(f"{name}\terror {type(error).__name__}: {str(error).splitlines()[:1]}")
    sys.stdout.flush()
