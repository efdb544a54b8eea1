# The tokenizer's files, and PCRE2 if present: included by the tokenizer's CMakeLists.txt and by the fuzzer's.
#
# PCRE2 handles expressions other than GPT-2's and BLOOM's, which are scanned by hand. A machine may have the library
# but not the header: .deps/include is searched too.
set(TESSERA_TOKENIZER_SOURCES
  added_tokens.cc bpe.cc bpe_file.cc byte_level.cc code_point_set.cc component.cc decoder.cc expression.cc
  expression_class.cc normal_form.cc normalizer.cc pcre_pattern.cc post_processor.cc pre_tokenizer.cc replace.cc
  scanners.cc tokenizer.cc tokenizer_file.cc unicode.cc utf8.cc)

find_path(TESSERA_PCRE2_INCLUDE pcre2.h PATHS ${CMAKE_SOURCE_DIR}/.deps/include)
find_library(TESSERA_PCRE2_LIBRARY NAMES pcre2-8 libpcre2-8.so.0)
if(NOT TARGET tessera_pcre2)
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
endif()
