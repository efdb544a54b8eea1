# PCRE2 if present, as `tessera_pcre2`: it reads tokenizers' expressions other than GPT-2's and BLOOM's, which are
# scanned by hand. A machine may have the library without the header, so .deps/include is searched too.
find_path(TESSERA_PCRE2_INCLUDE pcre2.h PATHS ${CMAKE_SOURCE_DIR}/.deps/include)
find_library(TESSERA_PCRE2_LIBRARY NAMES pcre2-8 libpcre2-8.so.0)
add_library(tessera_pcre2 INTERFACE)
if(TESSERA_PCRE2_INCLUDE AND TESSERA_PCRE2_LIBRARY)
  target_include_directories(tessera_pcre2 SYSTEM INTERFACE ${TESSERA_PCRE2_INCLUDE})
  target_compile_definitions(tessera_pcre2 INTERFACE TESSERA_HAS_PCRE2)
  target_link_libraries(tessera_pcre2 INTERFACE ${TESSERA_PCRE2_LIBRARY})
else()
  set(missing "the library pcre2-8")
  if(NOT TESSERA_PCRE2_INCLUDE)
    set(missing "the header pcre2.h")
  endif()
  message(STATUS "Tokenizer: without PCRE2 (${missing} is missing; Debian and Ubuntu: libpcre2-dev): only GPT-2's "
                 "and BLOOM's expressions, others are refused")
endif()
