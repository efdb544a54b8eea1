#include "soak/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <stdexcept>
#include <thread>

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kNumRuns = 24;                 // drawn once a campaign: each needs an undisturbed run
constexpr std::chrono::seconds kWhole{150};  // for a run that nothing keeps from its end

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t model_of(const fs::path& output) {
  return std::hash<std::string>()(read_all(output / "model.safetensors"));
}

// Waits for the end of the run and of all its processes; false: some are left after `limit`.
bool wait_until_gone(StartedRun& run, std::chrono::seconds limit) {
  const auto until = Clock::now() + limit;
  while (!run.status()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(10ms);
  }
  return run.is_gone(std::max(0ms, std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now())));
}

bool has_checkpoint(const fs::path& output) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(output, ignored)) {
    if (entry.path().filename().string().starts_with("checkpoint-")) return true;
  }
  return false;
}

// A trial in its own folder, with its own folder for temporary files.
struct Place {
  fs::path folder;
  int port = free_port();

  fs::path output() const { return folder / "out"; }
  Variables variables() const {
    return {{"TMPDIR", (folder / "tmp").string()},
            {"XDG_CACHE_HOME", (folder.parent_path() / "cache").string()},
            {"OMP_NUM_THREADS", "1"}};
  }
  void keep(const StartedRun& run, const std::string& name) const {
    std::ofstream(folder / (name + ".out"), std::ios::binary) << run.out();
    std::ofstream(folder / (name + ".err"), std::ios::binary) << run.err();
  }
};

Place make_place(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder / "tmp");
  return {folder};
}

// "0, 2-4"
std::set<int> ranks_in(const std::string& text) {
  static const std::regex range(R"(([0-9]+)(?:-([0-9]+))?)");
  std::set<int> ranks;
  for (std::sregex_iterator it(text.begin(), text.end(), range), end; it != end; ++it) {
    const int first = std::stoi((*it)[1]), last = (*it)[2].matched ? std::stoi((*it)[2]) : first;
    for (int rank = first; rank <= last; ++rank) ranks.insert(rank);
  }
  return ranks;
}

// Ranks that somebody blames, by the words of all our verdicts.
std::set<int> blamed_ranks(const std::string& text) {
  static const std::regex blame(
      "ranks? ([0-9][0-9, -]*) on [^\n:]* "
      "(?:is gone|are gone|did not answer|has not answered|never entered a collective|entered another collective)"
      "|tessera launch: rank ([0-9]+) on ");
  std::set<int> ranks;
  for (std::sregex_iterator it(text.begin(), text.end(), blame), end; it != end; ++it) {
    ranks.merge(ranks_in((*it)[1].matched ? (*it)[1] : (*it)[2]));
  }
  return ranks;
}

void check_words(Scene& scene, const Fault& fault, TrialResult& result) {
  const std::string text = scene.run.out() + scene.run.err();
  for (const char* const never : {"frame #", "terminate called", "Exception raised from", "c10::Error"}) {
    if (contains(text, never)) result.problems.push_back(fmt::format("shows '{}'", never));
  }
  if (!result.was_hit || result.has_finished || fault.outcome != Outcome::kEnds) return;
  const std::string expected = fault.expected(scene);
  if (!contains(text, expected)) result.problems.push_back(fmt::format("does not say '{}'", expected));
  if (scene.may_blame_anybody) return;
  for (const int rank : blamed_ranks(text)) {
    const bool is_right = std::find(scene.victims.begin(), scene.victims.end(), rank) != scene.victims.end();
    if (!is_right) result.problems.push_back(fmt::format("blames rank {}", rank));
  }
}

// Open MPI's own folder is cleaned by our launcher, if it lived.
void check_litter(const Place& place, bool cleans_mpi, TrialResult& result) {
  for (const auto& entry : fs::directory_iterator(place.folder / "tmp")) {
    const std::string name = entry.path().filename().string();
    if (contains(name, "ompi.") && (!cleans_mpi || fs::is_empty(entry.path()))) continue;
    result.problems.push_back("left " + name);
  }
  for (const auto& entry : fs::directory_iterator(place.output())) {
    const std::string name = entry.path().filename().string();
    if (contains(name, ".part")) result.problems.push_back("left " + name);
  }
}

