#include "jobs/signalled_job.hpp"

#include <algorithm>
#include <functional>
#include <thread>

#include "jobs/record.hpp"
#include "jobs/stand_in.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kLook = 20ms;
constexpr auto kReadyPatience = 30s;
constexpr auto kEndPatience = 15s;
// A right script passes the signal on in a fraction of a second. This is paid for wrong ones only.
constexpr auto kToldPatience = 6s;
// A script that does not wait for its ranks needs about as long to end as it took to tell them.
constexpr auto kLeastSaving = 500ms;
constexpr int kSavingForTelling = 3;
constexpr auto kYounger = 50ms;

class SignalledJob {
 public:
  SignalledJob(const Lab& lab, const JobSite& site, std::string number, size_t ranks)
      : lab_(lab), site_(site), number_(std::move(number)), ranks_(ranks) {}

  AfterSignal run() {
    const auto ready = [&] { return site_.count(kReady) >= ranks_; };
    if (ranks_ == 0 || !until(kReadyPatience, ready)) return AfterSignal::not_ready;
    const auto begin = Clock::now();
    ask({"scancel", "--batch", "--signal=USR1", number_});
    const bool told = until(kToldPatience, [&] { return site_.count(kTold) >= ranks_; });
    const auto saving =
        std::max<Clock::duration>(kLeastSaving, (Clock::now() - begin) * kSavingForTelling);
    // While they save, nothing of theirs may end.
    if (told) until(saving, [&] { return site_.count(kLost) > 0; });
    if (site_.count(kLost) > 0) return AfterSignal::launcher_lost;
    look();
    if (!runs()) return AfterSignal::script_over;
    if (!told) return AfterSignal::ranks_not_told;
    site_.let_ranks_stop();
    return after_the_ranks();
  }

  const JobRecord& record() const { return record_; }

 private:
  AfterSignal after_the_ranks() {
    const auto settled = [&] { return record_.is_over() || is_queued(1); };
    if (!await(settled)) return AfterSignal::goes_on;
    if (record_.is_over()) return AfterSignal::ended;
    if (record_.reason.starts_with("JobHeld")) return AfterSignal::held;
    // Slurm has it wait until its old credential has expired. A new one is taken as soon as it is
    // younger than the end of the old one, by whole seconds.
    using Seconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;
    const Seconds second =
        std::chrono::ceil<std::chrono::seconds>(std::chrono::system_clock::now());
    std::this_thread::sleep_until(second + kYounger);
    ask({"scontrol", "update", "JobId=" + number_, "StartTime=now"});
    await([&] { return record_.is_over() || is_queued(2); });
    const bool started_again = site_.ranks() > ranks_;
    return started_again ? AfterSignal::queued_again : AfterSignal::not_ready;
  }

  bool is_queued(int times) const {
    return record_.restarts >= times && record_.state == "PENDING";
  }
  bool runs() const { return record_.state == "RUNNING"; }

  // Whether it comes to be while the job runs, in this time.
  bool until(Clock::duration patience, const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + patience;
    auto next_question = Clock::now() + 200ms;
    while (!condition()) {
      if (Clock::now() >= deadline) return false;
      if (Clock::now() >= next_question) {  // Slurm need not be asked as often as the files
        look();
        if (record_.is_over() || record_.restarts > 0) return condition();
        next_question = Clock::now() + 200ms;
      }
      std::this_thread::sleep_for(kLook);
    }
    return true;
  }

  bool await(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kEndPatience;
    for (look(); !condition(); look()) {
      if (Clock::now() >= deadline) return false;
      std::this_thread::sleep_for(50ms);
    }
    return true;
  }

  // Refused only where the job has come further meanwhile, which the next look tells.
  Captured ask(const std::vector<std::string>& command) const {
    return lab_.run(command, {}, "/", 30s);
  }

  void look() {
    const auto said = ask({"scontrol", "show", "job", number_});
    if (said.status != 0) throw Error("The lab's Slurm does not know its job: " + said.output);
    record_ = parse_job_record(said.output);
  }

  const Lab& lab_;
  const JobSite& site_;
  const std::string number_;
  const size_t ranks_;
  JobRecord record_;
};

}  // namespace

void signal_job(const Lab& lab, const JobSite& site, const std::string& number, size_t ranks,
                JobEnd& end) {
  SignalledJob job(lab, site, number, ranks);
  end.after_signal = job.run();
  end.state = job.record().state;
  end.exit_code = job.record().exit_code;
  end.reason = job.record().reason;
  end.restarts = job.record().restarts;
}

}  // namespace checker
