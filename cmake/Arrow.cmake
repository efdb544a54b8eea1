# Apache Arrow's C++ library as it lies in PyPI's pyarrow, headers included: the target `tessera_pyarrow`. Where there is
# none of the pinned version there is no target, no plug-in (libtessera_arrow.so), and Parquet and Arrow files are refused.
set(PYARROW_DIR "" CACHE PATH "The pyarrow package's folder, the one that holds include/ and libarrow.so.* (./x finds it)")
if(NOT PYARROW_DIR)
  set(PYARROW_DIR "${CMAKE_SOURCE_DIR}/.deps/pyarrow/pyarrow")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/setup_arrow.sh)
file(STRINGS ${CMAKE_SOURCE_DIR}/tools/setup_arrow.sh line REGEX "^PYARROW_VERSION=")
string(REGEX MATCH "[0-9]+[.][0-9]+" TESSERA_PYARROW_VERSION "${line}")  # patch releases keep the C++ interface
set(found "none")
set(config "${PYARROW_DIR}/include/arrow/util/config.h")
if(EXISTS "${config}")
  file(STRINGS "${config}" lines REGEX "define ARROW_(SO_)?VERSION(_STRING)? ")
  string(REGEX REPLACE ".*ARROW_VERSION_STRING \"([0-9]+[.][0-9]+).*" "\\1" found "${lines}")
  string(REGEX REPLACE ".*ARROW_SO_VERSION \"([0-9]+).*" "\\1" so_version "${lines}")
endif()
if(NOT found STREQUAL TESSERA_PYARROW_VERSION)
  message(STATUS "pyarrow ${TESSERA_PYARROW_VERSION}: ${found} in ${PYARROW_DIR}, so Parquet and Arrow files will not be read")
  return()
endif()
message(STATUS "pyarrow ${found} in ${PYARROW_DIR}")

set(TESSERA_PARQUET_LIBRARY libparquet.so.${so_version})
add_library(tessera_pyarrow INTERFACE)
target_include_directories(tessera_pyarrow SYSTEM INTERFACE "${PYARROW_DIR}/include")
target_link_libraries(tessera_pyarrow INTERFACE
  "${PYARROW_DIR}/libarrow.so.${so_version}" "${PYARROW_DIR}/${TESSERA_PARQUET_LIBRARY}")
