#include "tasks/options.hpp"

#include <array>

#include "errors.hpp"
#include "some_table.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Options parse(std::vector<const char*> arguments, const Abilities& abilities = {}) {
  const auto table = some_table();
  arguments.insert(arguments.begin(), "train");
  return parse_options(table, static_cast<int>(arguments.size()), arguments.data(), abilities);
}

std::string error_of_arguments(const std::vector<const char*>& arguments) {
  return error_of([&] { parse(arguments); });
}

TEST(Options, ComeFromTheFirstTasksFirstConfiguration) {
  const auto options = parse({});
  EXPECT_EQ(options.task, "language_model");
  EXPECT_EQ(options.config, "laptop");
  EXPECT_EQ(options.epochs, 4);
  EXPECT_EQ(options.batch_size, 32);
  EXPECT_EQ(options.max_steps, 0);
  EXPECT_EQ(options.precision, torch::kFloat32);
  EXPECT_EQ(options.device, std::nullopt);
  EXPECT_EQ(options.data, std::nullopt);
  EXPECT_EQ(options.output, "output");
  EXPECT_FALSE(options.monitor);
}

TEST(Options, MonitoringCanBeAskedForAndRefused) {
  EXPECT_TRUE(parse({"--monitor"}).monitor);
  EXPECT_FALSE(parse({"--monitor=false"}).monitor);
  // What comes last counts: a script may ask for it, its user refuse it.
  EXPECT_FALSE(parse({"--monitor", "--monitor=false"}).monitor);
  setenv("WORLDSIZE_MONITOR", "true", 1);
  EXPECT_TRUE(parse({}).monitor);
  EXPECT_FALSE(parse({"--monitor=false"}).monitor);
  setenv("WORLDSIZE_MONITOR", "perhaps", 1);
  EXPECT_THAT(error_of_arguments({}),
              HasSubstr("WORLDSIZE_MONITOR: expected true or false, got 'perhaps'"));
  unsetenv("WORLDSIZE_MONITOR");
}

TEST(Options, OnlySomeTrainersStartFromAModel) {
  EXPECT_EQ(parse({}, {.starts = true}).from, std::nullopt);
  EXPECT_EQ(parse({"--from", "output/model-best"}, {.starts = true}).from, "output/model-best");
  EXPECT_THAT(error_of_arguments({"--from", "output/model-best"}),
              HasSubstr("this trainer starts from no saved model"));
}

TEST(Options, OfTheCommandLineComeBeforeTheConfigurations) {
  const auto options = parse({"--config", "seed", "--epochs=7", "--data", "here", "--output",
                              "there", "--max-steps", "12", "--seed", "5", "--deterministic",
                              "--device", "cuda:1", "--backend", "gloo", "--threads", "2"});
  EXPECT_EQ(options.config, "seed");
  EXPECT_EQ(options.epochs, 7);
  EXPECT_EQ(options.batch_size, 128);
  EXPECT_EQ(options.precision, torch::kFloat64);
  EXPECT_EQ(options.data, "here");
  EXPECT_EQ(options.output, "there");
  EXPECT_EQ(options.max_steps, 12);
  EXPECT_EQ(options.seed, 5u);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.device, torch::Device("cuda:1"));
  EXPECT_EQ(options.backend, "gloo");
  EXPECT_EQ(options.threads, 2);
}

TEST(Options, PrecisionsAreOfParametersAndOfProducts) {
  const auto of = [](const char* name) {
    const auto options = parse({"--config", "laptop", "--precision", name}, {.scales = true});
    return std::pair(options.precision, options.products);
  };
  EXPECT_EQ(of("fp32"), std::pair(torch::kFloat32, Products::as_stored));
  EXPECT_EQ(of("tf32"), std::pair(torch::kFloat32, Products::tf32));
  EXPECT_EQ(of("bf16"), std::pair(torch::kFloat32, Products::bf16));
  EXPECT_EQ(of("fp16"), std::pair(torch::kFloat32, Products::fp16));
  EXPECT_THAT(error_of_arguments({"--config", "laptop", "--precision", "fp16"}),
              HasSubstr("this trainer does not scale its loss; use bf16"));
  EXPECT_EQ(of("fp64"), std::pair(torch::kFloat64, Products::as_stored));
}

