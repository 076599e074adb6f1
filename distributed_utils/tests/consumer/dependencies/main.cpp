// Calls something of every library that has to be linked, and prints what came of it.
#include <benchmark/benchmark.h>
#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <cxxopts.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  benchmark::Initialize(&argc, argv);
  cxxopts::Options options("dependencies");
  options.add_options()("n", "a number", cxxopts::value<int>()->default_value("1"));
  pugi::xml_document document;
  document.load_string("<a n='3'/>");
  std::cout << options.parse(argc, argv)["n"].as<int>() << YAML::Load("[1, 2]")[1].as<int>()
            << document.child("a").attribute("n").as_int() << nlohmann::json::parse("[4]")[0]
            << '\n';
}
