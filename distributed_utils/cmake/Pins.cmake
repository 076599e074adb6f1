# Every library beside LibTorch, once: where its sources come from, pinned by hash, how they are used,
# and which Debian packages hold it. Included by Dependencies.cmake and, as a script, by Prefetch.cmake.

# pin(<package> URL <url> HASH <algorithm=value> DEBIAN <package>...
#     TARGETS <names as find_package defines them>...
#     then either HEADERS <folder in the sources with headers, all that a header-only library needs>
#     or [OPTIONS <CACHE_NAME=VALUE>...] [BUILT_AS <targets of its own CMake, in the order of TARGETS>...])
set(WORLDSIZE_PINS)
macro(pin package)
  list(APPEND WORLDSIZE_PINS ${package})
  cmake_parse_arguments(PIN_${package} "" "URL;HASH;HEADERS" "DEBIAN;TARGETS;OPTIONS;BUILT_AS" ${ARGN})
endmacro()

pin(GTest
  URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
  HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
  DEBIAN libgtest-dev libgmock-dev
  TARGETS GTest::gtest GTest::gtest_main GTest::gmock GTest::gmock_main
  BUILT_AS gtest gtest_main gmock gmock_main
  OPTIONS INSTALL_GTEST=OFF)

pin(benchmark
  URL https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz
  HASH SHA256=6bc180a57d23d4d9515519f92b0c83d61b05b5bab188961f36ac7b06b0d9e9ce
  DEBIAN libbenchmark-dev
  TARGETS benchmark::benchmark benchmark::benchmark_main
  BUILT_AS benchmark benchmark_main
  OPTIONS BENCHMARK_ENABLE_TESTING=OFF BENCHMARK_ENABLE_INSTALL=OFF BENCHMARK_ENABLE_WERROR=OFF)

# 0.8 and older do not build with CMake 4 and GCC 15.
pin(yaml-cpp
  URL https://github.com/jbeder/yaml-cpp/archive/refs/tags/yaml-cpp-0.9.0.tar.gz
  HASH SHA256=25cb043240f828a8c51beb830569634bc7ac603978e0f69d6b63558dadefd49a
  DEBIAN libyaml-cpp-dev
  TARGETS yaml-cpp::yaml-cpp
  BUILT_AS yaml-cpp
  OPTIONS YAML_CPP_BUILD_TESTS=OFF YAML_CPP_BUILD_TOOLS=OFF YAML_CPP_BUILD_CONTRIB=OFF YAML_CPP_INSTALL=OFF
          YAML_CPP_FORMAT_SOURCE=OFF)

pin(pugixml
  URL https://github.com/zeux/pugixml/releases/download/v1.14/pugixml-1.14.tar.gz
  HASH SHA256=2f10e276870c64b1db6809050a75e11a897a8d7456c4be5c6b2e35a11168a015
  DEBIAN libpugixml-dev
  TARGETS pugixml::pugixml
  BUILT_AS pugixml-static
  OPTIONS PUGIXML_INSTALL=OFF)

pin(cxxopts
  URL https://github.com/jarro2783/cxxopts/archive/refs/tags/v3.1.1.tar.gz
  HASH SHA256=523175f792eb0ff04f9e653c90746c12655f10cb70f1d5e6d6d9491420298a08
  DEBIAN libcxxopts-dev
  TARGETS cxxopts::cxxopts
  HEADERS include)

pin(nlohmann_json
  URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
  HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d
  DEBIAN nlohmann-json3-dev
  TARGETS nlohmann_json::nlohmann_json
  HEADERS include)

# The commit that torch 2.11.0 was built with. Only headers are taken: gloo's code is in libtorch_cpu.so.
pin(gloo
  URL https://github.com/facebookincubator/gloo/archive/3135b0b41b67dde590eef0938a0bf3d6238df5f7.tar.gz
  HASH SHA512=32a45ed9fe1f28cce3ca95640bd87b638c122c1a33cbb29f6761feb6ae0bd10db53de6f4abe79991e08797551b783b7244446f11a094c1707cc54ce4ecb29ad6
  DEBIAN libgloo-dev
  TARGETS gloo::headers
  HEADERS .)
