# An overlay port: it builds the checkout that it stands in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.."
  ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS EXTRAS
  FEATURES
    extras DDBMUTEX_EXTRAS
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${EXTRAS} -DBUILD_TESTING=OFF -DDDBMUTEX_COMMAND=OFF
)
vcpkg_cmake_install()
# pkg-config finds the library; the files for CMake are for another layout.
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/lib/cmake"
  "${CURRENT_PACKAGES_DIR}/debug/lib/cmake"
  "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
