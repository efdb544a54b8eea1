# The layers of src/, as src/layers.txt lists them: one static library each, tessera_NAME.
set(TESSERA_LAYERS_FILE ${CMAKE_SOURCE_DIR}/src/layers.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TESSERA_LAYERS_FILE})
file(STRINGS ${TESSERA_LAYERS_FILE} layer_lines REGEX "^[a-z]+ ")
set(TESSERA_LAYERS "")
foreach(line IN LISTS layer_lines)
  string(REGEX REPLACE " +" ";" words "${line}")
  list(POP_FRONT words layer)
  set(TESSERA_LAYER_HAS_TORCH_${layer} ON)
  set(TESSERA_LAYER_OPTIONS_${layer} "")
  if(no-torch IN_LIST words)
    set(TESSERA_LAYER_HAS_TORCH_${layer} OFF)
  endif()
  if(hot IN_LIST words)
    set(TESSERA_LAYER_OPTIONS_${layer} $<$<CONFIG:RelWithDebInfo>:-O3>)
  elseif(cold IN_LIST words AND NOT (CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|i.86" AND
                                    CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
    # On x86 -O2 of g++ 13 brings machine options of its own, and it takes the shared precompiled header only with the
    # same ones.
    set(TESSERA_LAYER_OPTIONS_${layer} -O1)
  endif()
  list(REMOVE_ITEM words no-torch hot cold)
  foreach(used IN LISTS words)
    if(NOT used IN_LIST TESSERA_LAYERS)
      message(FATAL_ERROR "src/layers.txt: ${layer} uses ${used}, which does not stand above it")
    endif()
  endforeach()
  set(TESSERA_LAYER_USES_${layer} ${words})
  list(APPEND TESSERA_LAYERS ${layer})
endforeach()

# layer_sources(VARIABLE LAYER): every .cc of the layer's folder and its subfolders except tests, programs and what is
# loaded at run time: the CUDA flavour's own files, comm/mpi/ and data/arrow/.
function(layer_sources variable layer)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${layer}/*.cc ${CMAKE_SOURCE_DIR}/src/${layer}/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|_for_test|[/_]main|/cuda_(support|adapters|block|decoder|products)|/comm/mpi/[a-z_]+|/data/arrow/[a-z_]+)\\.cc$")
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# compile_together(TARGET MOST): its sources as a few files of equal size, each of at most MOST sources. A file that
# includes libtorch or nlohmann's JSON spends most of its compile time on their headers and templates, so that few files
# are fast and one more is dear.
function(compile_together target most)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR files "(${count} + ${most} - 1) / ${most}")
  math(EXPR batch "(${count} + ${files} - 1) / ${files}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TESSERA_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
endfunction()

# tessera_layer(NAME): called in the layer's own CMakeLists.txt.
function(tessera_layer layer)
  layer_sources(sources ${layer})
  add_library(tessera_${layer} STATIC ${sources})
  list(TRANSFORM TESSERA_LAYER_USES_${layer} PREPEND tessera_ OUTPUT_VARIABLE used)
  target_include_directories(tessera_${layer} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(tessera_${layer} PRIVATE tessera_flags PUBLIC ${used} fmt::fmt nlohmann_json::nlohmann_json
    Threads::Threads)
  compile_together(tessera_${layer} 27)
  # g++ lets a class of the main file use that file's anonymous types; in a unity file no file is the main one.
  target_compile_options(tessera_${layer} PRIVATE ${TESSERA_LAYER_OPTIONS_${layer}}
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  if(TESSERA_LAYER_HAS_TORCH_${layer})
    target_link_libraries(tessera_${layer} PUBLIC tessera_torch)
    target_precompile_headers(tessera_${layer} REUSE_FROM tessera_pch)
  endif()
endfunction()
