#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "comm/bandwidth/bandwidth.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

template <typename Value>
struct Named {
  const char* name;
  Value value;
};
using TypeName = Named<at::ScalarType>;
using ReductionName = Named<ReduceOp::RedOpType>;
constexpr std::array kTypes = {TypeName{"float", at::kFloat},       TypeName{"half", at::kHalf},
                               TypeName{"bfloat16", at::kBFloat16}, TypeName{"int32", at::kInt},
                               TypeName{"int64", at::kLong},        TypeName{"uint8", at::kByte}};
constexpr std::array kReductions = {ReductionName{"sum", ReduceOp::SUM}, ReductionName{"avg", ReduceOp::AVG},
                                    ReductionName{"max", ReduceOp::MAX}, ReductionName{"min", ReduceOp::MIN}};

template <typename Table, typename Value>
std::string name_in(const Table& table, Value value) {
  const auto found = std::ranges::find(table, value, &Table::value_type::value);
  return found == table.end() ? "?" : found->name;
}

template <typename Table>
auto value_in(const Table& table, const char* what, const std::string& name) {
  const auto found = std::ranges::find_if(table, [&](const auto& each) { return name == each.name; });
  if (found != table.end()) return found->value;
  throw UsageError(
      fmt::format("no {} '{}': expected one of {}", what, name, join(texts_of(table, &Table::value_type::name), ", ")));
}

// Longer times get fewer decimals, so that the column keeps its width.
std::string time_text(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:.{}f}", us, us < 100 ? 2 : us < 10'000 ? 1 : 0);
}

std::string four_cells(const std::string& time, const std::string& algbw, const std::string& busbw,
                       const std::string& wrong) {
  return fmt::format("  {:>9}  {:>7}  {:>7}  {:>6}", time, algbw, busbw, wrong);
}

std::string cells(const std::optional<Measurement>& measurement) {
  const std::string wrong = measurement && measurement->num_wrong ? std::to_string(*measurement->num_wrong) : "N/A";
  if (!measurement || !measurement->seconds) return four_cells("N/A", "N/A", "N/A", wrong);
  return four_cells(time_text(*measurement->seconds), fmt::format("{:.2f}", measurement->algorithm_bandwidth),
                    fmt::format("{:.2f}", measurement->bus_bandwidth), wrong);
}

constexpr const char* kColumns = "{:>13} {:>13} {:>9} {:>7} {:>7}";

}  // namespace

std::string report_header(const ReportHeader& header, const BandwidthOptions& options) {
  const TestOperationTraits& traits = traits_of(options.operation);
  std::string text = fmt::format(
      "# {}: nRanks {} minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} validation: {} blocking: {}\n"
      "# backend {} on {}\n#\n# Using devices\n",
      traits.name, header.num_ranks, header.min_bytes, header.max_bytes, header.step, options.num_warmups,
      options.num_iterations, options.num_checks, options.blocking ? 1 : 0, header.backend, header.device);
  for (std::size_t rank = 0; rank < header.hosts.size(); ++rank) {
    text += fmt::format("#  Rank {:>3} on {}\n", rank, header.hosts[rank]);
  }
  text += "#\n";
  if (!header.idle.empty()) {
    text += fmt::format("# {} change{} nothing here\n", join(header.idle, ", "), header.idle.size() == 1 ? "s" : "");
  }
  if (traits.copies_first) {
    text += fmt::format("# out-of-place: {} works in place here; the time includes the copy into the receive buffer\n",
                        traits.name);
  }
  if (!traits.can_be_in_place) text += fmt::format("# in-place: {} has no such form\n", traits.name);
  if (header.num_ranks == 1) text += "# one rank moves nothing: its bus bandwidth is 0\n";
  text += fmt::format("#{:>52}  {:^35}  {:^35}\n", "", "out-of-place", "in-place");
  const std::string names = four_cells("time", "algbw", "busbw", "#wrong"),
                    units = four_cells("(us)", "(GB/s)", "(GB/s)", "");
  text += "#" + fmt::format(kColumns, "size", "count", "type", "redop", "root").substr(1) + names + names + "\n";
  text += "#" + fmt::format(kColumns, "(B)", "(elements)", "", "", "").substr(1) + units + units + "\n";
  return text;
}

std::string report_row(const BandwidthRow& row, const BandwidthOptions& options) {
  const TestOperationTraits& traits = traits_of(options.operation);
  return fmt::format(kColumns, row.shape.bytes, row.shape.count, name_in(kTypes, options.type),
                     traits.reduces ? name_in(kReductions, options.reduce_op) : "none",
                     traits.has_root ? options.root : -1) +
         cells(row.out_of_place) + cells(row.in_place) + "\n";
}

std::string report_footer(const BandwidthTotals& totals, bool checked) {
  const std::string wrong =
      checked ? fmt::format("{} {}", totals.num_wrong, totals.num_wrong == 0 ? "OK" : "FAILED") : "N/A (-c 0)";
  const std::string average = totals.average_bus_bandwidth ? fmt::format("{:g}", *totals.average_bus_bandwidth) : "N/A";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {}\n", wrong, average);
}

std::vector<std::string> type_names() {
  return texts_of(kTypes, &TypeName::name);
}

at::ScalarType type_named(const std::string& name) {
  return value_in(kTypes, "datatype", name);
}

std::vector<std::string> reduction_names() {
  return texts_of(kReductions, &ReductionName::name);
}

ReduceOp::RedOpType reduction_named(const std::string& name) {
  return value_in(kReductions, "reduction", name);
}

}  // namespace tessera
