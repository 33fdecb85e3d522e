# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
list(APPEND hostwait_hook_sources entry.cpp entry_held.cpp entry_judge.cpp entry_state.cpp entry_wrappers.cpp findings.cpp captures.cpp state.cpp profile_file.cpp queues.cpp api.cpp ranges.cpp nvtx.cpp)

