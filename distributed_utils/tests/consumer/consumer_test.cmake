# Installs distributed_utils from a build folder, then builds a project that knows nothing but the
# installed package and LibTorch, and runs it on one rank and on two:
#   cmake -D BUILD=<built> -D LIBTORCH=<torch> -D WORK=<new folder> -P consumer_test.cmake
cmake_minimum_required(VERSION 3.24)

function(run title)
  execute_process(COMMAND ${ARGN} RESULTS_VARIABLE results OUTPUT_VARIABLE output ERROR_VARIABLE error)
  foreach(result IN LISTS results)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "${title} ended with ${results}:\n${output}\n${error}")
    endif()
  endforeach()
  message(STATUS "${title}: ok")
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/module")
run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --component distributed_utils --prefix "${WORK}/prefix")
# Moved, because a package that only works where it was built is none.
file(RENAME "${WORK}/prefix" "${WORK}/moved")

file(GLOB_RECURSE installed "${WORK}/moved/*.hpp" "${WORK}/moved/*.cmake")
foreach(file IN LISTS installed)
  file(STRINGS "${file}" found REGEX "include *[<\"](gloo|nlohmann)|nlohmann_json::|gloo::headers|${BUILD}")
  if(found)
    message(FATAL_ERROR "${file} needs more than LibTorch: ${found}")
  endif()
endforeach()

set(options)
if(GENERATOR)
  list(APPEND options -G "${GENERATOR}")
endif()
if(COMPILER)
  list(APPEND options "-DCMAKE_CXX_COMPILER=${COMPILER}")
endif()
run("configure" "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/project" -B "${WORK}/build" ${options}
  "-DCMAKE_PREFIX_PATH=${WORK}/moved" "-DLIBTORCH_ROOT=${LIBTORCH}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
# On clusters modules set the environment variable instead, and there is no LibTorch elsewhere. A link, so
# that it is not the one that python3 knows.
file(CREATE_LINK "${LIBTORCH}" "${WORK}/module/torch" SYMBOLIC)
foreach(prefix "${WORK}/module" "${WORK}/module/torch" "${WORK}/module/torch/share/cmake")
  file(REMOVE_RECURSE "${WORK}/environment")
  run("configure with CMAKE_PREFIX_PATH of the environment: ${prefix}"
    "${CMAKE_COMMAND}" -E env "CMAKE_PREFIX_PATH=/nowhere:${WORK}/moved:${prefix}"
    "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/project" -B "${WORK}/environment" ${options})
  file(STRINGS "${WORK}/environment/CMakeCache.txt" found REGEX "^LIBTORCH_ROOT:")
  if(NOT found MATCHES "=${WORK}/module/torch$")
    message(FATAL_ERROR "LibTorch of ${prefix} was to be found, not ${found}")
  endif()
endforeach()
run("build" "${CMAKE_COMMAND}" --build "${WORK}/build")

set(program "${WORK}/build/consumer" "${WORK}/model.safetensors")
set(environment "${CMAKE_COMMAND}" -E env --unset=RANK --unset=WORLD_SIZE --unset=SLURM_STEP_NUM_TASKS)
function(run_ranks title device)
  run("${title}, one rank" ${environment} ${program} ${device})
  if(NOT output MATCHES "consumer: 1 ranks, gradient 1")
    message(FATAL_ERROR "${title}, one rank: ${output}")
  endif()
  # Several commands of one execute_process run at the same time, as a pipeline; the last one's output is seen.
  set(ranks ${environment} WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 "INIT_METHOD=file://${WORK}/${device}.store")
  run("${title}, two ranks" ${ranks} RANK=1 LOCAL_RANK=1 ${program} ${device}
    COMMAND ${ranks} RANK=0 LOCAL_RANK=0 ${program} ${device})
  if(NOT output MATCHES "consumer: 2 ranks, gradient 1.5")
    message(FATAL_ERROR "${title}, two ranks: ${output}")
  endif()
endfunction()

run_ranks("CPU" cpu)

# Trained on three ranks and resumed on two, the model is the one that a single rank trains.
function(train ranks folder steps)
  set(commands)
  foreach(rank RANGE 1 ${ranks})
    math(EXPR number "${ranks} - ${rank}")
    list(APPEND commands COMMAND ${environment} RANK=${number} LOCAL_RANK=${number} WORLD_SIZE=${ranks}
      LOCAL_WORLD_SIZE=${ranks} "INIT_METHOD=file://${WORK}/${folder}-${steps}.store"
      "${WORK}/build/sharded" "${WORK}/${folder}" cpu ${steps})
  endforeach()
  list(POP_FRONT commands)
  run("sharded, ${ranks} ranks, to step ${steps}" ${commands})
  set(output "${output}" PARENT_SCOPE)
endfunction()

train(1 alone 6)
if(NOT output MATCHES "step 3: loss [0-9.]+\nstep 4: loss ([0-9.]+)\nstep 5: loss [0-9.]+\nstep 6: loss ([0-9.]+)")
  message(FATAL_ERROR "sharded, one rank: ${output}")
endif()
set(expected "step 4: loss ${CMAKE_MATCH_1}" "step 6: loss ${CMAKE_MATCH_2}")
train(3 resumed 3)
train(2 resumed 6)
foreach(line IN LISTS expected)
  if(NOT output MATCHES "^step 4" OR NOT output MATCHES "${line}")
    message(FATAL_ERROR "sharded, resumed on two ranks: no '${line}' in\n${output}")
  endif()
endforeach()
if(CUDA)
  file(GLOB gpus "/dev/nvidia[0-9]*")
  list(LENGTH gpus count)
  if(count GREATER 1)
    run_ranks("GPU" cuda)
  else()
    message(STATUS "GPU: not run, ${count} here where 2 are needed; linked only")
  endif()
endif()
