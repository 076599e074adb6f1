# One function per kind of target, so that warnings, standard and precompiled headers are said once.
include_guard(GLOBAL)

# Everything of ours: C++20, with warnings; they are errors where tests are built, so that a newer
# compiler's never stop a student.
function(worldsize_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -fPIC -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 sees overlaps that cannot be in "literal" + std::string (its bug 105651), GCC 13 copies
    # that leave a vector where none can.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overread)
  endif()
endfunction()

# torch/torch.h takes half a minute to read, so it is read twice per build folder and never again, with
# what else everybody needs (precompiled_torch.hpp): once optimised for libraries, once not for what
# students and tests rebuild all day.
# A precompiled header serves only targets with its own flags; -fPIC said by hand, because CMake itself
# would choose -fPIC for libraries and -fPIE for programs.
function(worldsize_precompiled_torch name)
  if(TARGET ${name})
    return()
  endif()
  file(WRITE "${CMAKE_BINARY_DIR}/${name}.cpp" "// Only carries the precompiled header.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE LibTorch::torch)
  worldsize_target(${name})
  target_compile_options(${name} PRIVATE ${ARGN} $<$<CXX_COMPILER_ID:Clang>:-fno-access-control>)
  target_precompile_headers(${name} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled_torch.hpp")
endfunction()

set(WORLDSIZE_QUICK_FLAGS -O0 -g1)

# GNU's default linker takes half a second longer for what is built many times.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold WORLDSIZE_HAVE_GOLD)

# Several sources in one compilation: a first build takes half as long. Who changes one library
# source at a time, or wants each one's own command in an editor, turns it off.
option(WORLDSIZE_UNITY "Compile several sources of a library together" ON)
function(worldsize_compile_together target)
  if(WORLDSIZE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# worldsize_library(<name> [STATIC|MODULE] <sources>...): optimised, sees torch. BUILD_SHARED_LIBS
# decides where the kind is not given.
function(worldsize_library target)
  worldsize_precompiled_torch(torch_pch)
  add_library(${target} ${ARGN})
  worldsize_target(${target})
  worldsize_compile_together(${target})
  target_link_libraries(${target} PUBLIC LibTorch::torch)
  target_precompile_headers(${target} REUSE_FROM torch_pch)
endfunction()

# worldsize_cuda_library(<name> <sources.cu>...): kernels, which see neither torch nor its flags.
function(worldsize_cuda_library target)
  add_library(${target} STATIC ${ARGN})
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
    CUDA_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # CUDA's own headers leave functions unused, and nvcc shows them to the compiler as ours.
  target_compile_options(${target} PRIVATE -Xcompiler=-Wall,-Wextra,-Wno-unused-function)
endfunction()

# worldsize_benchmark(<name> <sources>...): a Google Benchmark program over torch, optimised. Tests
# need none, so they are built by the target benchmarks alone.
if(NOT TARGET benchmarks)
  add_custom_target(benchmarks)
endif()
function(worldsize_benchmark target)
  worldsize_precompiled_torch(torch_pch)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  add_dependencies(benchmarks ${target})
  worldsize_target(${target})
  target_link_libraries(${target} PRIVATE LibTorch::torch benchmark::benchmark)
  target_precompile_headers(${target} REUSE_FROM torch_pch)
endfunction()

# worldsize_quick_executable(<name> <sources>...): rebuilt in seconds, sees torch.
function(worldsize_quick_executable target)
  worldsize_precompiled_torch(torch_pch_quick ${WORLDSIZE_QUICK_FLAGS})
  add_executable(${target} ${ARGN})
  worldsize_target(${target})
  target_compile_options(${target} PRIVATE ${WORLDSIZE_QUICK_FLAGS})
  target_link_options(${target} PRIVATE $<$<BOOL:${WORLDSIZE_HAVE_GOLD}>:-fuse-ld=gold>)
  target_link_libraries(${target} PRIVATE LibTorch::torch)
  target_precompile_headers(${target} REUSE_FROM torch_pch_quick)
endfunction()

# worldsize_trainer(<name> <train.cpp>): one step's or solution's program.
function(worldsize_trainer target source)
  worldsize_quick_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE worldsize::tasks)
endfunction()

# worldsize_test(<name> <sources>...): a GoogleTest program over torch; every suite is a ctest.
# What a test needs besides goes through target_link_libraries(<name> ...).
function(worldsize_test target)
  worldsize_quick_executable(${target} ${ARGN})
  worldsize_compile_together(${target})
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
  worldsize_discover_suites(${target})
endfunction()

# worldsize_discover_suites(<target> [<property> <value>]...): every suite of it is a ctest. Loading
# LibTorch takes a third of a second, which is longer than most tests take.
function(worldsize_discover_suites target)
  set(_script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/DiscoverSuites.cmake")
  set(_tests "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake")
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS "${_tests}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${target}>" -D "TESTS=${_tests}"
      -D "PROPERTIES=${ARGN}" -P "${_script}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${_script}")
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake"
    "if(EXISTS [=[${_tests}]=])\n  include([=[${_tests}]=])\n"
    "else()\n  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
endfunction()

# worldsize_discover_tests(<target> [<property> <value>]...): every TEST of it is a ctest.
function(worldsize_discover_tests target)
  # One thread a test: two of them run at a time, and each may start ranks of its own.
  gtest_discover_tests(${target} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120
    PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1" TIMEOUT 900 SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]"
    ${ARGN})
endfunction()
