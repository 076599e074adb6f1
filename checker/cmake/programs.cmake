# The trainers: step_NN and solution_NN from the folders steps/ and solutions/, and for the tests
# solutions rendered freshly into the build folder, which nobody's edits reach.
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

# fresh_solution_NN: rendered at build time. A step as given is, but for comments, the solution of
# the step before it (rendering fails if it is not), so these programs stand for the steps as well;
# and solutions of steps that leave the trainer alone are the same program once more.
function(worldsize_fresh_solutions)
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${WORLDSIZE_LADDER}/*")
  set(_fresh "${CMAKE_BINARY_DIR}/ladder")
  set(_rendered)
  foreach(_step IN LISTS WORLDSIZE_STEPS)
    list(APPEND _rendered "${_fresh}/solutions/${_step}/train.cpp")
  endforeach()
  add_custom_command(OUTPUT ${_rendered}
    COMMAND checker render --output "${_fresh}" > "${_fresh}.log"
    DEPENDS checker ${_sources} COMMENT "Rendering the ladder" VERBATIM)
  foreach(_step _source IN ZIP_LISTS WORLDSIZE_STEPS _rendered)
    string(SUBSTRING ${_step} 0 2 _number)
    worldsize_trainer(fresh_solution_${_number} "${_source}")
  endforeach()
endfunction()
