# Tests: `_test.cc` files beside the code, one program a layer; several ranks through mpirun.
enable_testing()
find_package(GTest REQUIRED)
include(GoogleTest)
find_program(TESSERA_MPIRUN NAMES mpirun.openmpi mpirun REQUIRED)

# More ranks than cores yield instead of spinning; root and oversubscription are for tests and containers.
set(TESSERA_MPI_TEST_COMMAND ${TESSERA_MPIRUN} --allow-run-as-root --oversubscribe --bind-to none
    -x OMP_NUM_THREADS=1 --mca mpi_yield_when_idle 1)

# What is only ever a test links this. -O1: compiled once and run once, most of their time is the compiler's.
add_library(tessera_test_flags INTERFACE)
target_link_libraries(tessera_test_flags INTERFACE tessera_flags GTest::gtest)
target_compile_options(tessera_test_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
target_include_directories(tessera_test_flags INTERFACE ${CMAKE_SOURCE_DIR}/tests)
target_compile_definitions(tessera_test_flags INTERFACE
  TESSERA_SOURCE_FOLDER="${CMAKE_SOURCE_DIR}" TESSERA_TEST_DATA_FOLDER="${CMAKE_SOURCE_DIR}/tests/data")

# tests_include_torch(target...): they share a precompiled header of libtorch and GoogleTest. It is made with MPI's
# definitions: the same ones for them, though they may not know MPI.
function(tests_include_torch)
  foreach(target ${ARGN})
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:MPI::MPI_CXX,INTERFACE_COMPILE_DEFINITIONS>)
    target_precompile_headers(${target} REUSE_FROM tessera_test_pch)
  endforeach()
endfunction()

# tessera_test(name SOURCES ... LIBRARIES ... [ENVIRONMENT NAME=value]): every TEST is a test of ctest.
function(tessera_test name)
  cmake_parse_arguments(arg "" "ENVIRONMENT" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tessera_test_flags ${arg_LIBRARIES} GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 120 ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# tessera_mpi_test(name RANKS 2 3 4 SOURCES ... LIBRARIES ...): the program under mpirun, one test a number of ranks.
function(tessera_mpi_test name)
  cmake_parse_arguments(arg "" "" "RANKS;SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tessera_test_flags ${arg_LIBRARIES})
  foreach(ranks ${arg_RANKS})
    add_test(NAME ${name}.${ranks}_ranks COMMAND ${TESSERA_MPI_TEST_COMMAND} -np ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.${ranks}_ranks PROPERTIES TIMEOUT 300 PROCESSORS 2)
  endforeach()
endfunction()

# tessera_command_program(name SOURCES ... LIBRARIES ...): tests that start `tessera` as users do.
function(tessera_command_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/tests/comm_test/program.cc)
  target_link_libraries(${name} PRIVATE tessera_test_flags ${arg_LIBRARIES} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    TESSERA_BUILT_BINARY="$<TARGET_FILE:tessera>" TESSERA_MPIRUN="${TESSERA_MPIRUN}")
  add_dependencies(${name} tessera)
endfunction()

# tessera_command_test(name SOURCES ... LIBRARIES ... [TIMEOUT 120] [PROCESSORS 1]): every TEST is a test of ctest.
function(tessera_command_test name)
  set(arg_TIMEOUT 120)
  set(arg_PROCESSORS 1)
  cmake_parse_arguments(given "" "TIMEOUT;PROCESSORS" "" ${ARGN})
  foreach(key TIMEOUT PROCESSORS)
    if(given_${key})
      set(arg_${key} ${given_${key}})
    endif()
  endforeach()
  tessera_command_program(${name} ${given_UNPARSED_ARGUMENTS})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS})
endfunction()
