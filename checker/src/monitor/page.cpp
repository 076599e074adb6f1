#include "monitor/page.hpp"

#include <algorithm>
#include <array>

#include "monitor/chart.hpp"
#include "monitor/curves.hpp"
#include "monitor/timeline.hpp"
#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

std::string tile(const std::string& value, const std::string& name) {
  return "<div><b>" + escaped(value) + "</b><span>" + escaped(name) + "</span></div>";
}

std::string tiles(const Run& run, const Figures& figures) {
  std::string html = "<div class=tiles>" + tile(shown_seconds(figures.duration), "run");
  html += tile(std::to_string(run.ranks.size()), run.ranks.size() == 1 ? "rank" : "ranks");
  html += tile(std::to_string(figures.steps), "steps");
  if (figures.steps > 0) {
    html += tile(shown_seconds(figures.step_time), "a step (median)");
    html += tile(shown_count(figures.tokens_per_second), "tokens/s, all ranks");
  }
  if (figures.last_loss) {
    html +=
        tile(fixed(*figures.first_loss, 3) + " → " + fixed(*figures.last_loss, 3), "training loss");
  }
  if (figures.best_validation) {
    html += tile(fixed(*figures.best_validation, 3), "validation loss, least");
  }
  if (!figures.gpus.empty()) html += tile(fixed(figures.gpu_hours, 3), "GPU hours");
  if (figures.watt_hours > 0) html += tile(fixed(figures.watt_hours, 1) + " Wh", "GPUs' energy");
  return html + tile(fixed(figures.core_hours, 3), "core hours used") + "</div>\n";
}

std::string sentences(const Run& run, const Figures& figures) {
  std::string html = "<h2>What limits this run</h2><ul class=says>";
  for (const auto& sentence : limits_of(run, figures)) {
    html += std::string("<li") + (sentence.weight == 0 ? " class=calm" : "") +
            " data-id=" + sentence.id + "><b>" + escaped(sentence.what) + "</b>" +
            escaped(sentence.advice);
  }
  return html + "</ul>\n";
}

std::string share_bar(const RankFigures& rank) {
  constexpr std::array<const char*, kStepPhases> classes{"d", "f", "b", "o"};
  std::string html = "<div class=share>";
  double rest = 1;
  for (size_t i = 0; i < kStepPhases; ++i) {
    html += std::string("<i class=") + classes[i] +
            " style=\"width:" + fixed(100 * rank.shares[i], 2) + "%\"></i>";
    rest -= rank.shares[i];
  }
  return html + "<i class=r style=\"width:" + fixed(100 * std::max(0.0, rest), 2) +
         "%\"></i></div>";
}

std::string shares(const Run& run, const Figures& figures) {
  std::string html =
      "<h2>Where a step's time goes</h2><div class=scroll><table class=shares><thead><tr><th>rank"
      "<th><th>data<th>forward<th>backward<th>optimizer<th>collectives under way<th>late by"
      "</thead><tbody>\n";
  for (const auto& rank : figures.ranks) {
    html += "<tr><th>" + std::to_string(rank.rank) + "<td class=wide>" + share_bar(rank);
    for (const double share : rank.shares) html += "<td>" + shown_share(share);
    html += "<td>" + (rank.collectives ? shown_share(*rank.collectives) : "–") + "<td>" +
            (figures.compared > 0 && rank.lateness > 0 ? shown_seconds(rank.lateness) : "–") + "\n";
  }
  html +=
      "</tbody></table></div><p class=soft>Collectives run beside the other phases. "
      "<q>Late by</q>: how much later than half of the others a rank usually comes to a "
      "collective.";
  if (run.on_gpus()) {
    html +=
        " The times of phases are the host's: a GPU computes on after a call returns, so that the "
        "phase that waits for it seems long. Ends of collectives on GPUs are known to 2 ms; how "
        "long they ran, and who comes late, where TORCH_NCCL_ENABLE_TIMING=1 was set, which costs "
        "some of the overlap.";
  }
  return html + "</p>\n";
}

std::string communication(const Figures& figures) {
  if (figures.collectives.empty()) return "";
  std::string html =
      "<h2>Communication of a rank</h2><table class=traffic><thead><tr><th>collective<th>calls<th>"
      "volume<th>a call<th>time of a call<th>volume by time</thead><tbody>\n";
  for (const auto& one : figures.collectives) {
    html += "<tr><th>" + escaped(one.name) + "<td>" + shown_count(one.calls) + "<td>" +
            shown_bytes(one.bytes) + "<td>" + shown_bytes(one.bytes / one.calls) + "<td>" +
            (one.seconds > 0 ? shown_seconds(one.seconds / one.calls) + "<td>" +
                                   shown_bytes(one.bytes / one.seconds) + "/s\n"
                             : "–<td>–\n");
  }
  return html +
         "</tbody></table><p class=soft>Time until the last rank has come counts, "
         "too.</p>\n";
}

