# libsodium, as `tessera_sodium`: keyed hashes and random numbers for the meeting of ranks (comm/meeting/), and hashes of
# tokenizers (data/tokenizer/tokenizer_file.cc).
# A machine may have the library without the header, so .deps is searched too.
find_path(TESSERA_SODIUM_INCLUDE sodium.h PATHS ${CMAKE_SOURCE_DIR}/.deps/include)
# Not libsodium.a: distributions compile it for programs, so on x86-64 it cannot go into libtessera.so.
find_library(TESSERA_SODIUM_LIBRARY NAMES libsodium.so libsodium.so.23 PATHS ${CMAKE_SOURCE_DIR}/.deps/lib)
if(NOT TESSERA_SODIUM_INCLUDE OR NOT TESSERA_SODIUM_LIBRARY)
  message(FATAL_ERROR "libsodium is missing: sodium.h and libsodium.so (Debian and Ubuntu: libsodium-dev)")
endif()
add_library(tessera_sodium INTERFACE)
target_include_directories(tessera_sodium SYSTEM INTERFACE ${TESSERA_SODIUM_INCLUDE})
target_link_libraries(tessera_sodium INTERFACE ${TESSERA_SODIUM_LIBRARY})
