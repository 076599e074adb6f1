option(WORLDSIZE_FETCH_SENTENCEPIECE "Build SentencePiece from pinned sources where none is installed" OFF)

# find_sentence_piece(<variable>): whether SentencePiece is there; if it is, the targets sentence_piece
# and, for tests, sentence_piece_trainer. Debian's package has no CMake files of its own.
function(find_sentence_piece found)
  set(${found} FALSE PARENT_SCOPE)
  set(places HINTS ENV EBROOTSENTENCEPIECE)
  find_path(WORLDSIZE_SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h ${places} PATH_SUFFIXES include)
  find_library(WORLDSIZE_SENTENCEPIECE_LIBRARY sentencepiece ${places} PATH_SUFFIXES lib lib64)
  find_library(WORLDSIZE_SENTENCEPIECE_TRAINER sentencepiece_train ${places} PATH_SUFFIXES lib lib64)
  if(WORLDSIZE_SENTENCEPIECE_INCLUDE_DIR AND WORLDSIZE_SENTENCEPIECE_LIBRARY)
    set(include "${WORLDSIZE_SENTENCEPIECE_INCLUDE_DIR}")
    set(library "${WORLDSIZE_SENTENCEPIECE_LIBRARY}")
    set(trainer "${WORLDSIZE_SENTENCEPIECE_TRAINER}")
  elseif(WORLDSIZE_FETCH_SENTENCEPIECE)
    _fetch_sentence_piece(include)
    set(library sentencepiece-static)
    set(trainer sentencepiece_train-static)
  else()
    message(STATUS "summaries: no SentencePiece, so no 'tokenizer:' in configurations")
    return()
  endif()
  message(STATUS "summaries: ${library}")
  add_library(sentence_piece INTERFACE)
  target_include_directories(sentence_piece SYSTEM INTERFACE "${include}")
  target_link_libraries(sentence_piece INTERFACE "${library}")
  if(trainer)
    add_library(sentence_piece_trainer INTERFACE)
    target_link_libraries(sentence_piece_trainer INTERFACE "${trainer}" sentence_piece)
  endif()
  set(${found} TRUE PARENT_SCOPE)
endfunction()

# Takes two minutes of a core to build, so it is asked for.
function(_fetch_sentence_piece include)
  include(FetchContent)
  set(SPM_ENABLE_SHARED OFF CACHE INTERNAL "")
  set(SPM_ENABLE_TCMALLOC OFF CACHE INTERNAL "")
  FetchContent_Declare(sentencepiece
    URL https://github.com/google/sentencepiece/archive/refs/tags/v0.2.0.tar.gz
    URL_HASH SHA256=9970f0a0afee1648890293321665e5b2efa04eaec9f1671fcf8048f456f5bb86
    DOWNLOAD_EXTRACT_TIMESTAMP ON)
  FetchContent_MakeAvailable(sentencepiece)
  # Of what it builds, only what a target here links.
  set_property(DIRECTORY "${sentencepiece_SOURCE_DIR}" PROPERTY EXCLUDE_FROM_ALL TRUE)
  set_property(DIRECTORY "${sentencepiece_SOURCE_DIR}/src" PROPERTY EXCLUDE_FROM_ALL TRUE)
  # Without our precompiled headers and warnings, which its sources do not know.
  target_compile_options(sentencepiece-static PRIVATE -w)
  target_compile_options(sentencepiece_train-static PRIVATE -w)
  set(${include} "${sentencepiece_SOURCE_DIR}/src" PARENT_SCOPE)
endfunction()
