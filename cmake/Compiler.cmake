# How our own code is compiled: warnings are errors with the compiler of CI; the fastest linker and the compiler cache are
# used if present.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
add_compile_options(-fPIC)  # everywhere, programs too: they share the precompiled header
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")  # src/layers.txt says which layers need more, or less
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

# All our targets link this; our warnings apply only to them.
add_library(tessera_flags INTERFACE)
target_compile_options(tessera_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow>)
# Other compilers warn about other things: shown, but a user's build must not fail for that.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tessera_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 warns falsely about "literal" + std::string at -O3 (its bug 105651), g++ 13 about the std::vector<bool> in
  # libtorch's autograd functions.
  target_compile_options(tessera_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()

if(TESSERA_SANITIZE)
  # With a sanitizer, g++ 12 wrongly takes parts of std::regex for uninitialised.
  add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer -Wno-error=maybe-uninitialized)
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
endif()

if(TESSERA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()

# An RPATH in place of a RUNPATH: it goes before LD_LIBRARY_PATH, where clusters' modules and conda put other versions of
# torch's libraries and of ours.
add_link_options(-Wl,--disable-new-dtags)

find_program(TESSERA_MOLD mold)
find_program(TESSERA_LLD ld.lld)
if(TESSERA_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(TESSERA_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# ccache can serve files that use a precompiled header only if told to ignore their macros.
find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TESSERA_CCACHE})
endif()
