# Installs distributed_utils as a package of its own (cmake --install <build> --component distributed_utils).
include(CMakePackageConfigHelpers)

set(_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/distributed_utils")
if(NOT LIBTORCH_CUDA)
  set(LIBTORCH_CUDA OFF)
endif()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/distributed_utilsConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/distributed_utilsConfig.cmake" INSTALL_DESTINATION "${_package_folder}")
# Before 1.0 every minor version may change what programs see.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/distributed_utilsConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)

install(TARGETS distributed_utils EXPORT distributed_utilsTargets COMPONENT distributed_utils)
install(DIRECTORY include/distributed_utils DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT distributed_utils)
install(EXPORT distributed_utilsTargets NAMESPACE distributed_utils:: DESTINATION "${_package_folder}"
  COMPONENT distributed_utils)
install(FILES "${CMAKE_CURRENT_LIST_DIR}/LibTorch.cmake" "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp"
  "${CMAKE_CURRENT_BINARY_DIR}/distributed_utilsConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/distributed_utilsConfigVersion.cmake"
  DESTINATION "${_package_folder}" COMPONENT distributed_utils)
