list(APPEND hostwait_hook_sources entry.cpp entry_wrappers.cpp findings.cpp captures.cpp state.cpp api.cpp)
set_source_files_properties(entry_wrappers.cpp PROPERTIES COMPILE_OPTIONS -fno-omit-frame-pointer)
