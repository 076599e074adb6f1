#include "watch/watch.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "console/terminal.hpp"
#include "process/signals.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "watch/background.hpp"
#include "watch/keyboard.hpp"
#include "watch/page.hpp"
#include "watch/screen.hpp"
#include "watch/settled.hpp"

namespace checker {

namespace {

using Clock = std::chrono::steady_clock;

bool has_terminal() {
  return console::is_terminal(STDIN_FILENO) && console::can_draw(STDOUT_FILENO);
}

class Watch {
 public:
  Watch(const Project& project, const Course& course, const Step& first, const Judge& judge,
        const WatchOptions& options)
      : project_(project), course_(course), judge_(judge), options_(options), files_({}) {
    if (has_terminal()) {
      keyboard_.emplace();
      screen_.emplace();
    }
    go_to(first);
  }

  int run() {
    auto next_look = Clock::now() + options_.interval;
    while (true) {
      if (screen_) draw();
      wait(next_look);
      int signal = 0;
      signals_.read([&](int number) { signal = number == SIGCHLD ? signal : number; });
      if (signal != 0) return 128 + signal;
      if (reader_gone_) return 1;
      while (const auto key = keyboard_ ? Keyboard::read() : std::nullopt) {
        if (*key == 'q') return 0;
        press(*key);
      }
      hear_the_judge();
      if (Clock::now() < next_look) continue;
      look();
      if (options_.keep_going && !options_.keep_going()) return 0;
      next_look = Clock::now() + options_.interval;
    }
  }

 private:
  // Until a key, a signal, news of the judge or the next look.
  void wait(Clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    std::array<pollfd, 4> watched{{{signals_.descriptor(), POLLIN, 0},
                                   {background_ ? background_->descriptor() : -1, POLLIN, 0},
                                   {keyboard_ ? STDIN_FILENO : -1, POLLIN, 0},
                                   {STDOUT_FILENO, 0, 0}}};
    ::poll(watched.data(), watched.size(), static_cast<int>(std::max<int64_t>(0, left)));
    reader_gone_ = (watched[3].revents & (POLLERR | POLLHUP)) != 0;
  }

  void go_to(const Step& step) {
    view_ = View();
    view_.step = &step;
    const auto memory = recall(project_);
    view_.standings = standings(project_, course_, memory);
    files_ = SettledFiles(now());
    start();
    note(memory.remark);
  }

  Fingerprints now() const { return take_fingerprints(project_, course_, *view_.step); }

  // Judges the texts that are there, whatever was being judged before.
  void start() {
    background_.reset();
    view_.judging = true;
    view_.outdated = view_.report.has_value();
    view_.stage.clear();
    view_.remark.clear();
    judged_ = files_.texts();
    background_ = std::make_unique<BackgroundJudge>(judge_, course_, *view_.step, CheckOptions());
  }

  void look() {
    if (!files_.look(now())) return;
    view_.pane = Pane::verdict;
    view_.page = 0;
    if (!screen_) terminal::say("Saved; checking step " + view_.step->label() + " again.");
    start();
  }

  void hear_the_judge() {
    if (!background_) return;
    const bool ended = background_->read();
    view_.stage = background_->stage();
    if (!ended) return;
    view_.judging = false;
    view_.error.clear();
    try {
      view_.report = background_->result();
      view_.outdated = now() != judged_;
      note(remember(project_, course_, *view_.report, judged_));
    } catch (const Error& error) {
      view_.report.reset();
      view_.error = error.what();
    }
    background_.reset();
    if (!screen_) print();
  }

  // A save that came in the last moment is judged soon: the next look finds it.
  void print() const {
    if (!view_.error.empty()) return terminal::complain(view_.error);
    const auto look = present_look();
    for (const auto& line : report_lines(*view_.report, course_, look)) terminal::say(line);
    if (view_.outdated) terminal::say("This verdict is about an older version of your file.");
    terminal::say("");
  }

  // Stays until a key is pressed or a text is saved.
  void note(const std::string& remark) {
    if (remark.empty()) return;
    view_.remark = remark;
    if (!screen_) terminal::say(remark);
  }

  void press(char key) {
    view_.remark.clear();
    switch (key) {
      case 'h':
        return help_more();
      case 'd':
        if (view_.pane == Pane::solution) return show(Pane::verdict);
        remember_help(project_, not_done(), Help::answer);
        return show(Pane::solution);
      case ' ':
        ++view_.page;
        return;
      case 'r':
        return start();
      case 'n':
        return move(+1);
      case 'p':
        return move(-1);
      default:
        return;
    }
  }

  // From the verdict to the hint, the shape of the code, what is behind it, and back.
  void help_more() {
    const int todo = todo_in_hand(view_, course_).number;
    switch (view_.pane) {
      case Pane::verdict:
      case Pane::solution:
        remember_help(project_, {todo}, Help::hint);
        return show(Pane::hint);
      case Pane::hint:
        remember_help(project_, {todo}, Help::shape);
        return show(Pane::shape);
      case Pane::shape:
        return show(Pane::explanation);
      case Pane::explanation:
        return show(Pane::verdict);
    }
  }

  std::vector<int> not_done() const {
    return undone(view_.step->todos, standings(project_, course_, recall(project_)));
  }

  void show(Pane pane) {
    view_.pane = pane;
    view_.page = 0;
  }

  // To the neighbouring step that has TODOs. Exercises lead to exercises.
  void move(int direction) {
    const auto count = static_cast<std::ptrdiff_t>(course_.steps.size());
    const auto here = std::ranges::find(course_.steps, view_.step->name, &Step::name);
    for (auto at = here - course_.steps.begin() + direction; at >= 0 && at < count;
         at += direction) {
      const auto& step = course_.steps[static_cast<size_t>(at)];
      if (!step.todos.empty() && step.is_beside() == view_.step->is_beside()) return go_to(step);
    }
    const bool beside = view_.step->is_beside();
    view_.remark = direction > 0
                       ? (beside ? "This is the last exercise." : "This is the last step.")
                   : beside ? "This is the first exercise."
                            : "There is no TODO before this step.";
  }

  void draw() {
    screen_->draw(page_lines(view_, project_, course_, present_look(), Screen::rows() - 1));
  }

  const Project& project_;
  const Course& course_;
  const Judge& judge_;
  const WatchOptions& options_;
  // In this order, so that the terminal is itself again before anything else ends, and signals
  // strike only after everything has.
  SignalWatch signals_;
  std::unique_ptr<BackgroundJudge> background_;
  std::optional<Keyboard> keyboard_;
  std::optional<Screen> screen_;

  SettledFiles files_;
  Fingerprints judged_;  // the texts that are being judged, or were last
  View view_;
  bool reader_gone_ = false;
};

}  // namespace

int watch(const Project& project, const Course& course, const Step& first, const Judge& judge,
          const WatchOptions& options) {
  return Watch(project, course, first, judge, options).run();
}

}  // namespace checker
