#include "golden/key.hpp"

#include <gnu/libc-version.h>

#include <algorithm>
#include <array>
#include <set>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::golden {

namespace {

constexpr std::array<KeyPart, 5> parts{{{"torch", &Key::torch},
                                        {"glibc", &Key::glibc},
                                        {"capability", &Key::capability},
                                        {"vendor", &Key::vendor},
                                        {"flags", &Key::flags}}};

// Kernels add flags of their own with every version. Only those with these beginnings say how a CPU
// can compute.
constexpr std::array<std::string_view, 9> kOnX86{"sse", "ssse", "pni", "avx", "amx",
                                                 "fma", "f16c", "bmi", "xop"};
constexpr std::array<std::string_view, 7> kOnArm{"asimd", "sve",  "sme", "bf16",
                                                 "i8mm",  "fphp", "fcma"};

std::string numeric_flags(const std::string& all, std::span<const std::string_view> numeric) {
  std::set<std::string> chosen;
  for (const auto& flag : split(all, ' ')) {
    if (std::ranges::any_of(numeric, [&](auto begin) { return flag.starts_with(begin); }))
      chosen.insert(flag);
  }
  return join(std::vector<std::string>(chosen.begin(), chosen.end()), " ");
}

std::vector<std::string> those_not_in(const std::string& others, const std::string& flags) {
  auto left = split(flags, ' ');
  const auto known = split(others, ' ');
  std::erase_if(left, [&](const auto& flag) { return std::ranges::count(known, flag) > 0; });
  return left;
}

// "flags are those with amx_int8, without avx512f": all of them would fill a screen.
std::string other_flags(const std::string& here, const std::string& there) {
  std::vector<std::string> words;
  if (const auto more = those_not_in(there, here); !more.empty())
    words.push_back("with " + join(more, " "));
  if (const auto less = those_not_in(here, there); !less.empty())
    words.push_back("without " + join(less, " "));
  return "flags are those " + join(words, ", ");
}

}  // namespace

std::span<const KeyPart> key_parts() { return parts; }

void read_cpu(std::string_view cpuinfo, Key& key) {
  key.vendor = key.flags = "unknown";
  for (const auto& line : split_lines(cpuinfo)) {
    const auto colon = line.find(':');
    if (colon == line.npos) continue;
    const auto name = trim(std::string_view(line).substr(0, colon));
    const std::string value(trim(std::string_view(line).substr(colon + 1)));
    if (value.empty()) continue;
    if (name == "vendor_id" || name == "CPU implementer") key.vendor = value;
    if (name == "flags") key.flags = numeric_flags(value, kOnX86);
    if (name == "Features") key.flags = numeric_flags(value, kOnArm);
  }
  if (key.flags.empty()) key.flags = "none";
}

Key key_here(const Project& project) {
  Key key;
  const auto program = project.build / "bin" / "replay";
  const auto said =
      capture({.arguments = {program.string(), "--torch"}, .environment = {}, .directory = {}});
  const auto words = split(trim(said.output), ' ');
  if (!said.success() || words.size() != 2) {
    throw Error(program.string() + " --torch does not name its LibTorch:\n" + said.output +
                "Fix: ./workbook build replay");
  }
  key.torch = words[0];
  key.capability = words[1];
  key.glibc = ::gnu_get_libc_version();
  read_cpu(read_file("/proc/cpuinfo"), key);
  return key;
}

std::string difference(const Key& here, const Key& there) {
  std::vector<std::string> words;
  for (const auto& part : parts) {
    const auto &ours = here.*part.value, &theirs = there.*part.value;
    if (ours == theirs) continue;
    words.push_back(part.value == &Key::flags
                        ? other_flags(ours, theirs)
                        : std::string(part.name) + " is " + ours + ", not " + theirs);
  }
  return join(words, "; ");
}

}  // namespace checker::golden
