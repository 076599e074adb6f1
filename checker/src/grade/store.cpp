#include "grade/store.hpp"

#include <sqlite3.h>

#include "report/json.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace {

constexpr const char* kTables = R"(
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS hand_in (
    student BLOB PRIMARY KEY, stamp TEXT NOT NULL, finished INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    remarks TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '');
  CREATE TABLE IF NOT EXISTS report (
    student BLOB NOT NULL, step TEXT NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (student, step));
)";

// A prepared statement; its values are bound in order. A student's name may be any bytes.
class Statement {
 public:
  Statement(sqlite3* database, const char* text) : database_(database) {
    check(::sqlite3_prepare_v2(database, text, -1, &statement_, nullptr));
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& student(const std::string& name) {
    const auto size = static_cast<int>(name.size());
    check(::sqlite3_bind_blob(statement_, ++bound_, name.data(), size, SQLITE_TRANSIENT));
    return *this;
  }
  Statement& text(const std::string& value) {
    const auto size = static_cast<int>(value.size());
    check(::sqlite3_bind_text(statement_, ++bound_, value.data(), size, SQLITE_TRANSIENT));
    return *this;
  }

  /// False: there is no further row.
  bool next() {
    const int status = ::sqlite3_step(statement_);
    if (status != SQLITE_ROW && status != SQLITE_DONE) check(status);
    return status == SQLITE_ROW;
  }
  std::string text_of(int column) {
    const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
    const auto size = static_cast<size_t>(::sqlite3_column_bytes(statement_, column));
    return bytes ? std::string(bytes, size) : "";
  }
  bool truth_of(int column) { return ::sqlite3_column_int(statement_, column) != 0; }

 private:
  void check(int status) const {
    if (status == SQLITE_OK) return;
    throw Error(std::string("Cannot store or read the results: ") + ::sqlite3_errmsg(database_) +
                ".");
  }

  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

}  // namespace

void Store::Close::operator()(sqlite3* database) const { ::sqlite3_close(database); }

Store::Store(const std::filesystem::path& file) {
  sqlite3* database = nullptr;
  const int status = ::sqlite3_open(file.c_str(), &database);
  database_.reset(database);
  ::sqlite3_busy_timeout(database, 10'000);  // who looks into it meanwhile disturbs nobody
  if (status != SQLITE_OK ||
      ::sqlite3_exec(database, kTables, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw Error("Cannot open " + file.string() + ": " + ::sqlite3_errmsg(database) +
                ". Fix: choose another folder with --output.");
  }
}

std::optional<std::string> Store::setting(const std::string& name) const {
  Statement look(database_.get(), "SELECT value FROM setting WHERE name = ?");
  return look.text(name).next() ? std::optional(look.text_of(0)) : std::nullopt;
}

void Store::set(const std::string& name, const std::string& value) {
  Statement(database_.get(), "INSERT OR REPLACE INTO setting VALUES (?, ?)")
      .text(name)
      .text(value)
      .next();
}

bool Store::empty() const {
  return !Statement(database_.get(), "SELECT 1 FROM hand_in LIMIT 1").next();
}

std::optional<Stored> Store::find(const std::string& student) const {
  Statement look(database_.get(),
                 "SELECT stamp, finished, problem, remarks, version FROM hand_in "
                 "WHERE student = ?");
  if (!look.student(student).next()) return std::nullopt;
  Stored stored{.stamp = look.text_of(0),
                .finished = look.truth_of(1),
                .problem = look.text_of(2),
                .remarks = split_lines(look.text_of(3)),
                .version = look.text_of(4),
                .reports = {}};
  Statement reports(database_.get(), "SELECT json FROM report WHERE student = ? ORDER BY step");
  reports.student(student);
  while (reports.next()) stored.reports.push_back(report_from_json(reports.text_of(0)));
  return stored;
}

void Store::begin(const std::string& student, const std::string& stamp) {
  auto* database = database_.get();
  Statement(database, "BEGIN").next();
  Statement(database, "DELETE FROM report WHERE student = ?").student(student).next();
  Statement(database, "INSERT OR REPLACE INTO hand_in (student, stamp) VALUES (?, ?)")
      .student(student)
      .text(stamp)
      .next();
  Statement(database, "COMMIT").next();
}

void Store::gathered(const std::string& student, const Stored& what) {
  Statement(database_.get(), "UPDATE hand_in SET remarks = ?, version = ? WHERE student = ?")
      .text(join(what.remarks, "\n"))
      .text(what.version)
      .student(student)
      .next();
}

void Store::add(const std::string& student, const Report& report) {
  Statement(database_.get(), "INSERT OR REPLACE INTO report VALUES (?, ?, ?)")
      .student(student)
      .text(report.step)
      .text(to_json(report))
      .next();
}

void Store::finish(const std::string& student, const std::string& problem) {
  Statement(database_.get(), "UPDATE hand_in SET finished = 1, problem = ? WHERE student = ?")
      .text(problem)
      .student(student)
      .next();
}

}  // namespace checker::grade
