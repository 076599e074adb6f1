# The trainers: step_NN and solution_NN from the folders steps/ and solutions/. Tests run solutions
# alone, which nobody edits: a step as given is, but for comments, the solution of the step before it
# (rendering fails if it is not), so these programs stand for the steps as well.
include_guard(GLOBAL)

# The steps' names, in order, from the one place where they are listed.
set(WORLDSIZE_LADDER "${CMAKE_CURRENT_LIST_DIR}/../ladder")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${WORLDSIZE_LADDER}/ladder.yaml")
file(STRINGS "${WORLDSIZE_LADDER}/ladder.yaml" WORLDSIZE_STEPS REGEX "^ *- name: ")
list(TRANSFORM WORLDSIZE_STEPS REPLACE "^ *- name: *" "")

# Built on demand: `start` needs one of them, and a half-done exercise must not break a build of
# everything else. The targets steps and solutions build all of a kind.
add_custom_target(steps)
add_custom_target(solutions)
foreach(_step IN LISTS WORLDSIZE_STEPS)
  string(SUBSTRING ${_step} 0 2 _number)
  foreach(_kind step solution)
    set(_source "${CMAKE_SOURCE_DIR}/${_kind}s/${_step}/train.cpp")
    if(EXISTS "${_source}")
      worldsize_trainer(${_kind}_${_number} "${_source}")
      set_target_properties(${_kind}_${_number} PROPERTIES EXCLUDE_FROM_ALL ON)
      add_dependencies(${_kind}s ${_kind}_${_number})
      if(_kind STREQUAL "step") # a student's warning is no error, tests or not
        set_target_properties(step_${_number} PROPERTIES COMPILE_WARNING_AS_ERROR OFF)
      endif()
    endif()
  endforeach()
endforeach()
