# yaml-cpp if present, as `tessera_yaml`: `tessera import` reads accelerate's configuration files with it. The shared
# library: distributions compile the static one for programs, so it cannot go into libtessera.so.
find_path(TESSERA_YAML_INCLUDE yaml-cpp/yaml.h PATHS ${CMAKE_SOURCE_DIR}/.deps/include)
find_library(TESSERA_YAML_LIBRARY NAMES libyaml-cpp.so PATHS ${CMAKE_SOURCE_DIR}/.deps/lib)
add_library(tessera_yaml INTERFACE)
if(TESSERA_YAML_INCLUDE AND TESSERA_YAML_LIBRARY)
  target_include_directories(tessera_yaml SYSTEM INTERFACE ${TESSERA_YAML_INCLUDE})
  target_compile_definitions(tessera_yaml INTERFACE TESSERA_HAS_YAML)
  target_link_libraries(tessera_yaml INTERFACE ${TESSERA_YAML_LIBRARY})
else()
  set(missing "the library libyaml-cpp.so")
  if(NOT TESSERA_YAML_INCLUDE)
    set(missing "the header yaml-cpp/yaml.h")
  endif()
  message(STATUS "Import: without yaml-cpp (${missing} is missing; Debian and Ubuntu: libyaml-cpp-dev): accelerate's "
                 "configuration files are refused")
endif()
