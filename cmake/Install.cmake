# `cmake --install` puts the program, the libraries, the public headers and a CMake package below the prefix, which may
# be moved afterwards. Each library finds its neighbours relative to its own place, and libtorch, with the libgomp that
# came with it, where it was at link time: that is a prefix on the machine that built it.
#
# With -DTESSERA_BUNDLE=ON, given to the install script (tools/package.sh does), nothing points to this machine: libtorch
# is looked for in the prefix itself and, as in a wheel, in the folder beside it, and small libraries are copied in.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_LIBDIR lib)  # everywhere: the paths below and a wheel's are relative to it

set(package_dir lib/cmake/tessera)
set(tessera_libraries libtessera tessera_mpi)
if(TESSERA_CUDA)
  list(APPEND tessera_libraries tessera_cuda)
endif()
set(bundle_rpath "$ORIGIN/../lib;$ORIGIN/../../torch/lib;$ORIGIN/../../torch.libs")
# Named here: CMake leaves out folders inside the source folder, such as .deps/.
set(torch_folders "${TORCH_DIR}/lib")
if(EXISTS "${TORCH_DIR}/../torch.libs")
  get_filename_component(torch_libs "${TORCH_DIR}/../torch.libs" ABSOLUTE)
  list(APPEND torch_folders "${torch_libs}")
endif()
# The bundle's folders, too: a path in a file can be made shorter afterwards, not longer.
set_target_properties(${tessera_libraries} tessera tessera_minder PROPERTIES
  INSTALL_RPATH "${bundle_rpath};${torch_folders}" INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS ${tessera_libraries} LIBRARY DESTINATION lib)
# pyarrow lies beside a wheel's folder, or is put into a tarball's.
set(bundle_arrow_rpath "$ORIGIN/../../pyarrow;$ORIGIN/../pyarrow")
if(TARGET tessera_arrow)
  set_target_properties(tessera_arrow PROPERTIES INSTALL_RPATH "${bundle_arrow_rpath};${PYARROW_DIR}")
  install(TARGETS tessera_arrow LIBRARY DESTINATION lib)
endif()
install(TARGETS tessera tessera_minder RUNTIME DESTINATION bin)
# To read and to copy from; the program has its own copy inside.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/experiments" DESTINATION share/tessera PATTERN tiny EXCLUDE)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/examples/demo" DESTINATION share/tessera)
install(PROGRAMS "${CMAKE_SOURCE_DIR}/tools/demo.sh" DESTINATION share/tessera/demo)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/tessera" DESTINATION include FILES_MATCHING PATTERN "*.h")

configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/tesseraConfig.cmake.in" "${CMAKE_BINARY_DIR}/tesseraConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
# Before 1.0, a different minor version may have a different interface.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/tesseraConfig.cmake" "${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake"
  DESTINATION "${package_dir}")

# What the installed program prints about itself, while it still finds libtorch where it was built; then the bundle.
install(CODE "set(build_torch \"${TORCH_DIR}\")\nset(bundle_rpath \"${bundle_rpath}\")\nset(bundle_arrow_rpath \"${bundle_arrow_rpath}\")\nset(package_dir \"${package_dir}\")")
install(SCRIPT "${CMAKE_SOURCE_DIR}/cmake/InstallTexts.cmake")
install(SCRIPT "${CMAKE_SOURCE_DIR}/cmake/Bundle.cmake")