TEST(Options, FastIsAllOrSomeOfTheTasksParts) {
  const auto of = [](std::vector<const char*> arguments) {
    return parse(std::move(arguments)).fast.parts;
  };
  EXPECT_THAT(of({}), IsEmpty());
  EXPECT_THAT(of({"--fast", "--seed", "1"}), ElementsAre("graph", "loss", "norm"));
  EXPECT_THAT(of({"--fast=all"}), ElementsAre("graph", "loss", "norm"));
  EXPECT_THAT(of({"--fast=graph,loss"}), ElementsAre("graph", "loss"));
  EXPECT_THAT(of({"--fast=none"}), IsEmpty());
  EXPECT_THAT(of({"--task", "weather", "--batch-size", "1", "--fast"}), ElementsAre("graph"));
  EXPECT_THAT(error_of_arguments({"--fast=loss,norms"}),
              AllOf(HasSubstr("--fast: 'norms'"), HasSubstr("loss, norm, graph")));
  EXPECT_THAT(error_of_arguments({"--fast=loss,all"}), HasSubstr("--fast: 'all'"));
  EXPECT_THAT(error_of_arguments({"--task", "weather", "--batch-size", "1", "--fast=loss"}),
              HasSubstr("not a part of weather"));
}

TEST(Options, OfAFileMayNameEverythingButItself) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "mine.yaml", "base: seed\ndevice: cpu\ndeterministic: true\nmax_steps: 3\nthreads: 1\n");
  const auto options = parse({"--config", file.c_str(), "--threads", "2"});
  EXPECT_EQ(options.device, torch::Device("cpu"));
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.max_steps, 3);
  EXPECT_EQ(options.threads, 2);
}

TEST(Options, AutoOverridesAConfigurationsDevice) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.yaml", "base: seed\ndevice: cpu\n");
  EXPECT_EQ(parse({"--config", file.c_str(), "--device", "auto"}).device, std::nullopt);
}

TEST(Options, UnknownNamesAreMetWithTheNearestKnownOnes) {
  EXPECT_THAT(error_of_arguments({"--epoch", "3"}),
              AllOf(HasSubstr("'--epoch'"), HasSubstr("'--epochs'")));
  EXPECT_THAT(error_of_arguments({"--bach-size=3"}), HasSubstr("'--batch-size'"));
  EXPECT_THAT(error_of_arguments({"-e", "3"}), HasSubstr("unknown option '-e'"));
  EXPECT_THAT(error_of_arguments({"--task", "language"}), HasSubstr("'language_model'"));
  EXPECT_THAT(error_of_arguments({"--config", "sede"}), HasSubstr("'seed'"));
}

TEST(Options, WhatBelongsToNoOptionIsRefused) {
  EXPECT_THAT(error_of_arguments({"3"}), HasSubstr("'3' does not belong to an option"));
  EXPECT_THAT(error_of_arguments({"--seed", "1", "2"}),
              HasSubstr("'2' does not belong to an option"));
  EXPECT_THAT(error_of_arguments({"--epochs"}), HasSubstr("epochs"));
  EXPECT_THAT(error_of_arguments({"--data", "--epochs"}), HasSubstr("--data needs an argument"));
}

TEST(Options, ValuesOutOfRangeAreRefusedByName) {
  const std::vector<std::vector<const char*>> wrong{
      {"--epochs", "0"},       {"--epochs", "-1"},
      {"--epochs", "3x"},      {"--batch-size", "0"},
      {"--batch-size", "1.5"}, {"--max-steps", "-1"},
      {"--seed", "-1"},        {"--threads", "-1"},
      {"--precision", "fp8"},  {"--device", "gpu"},
      {"--device", "cuda:x"},  {"--device", "cuda:-1"},
      {"--device", "cuda:1 "}, {"--backend", "mpi"},
      {"--output", ""},        {"--seed", "9223372036854775808"}};
  for (const auto& arguments : wrong) {
    EXPECT_THAT(error_of_arguments(arguments), HasSubstr(std::string(arguments[0]) + ": "))
        << arguments[1];
  }
}

TEST(Options, MustBeSetSomewhere) {
  EXPECT_THAT(error_of_arguments({"--task", "weather"}), HasSubstr("--batch-size"));
  EXPECT_EQ(parse({"--task", "weather", "--batch-size", "2"}).config, "small");
}

TEST(Help, ShowsOptionsDefaultsTasksAndConfigurations) {
  const auto table = some_table();
  EXPECT_THAT(help_text(table, table.front().entry(), "seed"),
              AllOf(HasSubstr("--batch-size N"), HasSubstr("(default: 128)"), HasSubstr("weather"),
                    HasSubstr("laptop seed"), HasSubstr("--help")));
}

TEST(Help, EndsTheProgramWell) { EXPECT_EXIT(parse({"--help"}), testing::ExitedWithCode(0), ""); }

}  // namespace
}  // namespace tasks
