# The trainers: step_NN and solution_NN from the folders steps/ and solutions/. Tests run solutions
# alone, which nobody edits: a step as given is, but for comments, the solution of the step that it
# starts from (rendering fails if it is not), so these programs stand for the steps as well.
include_guard(GLOBAL)

# The steps and their programs' files, as rendering found them in checker/chapters/.
set(_list "${CMAKE_SOURCE_DIR}/steps/.programs")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_list}")
file(STRINGS "${_list}" WORLDSIZE_PROGRAMS REGEX "^[^#]")

# Built on demand: `start` needs one of them, and a half-done exercise must not break a build of
# everything else. The targets steps and solutions build all of a kind.
add_custom_target(steps)
add_custom_target(solutions)
foreach(_entry IN LISTS WORLDSIZE_PROGRAMS)
  string(REGEX MATCH "^([^_ ]+)(_[^ ]+) (.+)$" _ "${_entry}")
  set(_number "${CMAKE_MATCH_1}")
  set(_step "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
  set(_file "${CMAKE_MATCH_3}")
  foreach(_kind step solution)
    set(_source "${CMAKE_SOURCE_DIR}/${_kind}s/${_step}/${_file}")
    if(EXISTS "${_source}")
      worldsize_trainer(${_kind}_${_number} "${_source}")
      set_target_properties(${_kind}_${_number} PROPERTIES EXCLUDE_FROM_ALL ON)
      if(_number MATCHES "^[0-9]") # an exercise is built when somebody asks for it
        add_dependencies(${_kind}s ${_kind}_${_number})
      endif()
      if(_kind STREQUAL "step") # a student's warning is no error, tests or not
        set_target_properties(step_${_number} PROPERTIES COMPILE_WARNING_AS_ERROR OFF)
      endif()
    endif()
  endforeach()
endforeach()
