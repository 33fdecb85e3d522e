list(APPEND hostwait_core_sources policy.cpp options.cpp)
