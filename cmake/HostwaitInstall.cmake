# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Install rules of everything: headers, the CMake package, pkg-config. Each part installs its own
# programs and libraries; this file exports those that outside projects link.

include(CMakePackageConfigHelpers)

install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/include/hostwait
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(hostwait_exported hostwait_api)
foreach(target hostwait_cai hostwait_cai_static hostwait_cai_python)
  if(TARGET ${target})
    list(APPEND hostwait_exported ${target})
    # hostwait::cai, hostwait::cai_static and hostwait::cai_python, whatever name the build gave them.
    string(REPLACE "hostwait_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endif()
endforeach()
install(
  TARGETS ${hostwait_exported}
  EXPORT hostwait-targets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(hostwait_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hostwait)
install(
  EXPORT hostwait-targets
  NAMESPACE hostwait::
  DESTINATION ${hostwait_package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/hostwait-config.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/hostwait-config.cmake INSTALL_DESTINATION ${hostwait_package_dir})
# Before 1.0 a minor version may change interfaces.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/hostwait-config-version.cmake
  VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/hostwait-config.cmake
              ${PROJECT_BINARY_DIR}/cmake/hostwait-config-version.cmake
        DESTINATION ${hostwait_package_dir})

# pkg-config finds everything relative to the file itself, so that an install tree can be moved.
file(RELATIVE_PATH hostwait_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" hostwait_pc_prefix "${hostwait_pc_prefix}")
set(hostwait_pc_files hostwait)
if(TARGET hostwait_cai)
  list(APPEND hostwait_pc_files hostwait-cai)
endif()
foreach(name ${hostwait_pc_files})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/cmake/${name}.pc
                 @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/${name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
