# Writes OUTPUT, a source file that knows the commit of SOURCE, where it is not so already: a build without a new commit
# compiles nothing. Run by each build: cmake -DSOURCE=... -DOUTPUT=... -P Commit.cmake
set(commit "")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-prefix
    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result ERROR_QUIET)
  # Sources without a history of their own may lie within somebody else's.
  if(result EQUAL 0 AND prefix STREQUAL "")
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse HEAD
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} --no-optional-locks diff --quiet HEAD --
      RESULT_VARIABLE differs ERROR_QUIET)
    if(commit AND NOT differs EQUAL 0)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()
set(text "#include \"cli/build_commit.h\"\n\nconst char* tessera::build_commit() {\n  return \"${commit}\";\n}\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
