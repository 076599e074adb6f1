#include "browser.hpp"

#include "files.hpp"
#include "support/files.hpp"

namespace checker::testing {

bool has_browser() { return run_program({"chromium", "--version"}).status == 0; }

std::string seen_by_browser(const std::string& page, int width, const std::string& script) {
  const TemporaryFolder folder;
  const auto reader = folder.path() / "reader.html";
  write_file(folder.path() / "page.html", page);
  write_file(reader, "<!doctype html><meta charset=utf-8><iframe src=page.html style=\"width:" +
                         std::to_string(width) +
                         "px;height:900px\"></iframe><script>\n"
                         "const frame = document.querySelector('iframe');\n"
                         "frame.onload = () => {\n"
                         "const page = frame.contentDocument, view = frame.contentWindow;\n" +
                         script + "};</script>");
  // What it leaves behind goes with the folder.
  return run_program({"env", "TMPDIR=" + folder.path().string(), "timeout", "-s", "KILL", "100",
                      "chromium", "--headless", "--no-sandbox", "--disable-gpu",
                      "--user-data-dir=" + (folder.path() / "profile").string(),
                      "--allow-file-access-from-files", "--enable-logging=stderr",
                      "--virtual-time-budget=10000", "--dump-dom", reader.string()})
      .text;
}

}  // namespace checker::testing
