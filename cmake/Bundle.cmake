# Run by the install script, last: does nothing unless TESSERA_BUNDLE is set. Makes a prefix that runs elsewhere: copies
# the small libraries that ours need and removes every path of this machine. Left to the target are libc, libstdc++ and
# libgcc, which torch needs too, torch itself with its libgomp, MPI, and pyarrow.
if(NOT TESSERA_BUNDLE)
  return()
endif()
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
file(GLOB libraries "${prefix}/lib/lib*.so")
string(REPLACE ":" ";" module_folders "$ENV{LD_LIBRARY_PATH}")
file(GET_RUNTIME_DEPENDENCIES
  DIRECTORIES ${module_folders}
  LIBRARIES ${libraries}
  EXECUTABLES "${prefix}/bin/tessera" "${prefix}/bin/tessera-minder"
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES
    "^lib(tessera|torch|c10|gomp|mpi|open-|cu|nv|arrow|parquet)" "^lib(stdc\\+\\+|gcc_s|c|m|rt|dl|pthread)\\.so" "^ld-linux")
if(missing)
  message(FATAL_ERROR "not found, so not in the bundle: ${missing}")
endif()
foreach(library IN LISTS found)
  get_filename_component(name "${library}" NAME)  # its soname: what others ask for
  file(REAL_PATH "${library}" file)
  message(STATUS "Bundling: ${name}")
  file(COPY_FILE "${file}" "${prefix}/lib/${name}")
endforeach()
foreach(file IN LISTS libraries ITEMS "${prefix}/bin/tessera" "${prefix}/bin/tessera-minder")
  set(rpath "${bundle_rpath}")
  if(file MATCHES "/libtessera_arrow[.]so$")
    set(rpath "${bundle_arrow_rpath}")
  endif()
  string(REPLACE ";" ":" rpath "${rpath}")
  file(RPATH_SET FILE "${file}" NEW_RPATH "${rpath}")
endforeach()
# The package finds libtorch by its own place alone.
file(READ "${prefix}/${package_dir}/tesseraConfig.cmake" config)
string(REPLACE "${build_torch}" "" config "${config}")
file(WRITE "${prefix}/${package_dir}/tesseraConfig.cmake" "${config}")
