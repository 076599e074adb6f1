#include "monitor/page.hpp"

#include <algorithm>
#include <array>

#include "monitor/chart.hpp"
#include "monitor/curves.hpp"
#include "monitor/timeline.hpp"
#include "monitor/words.hpp"
#include "support/markup.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

using markup::add, markup::add_row, markup::add_table, markup::add_text, markup::set;

constexpr const char* kUnknownCell = "–";

void add_tile(pugi::xml_node tiles, const std::string& value, const std::string& name) {
  auto tile = add(tiles, "div");
  add(tile, "b", value);
  add(tile, "span", name);
}

void add_tiles(pugi::xml_node page, const Run& run, const Figures& figures) {
  auto tiles = add(page, "div", {{"class", "tiles"}});
  add_tile(tiles, shown_seconds(figures.duration), "run");
  add_tile(tiles, std::to_string(run.ranks.size()), run.ranks.size() == 1 ? "rank" : "ranks");
  add_tile(tiles, std::to_string(figures.steps), "steps");
  if (figures.steps > 0) {
    add_tile(tiles, shown_seconds(figures.step_time), "a step (median)");
    add_tile(tiles, shown_count(figures.tokens_per_second), "tokens/s, all ranks");
  }
  if (figures.last_loss) {
    add_tile(tiles, fixed(*figures.first_loss, 3) + " → " + fixed(*figures.last_loss, 3),
             "training loss");
  }
  if (figures.best_validation) {
    add_tile(tiles, fixed(*figures.best_validation, 3), "lowest validation loss");
  }
  if (!figures.gpus.empty()) add_tile(tiles, fixed(figures.gpu_hours, 3), "GPU hours");
  if (figures.watt_hours > 0) {
    add_tile(tiles, fixed(figures.watt_hours, 1) + " Wh", "GPUs' energy");
  }
  add_tile(tiles, fixed(figures.core_hours, 3), "core hours used");
}

void add_remarks(pugi::xml_node page, const Run& run) {
  if (run.remarks.empty()) return;
  auto list = add(page, "ul", {{"class", "remarks"}});
  for (const auto& remark : run.remarks) add(list, "li", remark);
}

void add_sentences(pugi::xml_node page, const Run& run, const Figures& figures) {
  add(page, "h2", "What limits this run");
  auto list = add(page, "ul", {{"class", "says"}});
  for (const auto& sentence : limits_of(run, figures)) {
    auto item = add(list, "li");
    if (sentence.weight == 0) set(item, {"class", "calm"});
    set(item, {"data-id", sentence.id});
    add(item, "b", sentence.what);
    add_text(item, sentence.advice);
  }
}

void add_share_bar(pugi::xml_node cell, const RankFigures& rank) {
  constexpr std::array<const char*, kStepPhases> classes{"d", "f", "b", "o"};
  auto bar = add(cell, "div", {{"class", "share"}});
  const auto add_part = [&](const char* css_class, double share) {
    add(bar, "i", {{"class", css_class}, {"style", "width:" + fixed(100 * share, 2) + "%"}});
  };
  double rest = 1;
  for (size_t i = 0; i < kStepPhases; ++i) {
    add_part(classes.at(i), rank.shares[i]);
    rest -= rank.shares[i];
  }
  add_part("r", std::max(0.0, rest));
}

void add_shares(pugi::xml_node page, const Run& run, const Figures& figures) {
  add(page, "h2", "Time in a step");
  auto body =
      add_table(add(page, "div", {{"class", "scroll"}}), "shares",
                {"rank", "", "data", "forward", "backward", "optimizer", "collectives", "late by"});
  for (const auto& rank : figures.ranks) {
    auto row = add_row(body, std::to_string(rank.rank));
    add_share_bar(add(row, "td", {{"class", "wide"}}), rank);
    for (const double share : rank.shares) add(row, "td", shown_share(share));
    add(row, "td", rank.collectives ? shown_share(*rank.collectives) : kUnknownCell);
    const bool is_late = figures.compared > 0 && rank.lateness > 0;
    add(row, "td", is_late ? shown_seconds(rank.lateness) : kUnknownCell);
  }
  auto note =
      add(page, "p", {{"class", "soft"}}, "Collectives run at the same time as the other phases. ");
  add(note, "q", "Late by");
  add_text(note, ": a rank's usual delay at a collective, compared with the median of all ranks.");
  if (!run.on_gpus()) return;
  add_text(note,
           " Phase times are measured on the host. A GPU keeps computing after a call returns, so "
           "the phase that waits for it looks long. The end of a collective is accurate to about 2 "
           "ms. Set TORCH_NCCL_ENABLE_TIMING=1 to also see how long each collective ran and which "
           "rank arrived last. That costs some of the overlap.");
  if (figures.replays > 0) add_text(note, " A CUDA graph " + replays_in_words(figures) + ".");
}

