# Tests: `_test.cc` files beside the code; those of several layers or processes are under tests/. There are few
# programs, since linking and starting one that loads libtorch costs more than most tests.
enable_testing()
find_package(GTest REQUIRED)
include(GoogleTest)
find_program(TESSERA_MPIRUN NAMES mpirun.openmpi mpirun REQUIRED)

# If there are more ranks than cores, ranks yield instead of spinning; root and oversubscription are for tests and
# containers.
set(TESSERA_MPI_TEST_COMMAND ${TESSERA_MPIRUN} --allow-run-as-root --oversubscribe --bind-to none
    -x OMP_NUM_THREADS=1 --mca mpi_yield_when_idle 1)

# Code that is only a test links this. -O1: it is compiled once and run once, so most of the time is the compiler's.
add_library(tessera_test_flags INTERFACE)
target_link_libraries(tessera_test_flags INTERFACE tessera_flags GTest::gtest)
target_compile_options(tessera_test_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
target_include_directories(tessera_test_flags INTERFACE ${CMAKE_SOURCE_DIR}/tests)
target_compile_definitions(tessera_test_flags INTERFACE
  TESSERA_SOURCE_FOLDER="${CMAKE_SOURCE_DIR}" TESSERA_TEST_DATA_FOLDER="${CMAKE_SOURCE_DIR}/tests/data")

# test_program(NAME SOURCES ... [LIBRARIES ...] [OWN_MAIN]): links libtessera and shares a precompiled header with
# libtorch and GoogleTest.
function(test_program name)
  cmake_parse_arguments(arg "OWN_MAIN" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  compile_together(${name} 16)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  target_link_libraries(${name} PRIVATE tessera_test_flags libtessera ${arg_LIBRARIES})
  if(NOT arg_OWN_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  target_precompile_headers(${name} REUSE_FROM tessera_test_pch)
  # For ./x test -R: where the program's tests stand.
  set(files)
  foreach(source ${arg_SOURCES})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE file)
    list(APPEND files ${file})
  endforeach()
  list(JOIN files "\n" lines)
  file(WRITE ${CMAKE_BINARY_DIR}/test_programs/${name}.sources "${lines}\n")
endfunction()

# GoogleTest calls it a success when a filter leaves nothing to run.
set(ran_nothing "=. 0 tests from")

# run_in_parts(NAME PARTS n [ENVIRONMENT NAME=value] [FILTER f]): runs the program as n ctest tests, each with a part of
# its TESTs.
function(run_in_parts name)
  cmake_parse_arguments(arg "" "PARTS;ENVIRONMENT;FILTER;LABEL" "" ${ARGN})
  if(NOT arg_FILTER)
    set(arg_FILTER *)
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL ${name})
  endif()
  math(EXPR last "${arg_PARTS} - 1")
  foreach(part RANGE ${last})
    add_test(NAME ${arg_LABEL}.${part} COMMAND ${name} --gtest_brief=1 --gtest_filter=${arg_FILTER})
    set_tests_properties(${arg_LABEL}.${part} PROPERTIES TIMEOUT 600 FAIL_REGULAR_EXPRESSION "${ran_nothing}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${part};${arg_ENVIRONMENT}")
  endforeach()
endfunction()

# run_by_suite(NAME SOURCES ...): one ctest test per suite of GoogleTest, with the suite's name. Finding suites in the
# sources takes no start of the program, and a start of one that loads libtorch takes half a second.
function(run_by_suite name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_SOURCES})
  set(suites)
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} lines REGEX "^TEST(_F|_P)?[(]")
    list(TRANSFORM lines REPLACE "^TEST(_F|_P)?[(]([A-Za-z0-9_]+),.*" "\\2")
    list(APPEND suites ${lines})
  endforeach()
  list(REMOVE_DUPLICATES suites)
  foreach(suite ${suites})
    add_test(NAME ${suite} COMMAND ${name} --gtest_brief=1 --gtest_filter=${suite}.*:*/${suite}.*)
  endforeach()
  set_tests_properties(${suites} PROPERTIES TIMEOUT 600 FAIL_REGULAR_EXPRESSION "${ran_nothing}")
endfunction()

# run_on_ranks(NAME RANKS 2 3 4): runs the program under mpirun, one ctest test per number of ranks.
function(run_on_ranks name)
  cmake_parse_arguments(arg "" "" "RANKS" ${ARGN})
  list(JOIN TESSERA_MPI_TEST_COMMAND "\n" starter)
  file(WRITE ${CMAKE_BINARY_DIR}/test_programs/${name}.starter "${starter}\n-np\n2\n")
  foreach(ranks ${arg_RANKS})
    add_test(NAME ${name}.${ranks}_ranks COMMAND ${TESSERA_MPI_TEST_COMMAND} -np ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.${ranks}_ranks PROPERTIES TIMEOUT 300 PROCESSORS 2
      FAIL_REGULAR_EXPRESSION "${ran_nothing}")
  endforeach()
endfunction()
