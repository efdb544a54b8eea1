# Tests: `_test.cc` files beside the code, one program a layer; several ranks through mpirun.
enable_testing()
find_package(GTest REQUIRED)
include(GoogleTest)
find_program(TESSERA_MPIRUN NAMES mpirun.openmpi mpirun REQUIRED)

# More ranks than cores yield instead of spinning; root and oversubscription are for tests and containers.
set(TESSERA_MPI_TEST_COMMAND ${TESSERA_MPIRUN} --allow-run-as-root --oversubscribe --bind-to none
    -x OMP_NUM_THREADS=1 --mca mpi_yield_when_idle 1)

# tessera_test(name SOURCES ... LIBRARIES ... [ENVIRONMENT NAME=value]): every TEST is a test of ctest.
function(tessera_test name)
  cmake_parse_arguments(arg "" "ENVIRONMENT" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tessera_flags ${arg_LIBRARIES} GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 120 ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# tessera_mpi_test(name RANKS 2 3 4 SOURCES ... LIBRARIES ...): the program under mpirun, one test a number of ranks.
function(tessera_mpi_test name)
  cmake_parse_arguments(arg "" "" "RANKS;SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tessera_flags ${arg_LIBRARIES} GTest::gtest)
  foreach(ranks ${arg_RANKS})
    add_test(NAME ${name}.${ranks}_ranks COMMAND ${TESSERA_MPI_TEST_COMMAND} -np ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.${ranks}_ranks PROPERTIES TIMEOUT 300 PROCESSORS 2)
  endforeach()
endfunction()
