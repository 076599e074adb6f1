# fetch_archive(<package> <folder> <variable for the path> <variable for the problem>): the archive that
# Pins.cmake names lies in the folder, downloaded if it is not there yet, and has the pinned hash.
# The path is empty if that failed. Uses nothing of a project, so that a script can call it.
function(fetch_archive package folder path_variable problem_variable)
  string(REGEX MATCH "([^/]+)$" file "${PIN_${package}_URL}")
  set(archive "${folder}/${package}-${file}")
  string(REGEX MATCH "^([^=]+)=(.*)$" _ "${PIN_${package}_HASH}")
  set(algorithm ${CMAKE_MATCH_1})
  set(wanted ${CMAKE_MATCH_2})
  set(${path_variable} "" PARENT_SCOPE)

  if(NOT EXISTS "${archive}")
    # Under another name first, so that an interrupted download is never taken for the archive.
    file(DOWNLOAD "${PIN_${package}_URL}" "${archive}.part" STATUS status
      INACTIVITY_TIMEOUT 20 TIMEOUT 600)
    list(GET status 0 code)
    if(NOT code EQUAL 0)
      file(REMOVE "${archive}.part")
      file(GLOB others "${folder}/*")
      if(NOT others)
        file(REMOVE_RECURSE "${folder}") # made for this archive
      endif()
      list(GET status 1 text)
      string(REGEX REPLACE "^\"|\"$" "" text "${text}")
      set(${problem_variable} "${text}" PARENT_SCOPE)
      return()
    endif()
    file(RENAME "${archive}.part" "${archive}")
  endif()
  file(${algorithm} "${archive}" found)
  if(NOT found STREQUAL wanted)
    set(${problem_variable} "${archive} is not what was pinned (${algorithm} ${found}); delete it" PARENT_SCOPE)
    return()
  endif()
  set(${path_variable} "${archive}" PARENT_SCOPE)
endfunction()
