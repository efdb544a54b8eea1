# Writes OUTPUT, a source file with the commit of SOURCE, unless it is up to date: without a new commit a build compiles
# nothing. Every build runs it: cmake -DSOURCE=... -DOUTPUT=... -P Commit.cmake
set(commit "")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-prefix
    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result ERROR_QUIET)
  # Sources without a repository of their own may lie inside somebody else's.
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
set(text "namespace tessera {\n\nconst char* build_commit();\n\nconst char* build_commit() {\n  return \"${commit}\";\n}\n\n}  // namespace tessera\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
