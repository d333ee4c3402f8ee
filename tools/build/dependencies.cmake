# Every library that Signalbox is built with, in one place. Debian package names are in tools/build/packages.txt.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Ceres REQUIRED)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS unit_test_framework)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(zmq REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

# Debian's CAF ships no CMake package.
add_library(signalbox_caf INTERFACE)
find_library(CAF_CORE_LIBRARY caf_core REQUIRED)
find_path(CAF_INCLUDE_DIR caf/all.hpp REQUIRED)
target_link_libraries(signalbox_caf INTERFACE ${CAF_CORE_LIBRARY} Threads::Threads)

# MessagePack without its Boost adaptors: they pull in headers that we do not use.
add_library(signalbox_msgpack INTERFACE)
find_path(MSGPACK_INCLUDE_DIR msgpack.hpp REQUIRED)
target_compile_definitions(signalbox_msgpack INTERFACE MSGPACK_NO_BOOST)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
