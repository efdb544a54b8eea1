# Oniguruma if present, as `tessera_oniguruma`: it matches tokenizers' expressions other than those of BLOOM, GPT-2,
# GPT-4o, Llama 3, Qwen 2 and tekken, which are scanned by hand. A machine may have the library without the header, so .deps/include is
# searched too.
find_path(TESSERA_ONIGURUMA_INCLUDE oniguruma.h PATHS ${CMAKE_SOURCE_DIR}/.deps/include)
find_library(TESSERA_ONIGURUMA_LIBRARY NAMES onig libonig.so.5)
add_library(tessera_oniguruma INTERFACE)
if(TESSERA_ONIGURUMA_INCLUDE AND TESSERA_ONIGURUMA_LIBRARY)
  target_include_directories(tessera_oniguruma SYSTEM INTERFACE ${TESSERA_ONIGURUMA_INCLUDE})
  target_compile_definitions(tessera_oniguruma INTERFACE TESSERA_HAS_ONIGURUMA)
  target_link_libraries(tessera_oniguruma INTERFACE ${TESSERA_ONIGURUMA_LIBRARY})
else()
  set(missing "the library onig")
  if(NOT TESSERA_ONIGURUMA_INCLUDE)
    set(missing "the header oniguruma.h")
  endif()
  message(STATUS "Tokenizer: without Oniguruma (${missing} is missing; Debian and Ubuntu: libonig-dev): only the "
                 "expressions of BLOOM, GPT-2, GPT-4o, Llama 3, Qwen 2 and tekken; others are refused")
endif()
