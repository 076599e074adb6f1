# How tasks get into programs.
include_guard(GLOBAL)
set(TASK_TABLE_TEMPLATES "${CMAKE_CURRENT_LIST_DIR}")

# worldsize_task_table(<library> <task>...): a library with tasks::parse_options and
# tasks::make_task over the tasks named, each from a library tasks_<task> that defines
# `tasks::Entry tasks::<task>::entry()`. The first task is the default of --task.
function(worldsize_task_table library)
  set(TASK_DECLARATIONS)
  set(TASK_CALLS)
  set(_libraries)
  foreach(_task IN LISTS ARGN)
    string(APPEND TASK_DECLARATIONS "namespace tasks::${_task} {\nEntry entry();\n}\n")
    list(APPEND TASK_CALLS "${_task}::entry()")
    list(APPEND _libraries tasks_${_task})
  endforeach()
  list(JOIN TASK_CALLS ", " TASK_CALLS)
  configure_file("${TASK_TABLE_TEMPLATES}/table.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/${library}_table.cpp" @ONLY)
  worldsize_library(${library} "${CMAKE_CURRENT_BINARY_DIR}/${library}_table.cpp")
  target_link_libraries(${library} PUBLIC tasks_core PRIVATE ${_libraries})
endfunction()

# worldsize_task_configs(<library> <file.yaml>...): compiles YAML files into the library as
# `std::vector<tasks::BuiltInConfig> tasks::<library without tasks_>::built_in_configs()`, named as
# the files are, in their order.
function(worldsize_task_configs library)
  string(REGEX REPLACE "^tasks_" "" TASK_NAME ${library})
  set(TASK_CONFIGS)
  foreach(_file IN LISTS ARGN)
    get_filename_component(_file "${_file}" ABSOLUTE)
    get_filename_component(_name "${_file}" NAME_WE)
    file(READ "${_file}" _yaml)
    string(APPEND TASK_CONFIGS "    {\"${_name}\", R\"yaml(${_yaml})yaml\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_file}")
  endforeach()
  configure_file("${TASK_TABLE_TEMPLATES}/configs.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/${library}_configs.cpp" @ONLY)
  target_sources(${library} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${library}_configs.cpp")
endfunction()

# worldsize_task(<task> SOURCES <.cpp>... CONFIGS <.yaml>... [LIBRARIES <target>...] [TESTS <.cpp>...]):
# the library tasks_<task>, and its tests.
function(worldsize_task task)
  cmake_parse_arguments(PARSE_ARGV 1 _task "" "" "SOURCES;CONFIGS;LIBRARIES;TESTS")
  worldsize_library(tasks_${task} ${_task_SOURCES})
  worldsize_task_configs(tasks_${task} ${_task_CONFIGS})
  target_link_libraries(tasks_${task} PUBLIC tasks_core ${_task_LIBRARIES})
  if(WORLDSIZE_TESTS AND _task_TESTS)
    worldsize_test(${task}_test ${_task_TESTS})
    target_include_directories(${task}_test PRIVATE . "${TASK_TABLE_TEMPLATES}/../tests")
    target_link_libraries(${task}_test PRIVATE tasks_${task} worldsize::tasks test_support)
  endif()
endfunction()
