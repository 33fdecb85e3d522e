list(APPEND hostwait_core_sources python_stack.cpp python_lines.cpp python_site.cpp)
