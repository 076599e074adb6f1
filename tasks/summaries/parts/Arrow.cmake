# find_arrow(<variable>): whether Arrow's C++ library is there; if it is, the target arrow. Searched in
# this order: what find_package finds, such as a cluster's module or conda-forge's package; the pyarrow of
# python3; that of the project's .venv. PyPI's pyarrow holds the library and its headers, under its full
# name alone (libarrow.so.2200).
function(find_arrow found)
  set(${found} TRUE PARENT_SCOPE)
  find_package(Arrow QUIET CONFIG)
  if(TARGET Arrow::arrow_shared)
    message(STATUS "summaries: Arrow ${Arrow_VERSION} in ${Arrow_DIR}")
    add_library(arrow INTERFACE)
    target_link_libraries(arrow INTERFACE Arrow::arrow_shared)
    return()
  endif()
  foreach(python python3 "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
    execute_process(
      COMMAND "${python}" -c
              "import importlib.util as u; s = u.find_spec('pyarrow'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE place OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed OR NOT place OR NOT EXISTS "${place}/include/arrow/api.h")
      continue()
    endif()
    file(GLOB libraries "${place}/libarrow.so.*")
    list(FILTER libraries INCLUDE REGEX "/libarrow\\.so\\.[0-9]+$")
    if(libraries)
      list(GET libraries 0 library)
      message(STATUS "summaries: ${library}")
      add_library(arrow INTERFACE)
      target_include_directories(arrow SYSTEM INTERFACE "${place}/include")
      target_link_libraries(arrow INTERFACE "${library}")
      return()
    endif()
  endforeach()
  message(STATUS "summaries: no Arrow, so no *.arrow files in --data")
  set(${found} FALSE PARENT_SCOPE)
endfunction()
