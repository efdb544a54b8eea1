#include "state/run_state_file.h"

#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/log_record.h"

namespace tessera {

namespace {

// Unlike nlohmann's value(), reports a wrong type as an error of the file, with file and key.
template <typename T>
T read(const Json& object, const char* key, T otherwise, const std::string& origin) {
  if (!object.is_object() || !object.contains(key) || object.at(key).is_null()) return otherwise;
  try {
    return object.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw UsageError(origin + ": \"" + key + "\" is " + object.at(key).dump() + ", which has the wrong type");
  }
}

template <typename T>
std::optional<T> read_optional(const Json& object, const char* key, const std::string& origin) {
  return read<std::optional<T>>(object, key, std::nullopt, origin);
}

// Without a decimal point if it is whole, as transformers writes it.
Json steps_json(double steps) {
  return steps == std::floor(steps) ? Json(static_cast<std::int64_t>(steps)) : Json(steps);
}

Json position_json(const std::optional<DataPosition>& position) {
  if (!position) return nullptr;
  return {{"epoch", position->epoch}, {"num_taken", position->num_taken}};
}

std::optional<DataPosition> read_position(const Json& json, const std::string& origin) {
  const Json found = read<Json>(json, "data_position", Json(nullptr), origin);
  if (found.is_null()) return std::nullopt;
  const auto epoch = read_optional<std::int64_t>(found, "epoch", origin);
  const auto num_taken = read_optional<std::int64_t>(found, "num_taken", origin);
  if (!epoch || !num_taken || *epoch < 0 || *num_taken < 0) {
    throw UsageError(origin + ": data_position: expected an epoch and num_taken, whole numbers from 0");
  }
  return DataPosition{*epoch, *num_taken};
}

Json callbacks_json(const RunState& state) {
  const auto& [progress, shape] = state;
  Json callbacks = Json::object();
  if (shape.early_stopping_patience) {
    callbacks["EarlyStoppingCallback"] = {
        {"args",
         {{"early_stopping_patience", *shape.early_stopping_patience},
          {"early_stopping_threshold", shape.early_stopping_threshold}}},
        {"attributes", {{"early_stopping_patience_counter", progress.evaluations_without_gain}}}};
  }
  callbacks["Tessera"] = {{"args", Json::object()},
                          {"attributes",
                           {{"checkpoints", progress.checkpoints},
                            {"num_advanced", progress.num_advanced},
                            {"num_rows", shape.num_rows},
                            {"rows_of_update", shape.rows_of_update},
                            {"is_regrouped", shape.is_regrouped},
                            {"data_position", position_json(progress.position)},
                            {"row_order", shape.row_order},
                            {"started", shape.started},
                            {"num_losses", progress.num_losses},
                            {"total_loss", json_of(LogValue(progress.total_loss))}}}};
  return callbacks;
}

void read_callbacks(const Json& json, RunState& state, const std::string& origin) {
  auto& [progress, shape] = state;
  const Json callbacks = read<Json>(json, "stateful_callbacks", Json::object(), origin);
  const Json stopping = read<Json>(callbacks, "EarlyStoppingCallback", Json::object(), origin);
  const Json arguments = read<Json>(stopping, "args", Json::object(), origin);
  shape.early_stopping_patience = read_optional<std::int64_t>(arguments, "early_stopping_patience", origin);
  shape.early_stopping_threshold = read(arguments, "early_stopping_threshold", 0.0, origin);
  progress.evaluations_without_gain = read<std::int64_t>(read<Json>(stopping, "attributes", Json::object(), origin),
                                                         "early_stopping_patience_counter", 0, origin);
  const Json ours =
      read<Json>(read<Json>(callbacks, "Tessera", Json::object(), origin), "attributes", Json::object(), origin);
  progress.num_advanced = read<std::int64_t>(ours, "num_advanced", progress.step, origin);
  progress.checkpoints = read<std::vector<std::int64_t>>(ours, "checkpoints", {}, origin);
  shape.num_rows = read<std::int64_t>(ours, "num_rows", 0, origin);
  shape.rows_of_update = read<std::int64_t>(ours, "rows_of_update", 0, origin);
  shape.is_regrouped = read<bool>(ours, "is_regrouped", false, origin);
  progress.position = read_position(ours, origin);
  shape.row_order = read<std::string>(ours, "row_order", "", origin);
  progress.num_losses = read<std::int64_t>(ours, "num_losses", progress.step, origin);
  shape.started = read(ours, "started", 0.0, origin);
  // After a NaN loss this is the word "nan".
  const Json total = {{"total_loss", read<Json>(ours, "total_loss", Json(0), origin)}};
  progress.total_loss = log_record_of(total, origin).number("total_loss").value_or(0);
}

}  // namespace

Json to_json(const RunState& state) {
  const auto& [progress, shape] = state;
  Json history = Json::array();
  for (const LogRecord& record : progress.history) history.push_back(json_of(record));
  // Keys are sorted by name, as in transformers. A best value that is not finite becomes null when it is written.
  return {{"best_global_step", progress.best_step},
          {"best_metric", progress.best_value},
          {"best_model_checkpoint", progress.best_checkpoint.empty() ? Json(nullptr) : Json(progress.best_checkpoint)},
          {"epoch", progress.epoch},
          {"eval_steps", steps_json(shape.eval_steps)},
          {"global_step", progress.step},
          {"is_hyper_param_search", false},
          {"is_local_process_zero", true},
          {"is_world_process_zero", true},
          {"log_history", std::move(history)},
          {"logging_steps", steps_json(shape.logging_steps)},
          {"max_steps", shape.total_steps},
          {"num_input_tokens_seen", progress.num_tokens_seen},
          {"num_train_epochs", shape.num_train_epochs},
          {"save_steps", steps_json(shape.save_steps)},
          {"stateful_callbacks", callbacks_json(state)},
          {"total_flos", 0.0},
          {"train_batch_size", shape.train_batch_size},
          {"trial_name", nullptr},
          {"trial_params", nullptr}};
}

RunState run_state_of(const Json& json, const std::string& origin) {
  if (!json.is_object() || !json.contains("global_step")) {
    throw UsageError(origin + ": not the state of a run: expected an object with \"global_step\"");
  }
  RunState state;
  auto& [progress, shape] = state;
  progress.step = read<std::int64_t>(json, "global_step", 0, origin);
  progress.epoch = read(json, "epoch", 0.0, origin);
  shape.total_steps = read<std::int64_t>(json, "max_steps", 0, origin);
  shape.num_train_epochs = read<std::int64_t>(json, "num_train_epochs", 0, origin);
  shape.logging_steps = read(json, "logging_steps", 500.0, origin);
  shape.eval_steps = read(json, "eval_steps", 500.0, origin);
  shape.save_steps = read(json, "save_steps", 500.0, origin);
  shape.train_batch_size = read<std::int64_t>(json, "train_batch_size", 0, origin);
  progress.num_tokens_seen = read<std::int64_t>(json, "num_input_tokens_seen", 0, origin);
  progress.best_value = read_optional<double>(json, "best_metric", origin);
  progress.best_step = read_optional<std::int64_t>(json, "best_global_step", origin);
  progress.best_checkpoint = read(json, "best_model_checkpoint", std::string(), origin);
  for (const Json& entry : read<Json>(json, "log_history", Json::array(), origin)) {
    progress.history.push_back(log_record_of(entry, origin));
  }
  read_callbacks(json, state, origin);
  return state;
}

void write_run_state(const std::filesystem::path& file, const RunState& state) {
  write_file_atomically(file, to_json(state).dump(2) + "\n");
}

RunState read_run_state(const std::filesystem::path& file) {
  return run_state_of(read_json_file(file), file.string());
}

}  // namespace tessera
