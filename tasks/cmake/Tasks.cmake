# Tasks are modules: shared libraries that a trainer loads by name.
include_guard(GLOBAL)
set(TASK_TEMPLATES "${CMAKE_CURRENT_LIST_DIR}")

# worldsize_task_table(<library> <task>... [OPTIONAL <task>...]): a library with tasks::parse_options
# and tasks::make_task over the tasks named. The first is the default of --task. Who builds the
# library builds these tasks as well, but for the optional ones.
function(worldsize_task_table library)
  cmake_parse_arguments(PARSE_ARGV 1 _table "" "" "OPTIONAL")
  set(TASK_ROWS)
  foreach(_task IN LISTS _table_UNPARSED_ARGUMENTS _table_OPTIONAL)
    string(APPEND TASK_ROWS "    {\"${_task}\", [] { return load_task(\"${_task}\"); }},\n")
  endforeach()
  configure_file("${TASK_TEMPLATES}/table.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/${library}_table.cpp" @ONLY)
  worldsize_library(${library} STATIC "${CMAKE_CURRENT_BINARY_DIR}/${library}_table.cpp")
  target_link_libraries(${library} PUBLIC tasks_core)
  list(TRANSFORM _table_UNPARSED_ARGUMENTS PREPEND task_ OUTPUT_VARIABLE _modules)
  add_dependencies(${library} ${_modules}) # nobody links them, and all need them
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
  configure_file("${TASK_TEMPLATES}/configs.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/${library}_configs.cpp" @ONLY)
  target_sources(${library} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${library}_configs.cpp")
endfunction()

# The module task_<task>, lib/tasks/<task>.so, made of a template.
function(_task_module task template)
  set(TASK_NAME ${task})
  configure_file("${TASK_TEMPLATES}/${template}" "${CMAKE_CURRENT_BINARY_DIR}/${task}_module.cpp" @ONLY)
  worldsize_library(task_${task} MODULE "${CMAKE_CURRENT_BINARY_DIR}/${task}_module.cpp")
  set_target_properties(task_${task} PROPERTIES PREFIX "" OUTPUT_NAME ${task}
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/tasks")
endfunction()

# worldsize_task_without(<task> <sentence>): in place of a task that lacks a library, a module that
# says so, with what fixes it. --help shows the sentence; --task <task> fails with it.
function(worldsize_task_without task sentence)
  message(STATUS "${task}: ${sentence}")
  set(TASK_SENTENCE "${task} ${sentence}")
  _task_module(${task} without.cpp.in)
  target_link_libraries(task_${task} PRIVATE tasks_core)
endfunction()

# worldsize_task(<task> SOURCES <.cpp>... CONFIGS <.yaml>... [LIBRARIES <target>...] [TESTS <.cpp>...]):
# the library tasks_<task>, which defines `tasks::Entry tasks::<task>::entry()`; the module task_<task>,
# lib/tasks/<task>.so, which is all of it; and its tests.
function(worldsize_task task)
  cmake_parse_arguments(PARSE_ARGV 1 _task "" "" "SOURCES;CONFIGS;LIBRARIES;TESTS")
  worldsize_library(tasks_${task} STATIC ${_task_SOURCES})
  worldsize_task_configs(tasks_${task} ${_task_CONFIGS})
  target_link_libraries(tasks_${task} PUBLIC tasks_core ${_task_LIBRARIES})

  _task_module(${task} module.cpp.in)
  target_link_libraries(task_${task} PRIVATE tasks_${task})

  if(WORLDSIZE_TESTS AND _task_TESTS)
    worldsize_test(${task}_test ${_task_TESTS})
    target_include_directories(${task}_test PRIVATE . "${TASK_TEMPLATES}/../tests")
    target_link_libraries(${task}_test PRIVATE tasks_${task} worldsize::tasks test_support)
    add_dependencies(${task}_test task_${task})
  endif()
endfunction()
