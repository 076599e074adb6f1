# cmake -D PROGRAM=<a GoogleTest program> -D TESTS=<file to write> -D PROPERTIES=<of the tests>
#       -P DiscoverSuites.cmake
# Writes a ctest for each suite of the program.
execute_process(COMMAND "${CMAKE_COMMAND}" -E env OMP_NUM_THREADS=1 "${PROGRAM}" --gtest_list_tests
  OUTPUT_VARIABLE list RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${result}\n${list}")
endif()
string(REPLACE ";" " " properties "ENVIRONMENT;OMP_NUM_THREADS=1;TIMEOUT;900;${PROPERTIES}")
set(tests "")
string(REGEX MATCHALL "(^|\n)[^ \n]+\\.( |\n|$)" suites "${list}")
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite) # "Sampler."
  string(REGEX REPLACE "\\.$" "" name "${suite}")
  string(APPEND tests "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}*]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES ${properties})\n")
endforeach()
file(WRITE "${TESTS}" "${tests}")