std::string memory_by_kind(const Run& run) {
  std::string rows;
  for (const auto& record : run.ranks) {
    if (!record.memory) continue;
    const auto& memory = *record.memory;
    rows += "<tr><th>" + std::to_string(record.rank());
    for (const auto bytes :
         {memory.parameters, memory.gradients, memory.optimizer, memory.activations}) {
      rows += "<td>" + (bytes > 0 ? shown_bytes(static_cast<double>(bytes)) : "–");
    }
    rows += "<td>" +
            (record.process.empty()
                 ? "–"
                 : shown_bytes(static_cast<double>(record.process.back().sample.peak))) +
            "\n";
  }
  if (rows.empty()) return "";
  return "<h2>Memory by kind</h2><table class=memory><thead><tr><th>rank<th>parameters<th>gradients"
         "<th>optimizer<th>activations<th>whole process at most</thead><tbody>\n" +
         rows +
         "</tbody></table><p class=soft>Activations: what an early step's forward pass kept for "
         "its backward pass.</p>\n";
}

std::string cost(const Figures& figures) {
  std::string html = "<h2>What was used</h2>";
  if (!figures.gpus.empty()) {
    html +=
        "<table class=gpus><thead><tr><th>GPU<th>busy<th>memory at most<th>energy</thead>"
        "<tbody>\n";
    for (const auto& gpu : figures.gpus) {
      html += "<tr><th>" + escaped(gpu.host + " " + std::to_string(gpu.number) + ", " + gpu.name) +
              "<td>" + (gpu.utilisation ? shown_share(*gpu.utilisation) : "–") + "<td>" +
              shown_bytes(gpu.peak) + " of " + shown_bytes(gpu.total) + "<td>" +
              (gpu.joules > 0 ? fixed(gpu.joules / 3600, 2) + " Wh" : "–") + "\n";
    }
    html += "</tbody></table>\n";
  }
  if (!figures.nodes.empty()) {
    html +=
        "<table class=nodes><thead><tr><th>node<th>CPUs<th>busy<th>memory free at least</thead>"
        "<tbody>\n";
    for (const auto& node : figures.nodes) {
      html += "<tr><th>" + escaped(node.host) + "<td>" + fixed(node.cpus, 0) + "<td>" +
              shown_share(node.busy) + "<td>" + shown_bytes(node.least_available) + " of " +
              shown_bytes(node.total) + "\n";
    }
    html += "</tbody></table>\n";
  }
  return html;
}

std::string about(const Run& run) {
  std::string html = "<h2>The run</h2><table class=about><tbody>\n";
  for (const auto& [key, value] : run.ranks.front().configuration) {
    html += "<tr><th>" + escaped(key) + "<td>" + escaped(value) + "\n";
  }
  html += "<tr><th>records<td>" + escaped(run.folder.string());
  if (run.older > 0) html += " (" + count_of(run.older, "older run") + " beside it)";
  html += "\n</tbody></table>\n";
  return html;
}

}  // namespace

std::string to_page(const Run& run, const Figures& figures) {
  const auto hosts = run.hosts();
  std::string html = page_begin("Run of " + in_words(run.wall));
  html += "<h1>Run of " + in_words(run.wall) + "</h1><p class=soft>" +
          count_of(run.ranks.size(), "rank") + " on " + escaped(join(hosts, ", ")) +
          (run.on_gpus() ? ", GPUs" : ", CPUs") +
          (run.ended() ? "" : "; no regular end was recorded") + "</p>\n";
  html += tiles(run, figures);
  if (!run.remarks.empty()) {
    html += "<ul class=remarks>";
    for (const auto& remark : run.remarks) html += "<li>" + escaped(remark);
    html += "</ul>\n";
  }
  html += sentences(run, figures) + shares(run, figures);
  html += "<h2>Rank by rank</h2>" + draw_timelines(run);
  html += "<h2>Training</h2>";
  for (const auto& chart : training_curves(run, figures)) html += draw(chart);
  html += cost(figures);
  for (const auto& chart : resource_curves(run, figures)) html += draw(chart);
  html += communication(figures) + memory_by_kind(run) + about(run);
  return html + page_end();
}

}  // namespace checker::monitor
