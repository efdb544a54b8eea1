# `cmake --install` puts the program, the libraries, the public headers and a CMake package below the prefix, which may
# be moved afterwards. libtorch is not copied: the package records where the one is that it was built with.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")
file(RELATIVE_PATH bin_to_lib "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${CMAKE_INSTALL_LIBDIR}")
set(tessera_libraries libtessera)
if(TESSERA_CUDA)
  list(APPEND tessera_libraries tessera_cuda)
endif()
# Each library finds its neighbours relative to its own location, and libtorch, with the libgomp that came with it,
# where it was at link time. These folders are named here: CMake leaves out folders inside the source folder, such as
# .deps/.
set(torch_folders "${TORCH_DIR}/lib")
if(EXISTS "${TORCH_DIR}/../torch.libs")
  get_filename_component(torch_libs "${TORCH_DIR}/../torch.libs" ABSOLUTE)
  list(APPEND torch_folders "${torch_libs}")
endif()
set_target_properties(${tessera_libraries} PROPERTIES
  INSTALL_RPATH "$ORIGIN;${torch_folders}" INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(tessera PROPERTIES
  INSTALL_RPATH "$ORIGIN/${bin_to_lib};${torch_folders}" INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS ${tessera_libraries} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS tessera tessera_minder RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# To read and to copy from; the program has its own copy inside.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/experiments" DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera" PATTERN tiny EXCLUDE)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/tessera" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")

configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/tesseraConfig.cmake.in" "${CMAKE_BINARY_DIR}/tesseraConfig.cmake"
  INSTALL_DESTINATION "${package_dir}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
# Before 1.0, a different minor version may have a different interface.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/tesseraConfig.cmake" "${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake"
  DESTINATION "${package_dir}")