void add_communication(pugi::xml_node page, const Figures& figures) {
  if (figures.collectives.empty()) return;
  add(page, "h2", "Communication of a rank");
  auto body =
      add_table(page, "traffic",
                {"collective", "calls", "volume", "a call", "time of a call", "volume by time"});
  for (const auto& one : figures.collectives) {
    const bool timed = one.seconds > 0;
    add_row(body, one.name,
            {shown_count(one.calls), shown_bytes(one.bytes), shown_bytes(one.bytes / one.calls),
             timed ? shown_seconds(one.seconds / one.calls) : kUnknownCell,
             timed ? shown_bytes(one.bytes / one.seconds) + "/s" : kUnknownCell});
  }
  add(page, "p", {{"class", "soft"}}, "The time includes waiting for the last rank.");
}

void add_memory_by_kind(pugi::xml_node page, const Run& run) {
  const auto known = [](const RankRecord& record) { return record.memory.has_value(); };
  if (std::ranges::none_of(run.ranks, known)) return;
  const auto shown = [](uint64_t bytes) {
    return bytes > 0 ? shown_bytes(static_cast<double>(bytes)) : kUnknownCell;
  };
  add(page, "h2", "Memory by kind");
  auto body = add_table(
      page, "memory",
      {"rank", "parameters", "gradients", "optimizer", "activations", "whole process, peak"});
  for (const auto& record : run.ranks) {
    if (!record.memory) continue;
    const auto& memory = *record.memory;
    const auto most = record.process.empty()
                          ? kUnknownCell
                          : shown_bytes(static_cast<double>(record.process.back().sample.peak));
    add_row(body, std::to_string(record.rank()),
            {shown(memory.parameters), shown(memory.gradients), shown(memory.optimizer),
             shown(memory.activations), most});
  }
  add(page, "p", {{"class", "soft"}},
      "Activations: what the forward pass of an early step kept for the backward pass.");
}

void add_cost(pugi::xml_node page, const Figures& figures) {
  add(page, "h2", "Resources");
  if (!figures.gpus.empty()) {
    auto body = add_table(page, "gpus", {"GPU", "busy", "peak memory", "energy"});
    for (const auto& gpu : figures.gpus) {
      add_row(body, gpu.host + " " + std::to_string(gpu.number) + ", " + gpu.name,
              {gpu.utilisation ? shown_share(*gpu.utilisation) : kUnknownCell,
               shown_bytes(gpu.peak) + " of " + shown_bytes(gpu.total),
               gpu.joules > 0 ? fixed(gpu.joules / 3600, 2) + " Wh" : kUnknownCell});
    }
  }
  if (figures.nodes.empty()) return;
  auto body = add_table(page, "nodes", {"node", "CPUs", "busy", "least free memory"});
  for (const auto& node : figures.nodes) {
    add_row(body, node.host,
            {fixed(node.cpus, 0), shown_share(node.busy),
             shown_bytes(node.least_available) + " of " + shown_bytes(node.total)});
  }
}

void add_about(pugi::xml_node page, const Run& run) {
  add(page, "h2", "The run");
  auto body = add(add(page, "table", {{"class", "about"}}), "tbody");
  for (const auto& [key, value] : run.ranks.front().configuration) add_row(body, key, {value});
  const auto beside = run.older > 0 ? " (" + count_of(run.older, "older run") + " beside it)" : "";
  add_row(body, "records", {run.folder.string() + beside});
}

}  // namespace

std::string to_page(const Run& run, const Figures& figures) {
  const auto title = "Run of " + in_words(run.wall);
  pugi::xml_document page;
  add(page, "h1", title);
  add(page, "p", {{"class", "soft"}},
      count_of(run.ranks.size(), "rank") + " on " + join(run.hosts(), ", ") +
          (run.on_gpus() ? ", GPUs" : ", CPUs") + (run.ended() ? "" : "; it did not end normally"));
  add_tiles(page, run, figures);
  add_remarks(page, run);
  add_sentences(page, run, figures);
  add_shares(page, run, figures);
  add(page, "h2", "Rank by rank");
  draw_timelines(page, run);
  add(page, "h2", "Training");
  for (const auto& chart : training_curves(run, figures)) draw(page, chart);
  add_cost(page, figures);
  for (const auto& chart : resource_curves(run, figures)) draw(page, chart);
  add_communication(page, figures);
  add_memory_by_kind(page, run);
  add_about(page, run);
  return whole_page(title, page);
}

}  // namespace checker::monitor
