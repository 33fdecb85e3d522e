# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# libhostwait_link.so: the switch of the linked route. Needs nothing, exports nothing.
add_library(hostwait_link SHARED link.cpp)
hostwait_shim_target(hostwait_link)
set_target_properties(hostwait_link PROPERTIES LINKER_LANGUAGE C)
target_link_options(hostwait_link PRIVATE -nostdlib -Wl,--as-needed,-z,noexecstack,-z,relro,-z,now
                    -Wl,--no-undefined)
install(TARGETS hostwait_link LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hostwait)