void disturb(const DrawnRun& drawn, const Fault& fault, const Place& place, std::mt19937& random, TrialResult& result) {
  const auto start = Clock::now();
  StartedRun run(drawn.command(place.output(), place.port), place.variables());
  Scene scene{run, drawn, place.port, random};
  std::this_thread::sleep_until(start + std::chrono::duration<double>(result.moment));
  result.has_met = scene.has_met();
  result.was_hit = fault.strike(scene);
  const auto struck = Clock::now();
  const bool must_end = result.was_hit && fault.outcome != Outcome::kGoesOn;
  // Before the ranks have met, the limit of the start counts.
  const std::chrono::seconds limit = !must_end ? kWhole : result.has_met ? fault.limit : fault.limit + kStartLimit;
  if (!wait_until_gone(run, limit)) {
    result.problems.push_back(fmt::format("processes are left after {} s", limit.count()));
  }
  if (must_end) result.gone_after = seconds_since(struck);
  result.status = run.status().value_or(-1);
  // A loose mpirun ends with 0, whatever its ranks did: a run that has finished has left its model.
  result.has_finished = result.status == 0 && fs::exists(place.output() / "model.safetensors");
  if (!must_end && !result.has_finished) result.problems.push_back("failed, though it can go on");
  check_words(scene, fault, result);
  place.keep(run, "disturbed");
}

void go_on(const DrawnRun& drawn, const Place& place, TrialResult& result) {
  Words words = drawn.command(place.output(), place.port);
  result.has_resumed = has_checkpoint(place.output());
  if (result.has_resumed) words.insert(words.end(), {"--resume_from_checkpoint", "latest"});
  if (!result.has_resumed) words.emplace_back("--overwrite_output_dir");  // the fault may have come after the model
  StartedRun run(words, place.variables());
  if (!wait_until_gone(run, kWhole)) result.problems.push_back("the run that goes on hangs");
  if (run.status() != 0) result.problems.push_back("the run that goes on fails");
  if (contains(run.out() + run.err(), "skipped: ")) result.problems.push_back("left a broken checkpoint");
  place.keep(run, "resumed");
}

}  // namespace

Trials::Trials(fs::path folder, unsigned seed) : folder_(std::move(folder)), seed_(seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < kNumRuns; ++i) runs_.push_back(draw_run(random));
}

Reference& Trials::reference_of(const DrawnRun& drawn) {
  const auto found = references_.find(drawn.name());
  if (found != references_.end()) return found->second;
  const Place place = make_place(folder_ / "reference");
  const auto start = Clock::now();
  StartedRun run(drawn.command(place.output(), place.port), place.variables());
  if (!wait_until_gone(run, kWhole) || *run.status() != 0) {
    place.keep(run, "run");
    throw std::runtime_error(
        fmt::format("{}: the undisturbed run failed: see {}", drawn.name(), place.folder.string()));
  }
  const Reference reference{seconds_since(start), model_of(place.output())};
  fs::remove_all(place.folder);
  return references_[drawn.name()] = reference;
}

TrialResult Trials::run(int number) {
  std::seed_seq seeds{seed_, static_cast<unsigned>(number)};
  std::mt19937 random(seeds);
  const DrawnRun& drawn = draw(runs_, random);
  std::vector<const Fault*> possible;
  for (const Fault& fault : all_faults()) {
    const bool fits = std::find(fault.starters.begin(), fault.starters.end(), drawn.starter) != fault.starters.end();
    if (fits && drawn.num_ranks >= fault.least_ranks) possible.push_back(&fault);
  }
  const Fault& fault = *draw(possible, random);
  Reference& reference = reference_of(drawn);
  const Place place = make_place(folder_ / fmt::format("trial-{}", number));
  TrialResult result{.run = drawn.name(), .fault = fault.name};
  result.moment = reference.seconds * static_cast<double>(random() % 1000) / 1000;
  disturb(drawn, fault, place, random, result);
  if (!result.was_hit) reference.seconds = std::min(reference.seconds, 0.8 * result.moment);  // it was slow that day
  if (!result.has_finished) go_on(drawn, place, result);
  if (model_of(place.output()) != reference.model) result.problems.push_back("another model");
  check_litter(place, drawn.starter == Starter::kLaunch && fault.name != "kill the launcher", result);
  if (result.problems.empty()) fs::remove_all(place.folder);
  return result;
}

}  // namespace tessera::testing
