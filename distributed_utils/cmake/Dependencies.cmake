# The C++ libraries beside LibTorch: Debian's packages where they are installed, else pinned sources
# (Pins.cmake). A machine without a network takes the archives that Prefetch.cmake brought to
# WORLDSIZE_SOURCES, or an unpacked FETCHCONTENT_SOURCE_DIR_<PACKAGE>.
include_guard(GLOBAL)
include(FetchContent)
include("${CMAKE_CURRENT_LIST_DIR}/Pins.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/FetchArchive.cmake")

get_filename_component(_sources "${CMAKE_CURRENT_LIST_DIR}/../../.sources" ABSOLUTE)
set(WORLDSIZE_SOURCES "${_sources}" CACHE PATH
  "Folder that keeps the archives of libraries which are built from source")

# find_or_fetch(<package> [minimum version] [OPTIONAL]): afterwards the targets that Pins.cmake names
# exist, everywhere in the project. <package>_FOUND tells with OPTIONAL; without it, failing is fatal.
# What is built is not ours to fix: its warnings are off, and its headers are system headers.
function(find_or_fetch package)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIONAL" "" "")
  set(BUILD_SHARED_LIBS OFF) # what is built here becomes a part of what links it
  list(GET PIN_${package}_TARGETS 0 first)
  if(NOT TARGET ${first})
    if(NOT WORLDSIZE_FETCH_DEPENDENCIES)
      list(POP_FRONT arg_UNPARSED_ARGUMENTS version)
      _find_installed(${package} "${version}")
    endif()
    if(NOT TARGET ${first})
      _fetch(${package} ${arg_OPTIONAL})
    endif()
  endif()
  if(TARGET ${first})
    set(${package}_FOUND TRUE PARENT_SCOPE)
  else()
    set(${package}_FOUND FALSE PARENT_SCOPE)
  endif()
endfunction()

function(_find_installed package version)
  list(GET PIN_${package}_TARGETS 0 first)
  if(package STREQUAL gloo) # its CMake package would link libgloo, a second copy of torch's code
    find_path(GLOO_INCLUDE_DIR gloo/algorithm.h)
    if(GLOO_INCLUDE_DIR)
      _header_target(${first} "${GLOO_INCLUDE_DIR}")
    endif()
  else()
    find_package(${package} ${version} QUIET GLOBAL)
    if(TARGET ${package} AND NOT TARGET ${first}) # Debian's yaml-cpp 0.7 has no namespace
      add_library(${first} ALIAS ${package})
    endif()
  endif()
  if(TARGET ${first})
    message(STATUS "${package}: installed ${${package}_VERSION}")
  endif()
endfunction()

function(_fetch package optional)
  string(TOLOWER ${package} name)
  string(TOUPPER ${package} upper)
  if(FETCHCONTENT_SOURCE_DIR_${upper})
    set(from "${FETCHCONTENT_SOURCE_DIR_${upper}}")
    set(archive unused)
  else()
    set(from "${PIN_${package}_URL}")
    message(STATUS "${package}: fetching ${from}")
    fetch_archive(${package} "${WORLDSIZE_SOURCES}" archive problem)
    if(NOT archive)
      list(JOIN PIN_${package}_DEBIAN " " debian)
      string(CONCAT sentence "${package}: no installed one is used, and its sources could not be fetched: ${problem}. "
        "Fix: apt-get install ${debian}; or, where there is a network but no root, "
        "cmake -D \"TO=${WORLDSIZE_SOURCES}\" -P \"${CMAKE_CURRENT_FUNCTION_LIST_DIR}/Prefetch.cmake\".")
      if(NOT optional)
        message(FATAL_ERROR "${sentence}")
      endif()
      message(WARNING "${sentence}")
      return()
    endif()
  endif()
  message(STATUS "${package}: building ${from}")

  foreach(option IN LISTS PIN_${package}_OPTIONS)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${option}")
    set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2} CACHE INTERNAL "")
  endforeach()
  set(subdirectory)
  if(PIN_${package}_HEADERS)
    set(subdirectory SOURCE_SUBDIR its-own-cmake-is-not-used)
  endif()
  FetchContent_Declare(${name} URL "${archive}" URL_HASH ${PIN_${package}_HASH}
    DOWNLOAD_EXTRACT_TIMESTAMP ON ${subdirectory})
  FetchContent_MakeAvailable(${name})

  list(GET PIN_${package}_TARGETS 0 first)
  if(PIN_${package}_HEADERS)
    _header_target(${first} "${${name}_SOURCE_DIR}/${PIN_${package}_HEADERS}")
    if(package STREQUAL gloo) # gloo's own build would write it; what torch needs asks for none of it
      file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/gloo/gloo/config.h" CONTENT
        "#pragma once\n#define GLOO_HAVE_TRANSPORT_TCP 1\n")
      target_include_directories(${first} SYSTEM INTERFACE "${CMAKE_BINARY_DIR}/gloo")
    endif()
    return()
  endif()
  foreach(target built_as IN ZIP_LISTS PIN_${package}_TARGETS PIN_${package}_BUILT_AS)
    if(NOT TARGET ${target})
      add_library(${target} ALIAS ${built_as})
    endif()
    get_target_property(directories ${built_as} INTERFACE_INCLUDE_DIRECTORIES)
    set_target_properties(${built_as} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${directories}")
    target_compile_options(${built_as} PRIVATE -w)
  endforeach()
endfunction()

function(_header_target target directory)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE "${directory}")
endfunction()
