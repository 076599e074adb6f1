#include "monitor/csv.hpp"

#include <cmath>
#include <initializer_list>

#include "monitor/words.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

std::string time_of(double seconds) { return fixed(seconds, 6); }
std::string whole(uint64_t number) { return std::to_string(number); }
std::string known_or_empty(uint32_t value) {
  return value == kUnknown ? "" : std::to_string(value);
}

void add_row(std::string& csv, std::initializer_list<std::string> fields) {
  bool first = true;
  for (const auto& field : fields) {
    if (!first) csv += ',';
    first = false;
    csv += field;
  }
  csv += '\n';
}

std::string steps_csv(const Run& run) {
  std::string csv =
      "rank,step,begin,end,data,forward,backward,optimizer,collectives,targets,learning_rate,"
      "loss\n";
  for (const auto& record : run.ranks) {
    for (const auto& step : record.steps) {
      add_row(csv,
              {whole(record.rank()), whole(step.number), time_of(step.begin), time_of(step.end),
               time_of(step.phases[0]), time_of(step.phases[1]), time_of(step.phases[2]),
               time_of(step.phases[3]), time_of(step.collectives), whole(step.targets),
               compact(step.learning_rate), std::isnan(step.loss) ? "" : fixed(step.loss, 6)});
    }
  }
  return csv;
}

std::string evaluations_csv(const Run& run) {
  std::string csv = "rank,split,step,end,sum,count\n";
  for (const auto& record : run.ranks) {
    for (const auto& [time, part] : record.evaluations) {
      add_row(csv, {whole(record.rank()), part.split, whole(part.step), time_of(time),
                    fixed(part.sum, 6), fixed(part.count, 0)});
    }
  }
  return csv;
}

std::string metrics_csv(const Run& run) {
  std::string csv = "rank,metric,step,end,sum,count\n";
  for (const auto& record : run.ranks) {
    for (const auto& [time, metric] : record.measured) {
      add_row(csv, {whole(record.rank()), metric.name, whole(metric.step), time_of(time),
                    fixed(metric.sum, 6), fixed(metric.count, 0)});
    }
  }
  return csv;
}

std::string collectives_csv(const Run& run) {
  std::string csv = "rank,group,sequence,collective,begin,end,bytes,failed\n";
  for (const auto& record : run.ranks) {
    for (const auto& call : record.collectives) {
      add_row(csv, {whole(record.rank()), whole(call.group), whole(call.sequence),
                    std::string(collective_name(call.op_type)), time_of(call.begin),
                    time_of(call.end), whole(call.bytes), call.failed ? "1" : "0"});
    }
  }
  return csv;
}

std::string ranks_csv(const Run& run) {
  std::string csv = "rank,time,cpu_seconds,resident,read,written\n";
  for (const auto& record : run.ranks) {
    for (const auto& [time, sample] : record.process) {
      add_row(csv,
              {whole(record.rank()), time_of(time), time_of(static_cast<double>(sample.cpu) * 1e-9),
               whole(sample.resident), whole(sample.read), whole(sample.written)});
    }
  }
  return csv;
}

std::string nodes_csv(const Run& run) {
  std::string csv = "host,time,busy_ticks,ticks,available,total\n";
  for (const auto& record : run.ranks) {
    for (const auto& [time, sample] : record.node) {
      add_row(csv, {record.host(), time_of(time), whole(sample.busy), whole(sample.ticks),
                    whole(sample.available), whole(sample.total)});
    }
  }
  return csv;
}

std::string gpus_csv(const Run& run) {
  std::string csv =
      "rank,host,gpu,time,utilisation,used,total,milliwatts,sm_clock,memory_clock,celsius\n";
  for (const auto& record : run.ranks) {
    for (const auto& [time, sample] : record.gpus) {
      add_row(csv, {whole(record.rank()), record.host(), whole(sample.number), time_of(time),
                    known_or_empty(sample.utilisation), whole(sample.used), whole(sample.total),
                    known_or_empty(sample.milliwatts), known_or_empty(sample.sm_clock),
                    known_or_empty(sample.memory_clock), known_or_empty(sample.celsius)});
    }
  }
  return csv;
}

}  // namespace

void write_csv(const Run& run, const std::filesystem::path& folder) {
  write_file(folder / "steps.csv", steps_csv(run));
  write_file(folder / "evaluations.csv", evaluations_csv(run));
  write_file(folder / "metrics.csv", metrics_csv(run));
  write_file(folder / "collectives.csv", collectives_csv(run));
  write_file(folder / "ranks.csv", ranks_csv(run));
  write_file(folder / "nodes.csv", nodes_csv(run));
  write_file(folder / "gpus.csv", gpus_csv(run));
}

}  // namespace checker::monitor
