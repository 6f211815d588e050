# SPDX-License-Identifier: Apache-2.0
#
# Warnings and sanitizers for the project's own targets:
#   stagecraft_target(NAME [WARN_LESS])     WARN_LESS leaves out -Wconversion and -Wshadow, for units full of Qt's macros
function(stagecraft_target name)
  cmake_parse_arguments(arg "WARN_LESS" "" "" ${ARGN})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  # GCC 12 takes a std::optional's value for uninitialised when it optimises (gcc.gnu.org/PR80635)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(NOT arg_WARN_LESS)
    target_compile_options(${name} PRIVATE -Wshadow -Wconversion)
  endif()
  if(STAGECRAFT_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(STAGECRAFT_SANITIZE)
    target_compile_options(${name} PRIVATE "-fsanitize=${STAGECRAFT_SANITIZE}" -fno-omit-frame-pointer)
    target_link_options(${name} PUBLIC "-fsanitize=${STAGECRAFT_SANITIZE}")
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:stagecraft_sanitizer_options>)
    endif()
  endif()
endfunction()
