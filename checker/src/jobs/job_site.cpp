#include "jobs/job_site.hpp"

#include <algorithm>

#include "evidence/log.hpp"
#include "jobs/stand_in.hpp"
#include "jobs/torchrun.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr const char *kTrainer = "trainer-", *kLauncher = "launcher-";
constexpr const char* kGetsSignal = "gets-signal";

std::string first_line(const fs::path& file) {
  const auto lines = split_lines(read_file(file));
  return lines.empty() ? "" : std::string(lines.front());
}

void write_program(const fs::path& file, const std::string& text) {
  write_file(file, text);
  fs::permissions(file, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add);
}

// A Python whose module torch.distributed.run is the shim of torchrun, which it is by another name.
void place_python(const fs::path& file, const fs::path& python) {
  write_program(file,
                "#!/bin/bash\nwords=(\"$@\")\n[ \"$1\" != -u ] || words=(\"${@:2}\")\n"
                "if [ \"${words[*]:0:2}\" = '-m torch.distributed.run' ]; then\n"
                "  exec \"$(dirname \"$0\")/torchrun\" \"${words[@]:2}\"\nfi\nexec " +
                    shell_quote(python.string()) + " \"$@\"\n");
}

// What one start left behind; its files have one name and several endings.
StartSeen read_start(const fs::path& host_file) {
  const auto with = [&](const char* ending) {
    return fs::path(host_file).replace_extension(ending);
  };
  StartSeen start;
  start.host = first_line(host_file);
  start.arguments = split(read_file(with(".arguments")), '\0');
  for (const auto& entry : split(read_file(with(".environment")), '\0')) {
    const auto equals = entry.find('=');
    if (equals != std::string::npos) {
      start.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  if (fs::exists(with(".log"))) start.log = with(".log");
  start.told = fs::exists(with(kTold)) && read_file(with(kTold)) == kBySignal;
  if (fs::exists(with(kLost))) start.lost = read_file(with(kLost));
  return start;
}

}  // namespace

JobSite::JobSite(const Project& project, const Step& step, fs::path folder,
                 const std::string& script, const fs::path& trainer,
                 const std::vector<std::string>& options)
    : folder_(std::move(folder)),
      script_(fs::path("sbatch") / (step.name + ".sbatch")),
      seen_(folder_ / "seen") {
  fs::create_directories(seen_);
  write_file(folder_ / script_, script);
  write_file(folder_ / "sbatch" / "site.conf", "# A cluster without any specialities.\n");
  const auto stand_in =
      "exec " + shell_quote((project.build / "bin" / "checker").string()) + " stand-in ";
  std::string become = stand_in + "rank \"$me\"";
  if (options.empty()) {
    write_file(seen_ / kGetsSignal, "");
  } else {
    // Sparse: only what is written takes room.
    become =
        "truncate -s 64M \"$me.log\"\n"
        "export WORLDSIZE_RECORD=\"$me.log\" OMP_NUM_THREADS=1\nexec " +
        shell_quote(trainer.string());
    for (const auto& option : options) become += " " + shell_quote(option);
    become += " --output \"$me.output\"";
  }
  for (const char* kind : {"step_", "solution_"}) {
    place_shim(folder_ / "build" / "cpu" / "bin" / (kind + step.label()), kTrainer, become);
  }
  const auto programs = project.source / ".venv" / "bin";
  for (const auto& entry : fs::directory_iterator(programs)) {
    const auto name = entry.path().filename();
    if (name != "torchrun" && name != "python" && name != "python3") {
      fs::create_directories(folder_ / ".venv" / "bin");
      fs::create_symlink(entry.path(), folder_ / ".venv" / "bin" / name);
    }
  }
  for (const char* name : {"python", "python3"}) {
    place_python(folder_ / ".venv" / "bin" / name, programs / name);
  }
  const auto torchrun = shell_quote(own_torchrun(project).string());
  place_shim(folder_ / ".venv" / "bin" / "torchrun", kLauncher,
             (options.empty() ? stand_in + "torchrun" : "exec " + torchrun) + " \"$@\"");
}

void JobSite::place_shim(const fs::path& program, const std::string& kind,
                         const std::string& become) const {
  // Named last, so that what has a .host is whole.
  // Who asks for help starts nothing.
  const std::string text = "#!/bin/bash\n[ \"$*\" != --help ] || exit 0\nme=$(mktemp -u " +
                           shell_quote((seen_ / (kind + "XXXXXXXX")).string()) +
                           ")\n"
                           "cat /proc/$$/environ >\"$me.environment\"\n"
                           "printf '%s\\0' \"$@\" >\"$me.arguments\"\n"
                           "hostname >\"$me.new\" && mv \"$me.new\" \"$me.host\"\n" +
                           become + "\n";
  write_program(program, text);
}

uint64_t JobSite::progress() const {
  uint64_t seen = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(seen_)) {
    seen += 1 + (entry.path().extension() == ".log" ? LiveLog(entry.path()).length() : 0);
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == ".out") seen += fs::file_size(entry.path(), ignored);
  }
  return seen;
}

bool JobSite::gets_signal() const { return fs::exists(seen_ / kGetsSignal); }

size_t JobSite::count(std::string_view ending) const {
  return static_cast<size_t>(std::ranges::count_if(
      fs::directory_iterator(seen_),
      [&](const fs::directory_entry& entry) { return entry.path().extension() == ending; }));
}

// A folder: jobs may write here, and a link of theirs leads it nowhere.
void JobSite::let_ranks_stop() const {
  std::error_code is_there;
  fs::create_directory(seen_ / kMayStop, is_there);
}

// By names alone: what stands in the files may be anything.
size_t JobSite::ranks() const {
  return static_cast<size_t>(
      std::ranges::count_if(fs::directory_iterator(seen_), [](const fs::directory_entry& entry) {
        const auto& file = entry.path();
        return file.extension() == ".host" && file.filename().string().starts_with(kTrainer);
      }));
}

void JobSite::read(JobSeen& job) const {
  std::vector<fs::path> hosts, outputs;
  for (const auto& entry : fs::directory_iterator(seen_)) {
    if (entry.path().extension() == ".host") hosts.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == ".out") outputs.push_back(entry.path());
  }
  std::ranges::sort(hosts);
  std::ranges::sort(outputs);
  for (const auto& file : hosts) {
    const bool launcher = file.filename().string().starts_with(kLauncher);
    (launcher ? job.launchers : job.trainers).push_back(read_start(file));
  }
  for (auto* starts : {&job.launchers, &job.trainers}) {
    std::ranges::stable_sort(*starts, {}, &StartSeen::host);
  }
  for (const auto& file : outputs) {
    for (const auto& line : split_lines(read_file(file))) job.output.emplace_back(line);
  }
}

}  // namespace checker
