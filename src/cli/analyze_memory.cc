#include "cli/analyze_memory.h"

#include <fmt/format.h>

#include <filesystem>

#include "config/schema.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"
#include "monitor/memory_analysis.h"
#include "monitor/memory_logs.h"
#include "settings/shared.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct AnalyzeMemorySettings {
  std::vector<std::string> words;
  std::string path;
  bool gpu_only = false, cpu_only = false, as_json = false;

  MemoryKinds kinds() const { return gpu_only ? MemoryKinds::kGpu : cpu_only ? MemoryKinds::kCpu : MemoryKinds::kAll; }
};

void declare_analysis(Schema& schema, AnalyzeMemorySettings& s) {
  schema.positionals("JOB_ID|FILES...", &s.words);
  schema.text("path", &s.path).preset(".").help("the folder that holds gpu_memory/ and cpu_memory/");
  schema.boolean("gpu_only", &s.gpu_only).preset("false").help("only the GPU logs");
  schema.boolean("cpu_only", &s.cpu_only).preset("false").help("only the CPU logs");
  shared::as_json(schema, &s.as_json).help("print one JSON object");
}

bool is_file(const std::string& word) {
  std::error_code ignored;
  return fs::exists(word, ignored) && !fs::is_directory(word, ignored);
}

// One word that names no file is a job; everything else must be files.
bool names_a_job(const AnalyzeMemorySettings& s) {
  if (s.words.empty()) throw UsageError("tessera analyze-memory takes a job id, or the files of memory logs");
  for (const std::string& word : s.words) {
    if (is_file(word)) continue;
    if (s.words.size() > 1) throw UsageError(fmt::format("{}: no such file; give one job id, or files alone", word));
    if (word.find('/') != std::string::npos) {
      throw UsageError(
          fmt::format("{}: neither a file nor a job id; logs below a folder are read by: tessera "
                      "analyze-memory JOB_ID --path FOLDER",
                      word));
    }
    return true;
  }
  return false;
}

// By what is in them: users name their files as they like.
MemoryLogs sort_files(const AnalyzeMemorySettings& s) {
  MemoryLogs logs;
  for (const std::string& word : s.words) {
    const std::string text = read_file(word);
    if (is_gpu_memory_log(text)) {
      logs.gpu.emplace_back(word);
    } else if (is_cpu_memory_log(text)) {
      logs.cpu.emplace_back(word);
    } else if (is_cgroup_memory_log(text)) {
      logs.cgroup.emplace_back(word);
    } else {
      throw UsageError(
          fmt::format("{}: neither a GPU memory log (nvidia-smi --query-gpu=... --format=csv) nor a CPU memory log "
                      "(psrecord --log); its first line: '{}'",
                      word, printable(text.substr(0, text.find('\n')), 80)));
    }
  }
  if (s.gpu_only) logs.cpu = logs.cgroup = {};
  if (s.cpu_only) logs.gpu = {};
  return logs;
}

}  // namespace

int run_analyze_memory(const std::vector<std::string>& args) {
  AnalyzeMemorySettings s;
  Schema schema("tessera analyze-memory", "peak, average and mode of memory logs, by job or by file");
  declare_analysis(schema, s);
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  if (s.gpu_only && s.cpu_only) throw UsageError("--gpu-only and --cpu-only exclude each other; give one");
  const bool by_job = names_a_job(s);
  const MemoryAnalysis analysis =
      by_job ? analyze_memory_of_job(s.path, s.words.front(), s.kinds()) : analyze_memory_logs(sort_files(s));
  if (s.as_json) {
    Json json = Json::object();
    if (by_job) json = {{"job", s.words.front()}, {"path", s.path}};
    json.update(memory_json(analysis));
    print_out(json_text(json, 2) + "\n");
  } else {
    const std::string title =
        by_job ? fmt::format("Analyzing logs for job ID: {} under {}\n", s.words.front(), s.path) : "";
    print_out(title + memory_text(analysis));
  }
  return analysis.is_empty() ? static_cast<int>(ExitStatus::kFailure) : 0;
}

}  // namespace tessera
