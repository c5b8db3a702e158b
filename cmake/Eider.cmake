# What every target of the project is built with, and the two functions that declare targets.

add_library(eider_flags INTERFACE)
# docs/NUMERICS.md: a product and a sum are fused only where the source says fma, and nothing is reassociated.
target_compile_options(eider_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Wno-missing-field-initializers)
target_include_directories(eider_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(eider_flags INTERFACE fmt::fmt)
if(EIDER_SANITIZE)
  target_compile_options(eider_flags INTERFACE -fsanitize=${EIDER_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(eider_flags INTERFACE -fsanitize=${EIDER_SANITIZE})
endif()
if(EIDER_FUZZ)
  # Coverage of the libraries, which is what guides the fuzzer.
  target_compile_options(eider_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Most of the time of a small source file goes into headers. The presets that people and machines build often compile five files
# at a time, which pays for them once (CMAKE_UNITY_BUILD): names in the anonymous namespaces of one folder must differ. These are
# precompiled, and compiled once for all layers and once for all tests. Each file still includes what it uses:
# the fuzz preset does without both.
set(layer_headers <algorithm> <array> <charconv> <cmath> <functional> <map> <memory> <optional> <span> <string>
    <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(test_headers <gtest/gtest.h> ${layer_headers})

# eider_precompile(<target> <first> <header>...): precompiles the headers for `first`, and takes them from there for others.
function(eider_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# eider_layer(<folder> [<layer or library>...]): the static library of one folder of src/. A layer links only the
# layers below it, so that the linker refuses what scripts/check_layers.py refuses.
function(eider_layer folder)
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/isa/")  # folders with a CMakeLists.txt of their own
  if(NOT sources)
    add_library(eider_${folder} INTERFACE)
    target_link_libraries(eider_${folder} INTERFACE eider_flags ${ARGN})
    return()
  endif()
  add_library(eider_${folder} STATIC ${sources})
  target_link_libraries(eider_${folder} PUBLIC eider_flags ${ARGN})
  if(NOT EIDER_SANITIZE)
    eider_precompile(eider_${folder} eider_base ${layer_headers})
  endif()
endfunction()

# eider_test(<folder> <libraries>...): one GoogleTest program for the *_test.cpp files of a folder of tests/.
function(eider_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${folder}_test ${sources})
  target_include_directories(${folder}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${folder}_test PRIVATE EIDER_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data"
                             EIDER_SHARED="${PROJECT_SOURCE_DIR}/../shared")
  target_link_libraries(${folder}_test PRIVATE ${ARGN} GTest::gtest_main)
  # The time of tests is spent in the libraries; compiling the tests themselves would be a third of a build.
  target_compile_options(${folder}_test PRIVATE $<$<CONFIG:Release>:-O0> $<$<CONFIG:RelWithDebInfo>:-O1>)
  eider_precompile(${folder}_test base_test ${test_headers})
  gtest_discover_tests(${folder}_test PROPERTIES LABELS ${folder} DISCOVERY_TIMEOUT 60)
endfunction()
