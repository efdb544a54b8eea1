#include "parallel/collectives_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/text.h"
#include "parallel/placement.h"
#include "parallel/recorded_step.h"

namespace tessera {
namespace {

// Three blocks: the last stays gathered from forward to backward, the others show what every unit does.
constexpr std::int64_t kNumBlocks = 3;

Step step_of(const std::string& strategy, int num_micro_steps) {
  const Placement& row = placement_of(strategy);
  return {.strategy = strategy,
          .num_ranks = row.is_for_one_rank ? 1 : (row.needs_equal_nodes() ? 4 : 2),
          .ranks_per_node = row.needs_equal_nodes() ? 2 : 0,
          .num_micro_steps = num_micro_steps,
          .num_blocks = kNumBlocks};
}

// "2 gathers, 1 reduce-scatter" of one unit.
std::string counted(const std::vector<Call>& calls, const std::string& unit) {
  const std::vector<std::pair<std::string, std::string>> words = {{"gather", "gather"},
                                                                  {"gather in the node", "gather in the node"},
                                                                  {"reduce", "reduce-scatter"},
                                                                  {"add across nodes", "all-reduce"}};
  std::vector<std::string> parts;
  for (const auto& [what, word] : words) {
    const auto number = std::count_if(calls.begin(), calls.end(),
                                      [&, &name = what](const Call& c) { return c.unit == unit && c.what == name; });
    const std::size_t noun_end = std::min(word.find(' '), word.size());
    std::string text = word;
    if (number > 1) text.insert(noun_end, "s");
    if (number > 0) parts.push_back(fmt::format("{} {}", number, text));
  }
  return parts.empty() ? "-" : join(parts, ", ");
}

std::int64_t bytes_of(const std::vector<Call>& calls, const std::string& unit) {
  std::int64_t bytes = 0;
  for (const Call& call : calls) bytes += call.unit == unit ? call.bytes : 0;
  return bytes;
}

struct Row {
  std::vector<std::string> strategies;
  int num_micro_steps = 1;
  std::vector<Call> calls;
};

// Strategies that make the same calls share a row.
std::vector<Row> rows(int num_micro_steps) {
  std::vector<Row> rows;
  for (const std::string& strategy : strategy_names()) {
    const std::vector<Call> calls = record(step_of(strategy, num_micro_steps));
    auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.calls == calls; });
    if (same == rows.end()) same = rows.insert(rows.end(), {{}, num_micro_steps, calls});
    same->strategies.push_back(strategy);
  }
  return rows;
}

std::string table_line(const Row& row) {
  EXPECT_EQ(counted(row.calls, "block_0"), counted(row.calls, "block_1")) << "every unit but the last is alike";
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", join(row.strategies, ", "), row.num_micro_steps,
                     counted(row.calls, "block_0"), counted(row.calls, "block_2"), counted(row.calls, "root"),
                     counted(row.calls, "gradient norm"), row.calls.size(), bytes_of(row.calls, "block_0"));
}

std::string order_lines(const Row& row) {
  std::string text = fmt::format("\n**{}**, {} micro-step{}:", join(row.strategies, ", "), row.num_micro_steps,
                                 row.num_micro_steps == 1 ? "" : "s");
  if (row.calls.empty()) return text + " none.\n";
  text += "\n\n```\n";
  for (const Call& call : row.calls) text += fmt::format("{:<20}{:<14}{:>7}\n", call.what, call.unit, call.bytes);
  return text + "```\n";
}

}  // namespace

std::string collectives_page() {
  std::string page =
      "# Collectives of a step\n"
      "\n"
      "Written by the test `CollectivesPage.ShowsWhatTheFlightRecorderShows` (tests/parallel/collectives_test.cc), "
      "which\n"
      "fails when this page and what the flight recorder sees differ, and then prints the page as it should be.\n"
      "\n"
      "One step of a model with three blocks and a root in float32: two ranks; for rows that use nodes two nodes of "
      "two\n"
      "ranks. A *gather* is an all-gather over all ranks that split the unit, *in the node* over the node's second "
      "copy;\n"
      "what is *added across nodes* is an all-reduce of shards. The last unit is kept from forward to backward. `norm` "
      "is\n"
      "the gather of the gradients' sums of squares, which rows with a whole optimizer do not need. Bytes are those of "
      "the\n"
      "larger of a collective's input and output: 40960 is all of a block.\n"
      "\n"
      "| strategy | micro-steps | per unit | last unit | root | norm | total | bytes for block_0 |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  std::string orders;
  for (const int num_micro_steps : {1, 4}) {
    for (const Row& row : rows(num_micro_steps)) {
      page += table_line(row);
      if (num_micro_steps == 1) orders += order_lines(row);
    }
  }
  return page +
         "\n"
         "With accumulation, rows with whole gradients (ddp, zero0, zero1, no_shard) reduce in the last micro-step "
         "only\n"
         "(`no_sync`); rows with split gradients reduce in each, and those with split parameters gather their units "
         "in\n"
         "each, the root once.\n"
         "\n"
         "## In order\n" +
         orders;
}

}  // namespace tessera
