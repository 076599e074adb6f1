# Finds LibTorch 2.11.0 and defines LibTorch::torch, without find_package(Torch), which wants a CUDA
# toolkit even for CPU programs. Searched in this order: CMAKE_PREFIX_PATH, the CMake variable and then
# the environment variable, which a cluster's modules set (a site-packages folder, a torch folder, an
# unpacked LibTorch or what torch.utils.cmake_prefix_path says); the torch of python3; the private .venv
# of the Worldsize project.
#
# LIBTORCH_CUDA (ON/OFF) also links torch_cuda and finds the headers of CUDA 13 and NCCL.
#
# distributed_utils installs this file beside its own package, so it uses nothing of the project.
include_guard(GLOBAL)

set(LIBTORCH_VERSION 2.11.0)
get_filename_component(_libtorch_project "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
if(EXISTS "${_libtorch_project}/workbook")
  set(_libtorch_fix "Fix: ./workbook start, which keeps one of its own, or pip install torch==${LIBTORCH_VERSION} and "
                     "cmake -DCMAKE_PREFIX_PATH=<folder that holds torch/>.")
  set(_libtorch_fix_cuda "Fix: ./workbook start --cuda")
else()
  set(_libtorch_fix "Fix: pip install torch==${LIBTORCH_VERSION}, then "
                     "cmake -DCMAKE_PREFIX_PATH=<folder that holds torch/>.")
  set(_libtorch_fix_cuda "Fix: pip install torch==${LIBTORCH_VERSION} with all its dependencies and "
                          "cuda-toolkit[nvcc]==13.0.2")
endif()
string(CONCAT _libtorch_fix ${_libtorch_fix})
string(CONCAT _libtorch_fix_cuda ${_libtorch_fix_cuda})

function(_libtorch_find_root)
  set(_places)
  string(REPLACE ":" ";" _environment "$ENV{CMAKE_PREFIX_PATH}")
  foreach(_prefix IN LISTS CMAKE_PREFIX_PATH _environment)
    list(APPEND _places "${_prefix}" "${_prefix}/torch")
    if(_prefix MATCHES "/share/cmake/?$")
      get_filename_component(_above "${_prefix}/../.." ABSOLUTE)
      list(APPEND _places "${_above}")
    endif()
  endforeach()
  foreach(_python python3 "${_libtorch_project}/.venv/bin/python3")
    execute_process(
      COMMAND "${_python}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE _place OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
    if(NOT _failed AND _place)
      list(APPEND _places "${_place}")
    endif()
  endforeach()
  set(_wrong)
  foreach(_place IN LISTS _places)
    if(NOT EXISTS "${_place}/lib/libtorch_cpu.so" OR NOT EXISTS "${_place}/include/torch/headeronly/version.h")
      continue()
    endif()
    file(STRINGS "${_place}/include/torch/headeronly/version.h" _lines REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]")
    string(REGEX MATCHALL "[0-9]+" _version "${_lines}")
    list(JOIN _version "." _version)
    if(_version STREQUAL LIBTORCH_VERSION)
      set(LIBTORCH_ROOT "${_place}" CACHE PATH "The folder that holds LibTorch's include/ and lib/" FORCE)
      return()
    endif()
    list(APPEND _wrong "${_version} in ${_place}")
  endforeach()
  if(_wrong)
    list(JOIN _wrong ", " _wrong)
    message(FATAL_ERROR "LibTorch ${LIBTORCH_VERSION} is needed, found only ${_wrong}. ${_libtorch_fix}")
  endif()
  message(FATAL_ERROR "LibTorch ${LIBTORCH_VERSION} not found. ${_libtorch_fix}")
endfunction()

if(LIBTORCH_ROOT AND NOT EXISTS "${LIBTORCH_ROOT}/lib/libtorch_cpu.so")
  unset(LIBTORCH_ROOT CACHE) # it was there once: search again
endif()
if(NOT LIBTORCH_ROOT)
  _libtorch_find_root()
endif()
message(STATUS "LibTorch ${LIBTORCH_VERSION}: ${LIBTORCH_ROOT}")

function(_libtorch_import)
  foreach(_name IN LISTS ARGN)
    add_library(LibTorch::${_name} SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::${_name} PROPERTIES IMPORTED_LOCATION "${LIBTORCH_ROOT}/lib/lib${_name}.so")
    target_link_libraries(LibTorch::torch INTERFACE LibTorch::${_name})
  endforeach()
endfunction()

find_package(Threads REQUIRED GLOBAL)
add_library(LibTorch::torch INTERFACE IMPORTED GLOBAL)
_libtorch_import(torch_cpu c10)
target_include_directories(LibTorch::torch SYSTEM INTERFACE
  "${LIBTORCH_ROOT}/include" "${LIBTORCH_ROOT}/include/torch/csrc/api/include")
# NDEBUG because the wheel was built with it and ATen/record_function.h lays out a class by it.
target_compile_definitions(LibTorch::torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO NDEBUG)
target_link_libraries(LibTorch::torch INTERFACE Threads::Threads)
# fmt is torch's own copy: a second one shadows it in the headers and then does not link.
add_library(torch_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp")
target_include_directories(torch_fmt SYSTEM PRIVATE "${LIBTORCH_ROOT}/include")
target_compile_features(torch_fmt PRIVATE cxx_std_17)
set_target_properties(torch_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(LibTorch::torch INTERFACE torch_fmt)
# libtorch_cpu.so itself needs CUPTI and the CUDA runtime, which the wheel keeps beside it.
get_filename_component(_site_packages "${LIBTORCH_ROOT}" DIRECTORY)
target_link_options(LibTorch::torch INTERFACE "LINKER:-rpath-link,${_site_packages}/nvidia/cu13/lib")

if(LIBTORCH_CUDA)
  if(NOT EXISTS "${LIBTORCH_ROOT}/lib/libtorch_cuda.so")
    message(FATAL_ERROR "LibTorch in ${LIBTORCH_ROOT} has no CUDA. ${_libtorch_fix_cuda}")
  endif()
  # Only headers are needed here: torch's own libraries load the rest. find_package(CUDAToolkit) would
  # also want nvcc and, from PyPI, stumble over missing links. The wheel's headers are those that torch
  # was built with, but they are whole only beside PyPI's nvcc (crt/).
  set(_cuda_include)
  foreach(_place "${CUDAToolkit_ROOT}/include" "$ENV{CUDAToolkit_ROOT}/include" "${_site_packages}/nvidia/cu13/include"
                 "$ENV{CUDA_HOME}/include" /usr/local/cuda/include /usr/local/cuda-13.0/include)
    if(EXISTS "${_place}/cuda_runtime.h" AND EXISTS "${_place}/crt/host_defines.h")
      file(STRINGS "${_place}/cuda_runtime_api.h" _line REGEX "define CUDART_VERSION +13[0-9][0-9][0-9]")
      if(_line)
        set(_cuda_include "${_place}")
        break()
      endif()
    endif()
  endforeach()
  if(NOT _cuda_include)
    message(FATAL_ERROR "The headers of CUDA 13 were not found. ${_libtorch_fix_cuda}, or "
                        "-DCUDAToolkit_ROOT=<CUDA 13>.")
  endif()
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS "${_site_packages}/nvidia/nccl/include")
  if(NOT NCCL_INCLUDE_DIR)
    message(FATAL_ERROR "nccl.h was not found. ${_libtorch_fix_cuda}, or -DNCCL_INCLUDE_DIR=<folder>.")
  endif()
  message(STATUS "CUDA headers: ${_cuda_include}; NCCL: ${NCCL_INCLUDE_DIR}")
  target_include_directories(LibTorch::torch SYSTEM INTERFACE "${_cuda_include}" "${NCCL_INCLUDE_DIR}")
  target_compile_definitions(LibTorch::torch INTERFACE USE_C10D_NCCL USE_CUDA)
  # No program names a symbol of torch_cuda, yet it must be loaded: it registers the CUDA kernels.
  target_link_options(LibTorch::torch INTERFACE LINKER:--no-as-needed)
  _libtorch_import(torch_cuda c10_cuda)
  foreach(_library nccl cudnn cusparselt nvshmem)
    target_link_options(LibTorch::torch INTERFACE "LINKER:-rpath-link,${_site_packages}/nvidia/${_library}/lib")
  endforeach()
endif()
