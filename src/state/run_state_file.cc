#include "state/run_state_file.h"

#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/log_json.h"

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
  if (!object.is_object() || !object.contains(key) || object.at(key).is_null()) return std::nullopt;
  return read<T>(object, key, T(), origin);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
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
  Json callbacks = Json::object();
  if (state.early_stopping_patience) {
    callbacks["EarlyStoppingCallback"] = {
        {"args",
         {{"early_stopping_patience", *state.early_stopping_patience},
          {"early_stopping_threshold", state.early_stopping_threshold}}},
        {"attributes", {{"early_stopping_patience_counter", state.evaluations_without_gain}}}};
  }
  callbacks["Tessera"] = {{"args", Json::object()},
                          {"attributes",
                           {{"checkpoints", state.checkpoints},
                            {"num_advanced", state.num_advanced},
                            {"num_rows", state.num_rows},
                            {"rows_of_update", state.rows_of_update},
                            {"is_regrouped", state.is_regrouped},
                            {"data_position", position_json(state.position)},
                            {"row_order", state.row_order},
                            {"started", state.started},
                            {"num_losses", state.num_losses},
                            {"total_loss", json_of(LogValue(state.total_loss))}}}};
  return callbacks;
}

void read_callbacks(const Json& json, RunState& state, const std::string& origin) {
  const Json callbacks = read<Json>(json, "stateful_callbacks", Json::object(), origin);
  const Json stopping = read<Json>(callbacks, "EarlyStoppingCallback", Json::object(), origin);
  const Json arguments = read<Json>(stopping, "args", Json::object(), origin);
  state.early_stopping_patience = read_optional<std::int64_t>(arguments, "early_stopping_patience", origin);
  state.early_stopping_threshold = read(arguments, "early_stopping_threshold", 0.0, origin);
  state.evaluations_without_gain = read<std::int64_t>(read<Json>(stopping, "attributes", Json::object(), origin),
                                                      "early_stopping_patience_counter", 0, origin);
  const Json ours =
      read<Json>(read<Json>(callbacks, "Tessera", Json::object(), origin), "attributes", Json::object(), origin);
  state.num_advanced = read<std::int64_t>(ours, "num_advanced", state.step, origin);
  state.checkpoints = read<std::vector<std::int64_t>>(ours, "checkpoints", {}, origin);
  state.num_rows = read<std::int64_t>(ours, "num_rows", 0, origin);
  state.rows_of_update = read<std::int64_t>(ours, "rows_of_update", 0, origin);
  state.is_regrouped = read<bool>(ours, "is_regrouped", false, origin);
  state.position = read_position(ours, origin);
  state.row_order = read<std::string>(ours, "row_order", "", origin);
  state.num_losses = read<std::int64_t>(ours, "num_losses", state.step, origin);
  state.started = read(ours, "started", 0.0, origin);
  // After a NaN loss this is the word "nan".
  const Json total = {{"total_loss", read<Json>(ours, "total_loss", Json(0), origin)}};
  state.total_loss = log_record_of(total, origin).number("total_loss").value_or(0);
}

}  // namespace

Json to_json(const RunState& state) {
  Json history = Json::array();
  for (const LogRecord& record : state.history) history.push_back(json_of(record));
  const bool has_best = state.best_value && std::isfinite(*state.best_value);
  // Keys are sorted by name, as in transformers.
  return {{"best_global_step", or_null(state.best_step)},
          {"best_metric", has_best ? Json(*state.best_value) : Json(nullptr)},
          {"best_model_checkpoint", state.best_checkpoint.empty() ? Json(nullptr) : Json(state.best_checkpoint)},
          {"epoch", state.epoch},
          {"eval_steps", steps_json(state.eval_steps)},
          {"global_step", state.step},
          {"is_hyper_param_search", false},
          {"is_local_process_zero", true},
          {"is_world_process_zero", true},
          {"log_history", std::move(history)},
          {"logging_steps", steps_json(state.logging_steps)},
          {"max_steps", state.total_steps},
          {"num_input_tokens_seen", state.num_tokens_seen},
          {"num_train_epochs", state.num_train_epochs},
          {"save_steps", steps_json(state.save_steps)},
          {"stateful_callbacks", callbacks_json(state)},
          {"total_flos", 0.0},
          {"train_batch_size", state.train_batch_size},
          {"trial_name", nullptr},
          {"trial_params", nullptr}};
}

RunState run_state_of(const Json& json, const std::string& origin) {
  if (!json.is_object() || !json.contains("global_step")) {
    throw UsageError(origin + ": not the state of a run: expected an object with \"global_step\"");
  }
  RunState state;
  state.step = read<std::int64_t>(json, "global_step", 0, origin);
  state.epoch = read(json, "epoch", 0.0, origin);
  state.total_steps = read<std::int64_t>(json, "max_steps", 0, origin);
  state.num_train_epochs = read<std::int64_t>(json, "num_train_epochs", 0, origin);
  state.logging_steps = read(json, "logging_steps", 500.0, origin);
  state.eval_steps = read(json, "eval_steps", 500.0, origin);
  state.save_steps = read(json, "save_steps", 500.0, origin);
  state.train_batch_size = read<std::int64_t>(json, "train_batch_size", 0, origin);
  state.num_tokens_seen = read<std::int64_t>(json, "num_input_tokens_seen", 0, origin);
  state.best_value = read_optional<double>(json, "best_metric", origin);
  state.best_step = read_optional<std::int64_t>(json, "best_global_step", origin);
  state.best_checkpoint = read(json, "best_model_checkpoint", std::string(), origin);
  for (const Json& entry : read<Json>(json, "log_history", Json::array(), origin)) {
    state.history.push_back(log_record_of(entry, origin));
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
