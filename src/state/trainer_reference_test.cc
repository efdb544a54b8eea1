// The whole flow of a run, without a model: step plan, schedule, flow, losses, best model, early stopping and rotation
// together produce the same events as Hugging Face's Trainer 4.50 for the same arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/log_record.h"
#include "state/checkpoint_folder.h"
#include "support/train_references.h"
#include "train/flow.h"
#include "train/meters.h"
#include "train/schedule.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

Interval interval_of(const std::string& word) {
  return word == "no"      ? Interval::kNo
         : word == "steps" ? Interval::kSteps
         : word == "epoch" ? Interval::kEpoch
                           : Interval::kBest;
}

double loss_of_row(std::int64_t row) {
  return 0.5 + static_cast<double>(row * 37 % 101) / 64;
}

class DryRun {
 public:
  explicit DryRun(const Json& arguments)
      : arguments_(arguments),
        rows_(arguments.at("rows")),
        batch_(arguments.at("per_device_train_batch_size")),
        plan_(step_options()),
        flow_(flow_options(), plan_.total_steps()),
        schedule_({.kind = "linear", .learning_rate = 5e-5, .total_steps = plan_.total_steps()}) {
    const bool load_best = arguments.value("load_best_model_at_end", false);
    if (load_best || arguments.contains("metric_for_best_model")) {
      const auto greater = arguments.contains("greater_is_better")
                               ? std::optional<bool>(arguments.at("greater_is_better").get<bool>())
                               : std::nullopt;
      best_.emplace(arguments.value("metric_for_best_model", "loss"), greater);
    }
    if (arguments.contains("patience")) stopping_.emplace(arguments.at("patience"), arguments.value("threshold", 0.0));
  }

  void run() {
    if (arguments_.value("eval_on_start", false)) evaluate(0, 0);
    std::int64_t step = 0;
    while (step < plan_.total_steps() && !stop_) {
      const Update update = plan_.update(++step);
      add_loss(update);
      act(flow_.after_step(step), step, update.epoch_after);
      if (update.ends_epoch || update.ends_run || stop_) {
        act(flow_.after_epoch(step, update.epoch_after), step, update.epoch_after);
      }
    }
    steps_done = step;
  }

  std::int64_t total_steps() const { return plan_.total_steps(); }
  double train_loss() const { return losses_.run_mean(); }
  std::optional<double> best_value() const { return best_ ? best_->best_value() : std::nullopt; }

  Json events = Json::array();
  std::int64_t steps_done = 0;

 private:
  StepPlanOptions step_options() const {
    StepPlanOptions options;
    options.num_batches = (rows_ + batch_ - 1) / batch_;
    options.accumulation = arguments_.value("gradient_accumulation_steps", 1);
    options.num_train_epochs = arguments_.value("num_train_epochs", 3.0);
    options.max_steps = arguments_.value("max_steps", -1);
    return options;
  }

  FlowOptions flow_options() const {
    FlowOptions options;
    options.logging = interval_of(arguments_.value("logging_strategy", "steps"));
    options.logging_steps = arguments_.value("logging_steps", 500.0);
    options.logging_first_step = arguments_.value("logging_first_step", false);
    options.evaluation = interval_of(arguments_.value("eval_strategy", "no"));
    if (arguments_.contains("eval_steps")) options.eval_steps = arguments_.at("eval_steps").get<double>();
    options.eval_delay = arguments_.value("eval_delay", 0.0);
    options.saving = interval_of(arguments_.value("save_strategy", "steps"));
    options.save_steps = arguments_.value("save_steps", 500.0);
    return options;
  }

  void add_loss(const Update& update) {
    double sum = 0;
    for (std::int64_t i = 0; i < update.num_batches; ++i) {
      const std::int64_t begin = (update.first_batch + i) * batch_, end = std::min(rows_, begin + batch_);
      double batch_sum = 0;
      for (std::int64_t row = begin; row < end; ++row) batch_sum += loss_of_row(row);
      sum += batch_sum / static_cast<double>(end - begin);
    }
    losses_.add(sum / static_cast<double>(update.num_batches));
  }

  void act(Actions actions, std::int64_t step, double epoch) {
    if (actions.log) {
      events.push_back({"log", step, epoch, python_round(losses_.take_mean().value(), 4), schedule_.at(step)});
    }
    if (actions.evaluate) {
      const bool is_best = evaluate(step, epoch);
      if (arguments_.value("save_strategy", "steps") == "best") actions.save = is_best;
    }
    if (actions.save) save(step, epoch);
  }

  bool evaluate(std::int64_t step, double epoch) {
    events.push_back({"evaluate", step, epoch});
    if (!best_ || step == 0) return false;
    LogRecord record{{"eval_loss", 1.0}};
    if (arguments_.contains("metrics") && num_evaluations_ < arguments_.at("metrics").size()) {
      const LogRecord value = log_record_of({{"value", arguments_.at("metrics")[num_evaluations_++]}}, "metrics");
      record.set(best_->metric(), *value.find("value"));
    }
    const double value = best_->value_in(record);
    if (stopping_ && stopping_->should_stop(value, *best_)) stop_ = true;
    return best_->add(value, step);
  }

  void save(std::int64_t step, double epoch) {
    folders_.insert(step);
    // Only a best model that was saved can be kept.
    if (best_ && best_->best_step() && folders_.contains(*best_->best_step()) &&
        arguments_.value("save_strategy", "steps") != "best") {
      best_folder_ = best_->best_step();
    }
    const std::vector<std::int64_t> all(folders_.begin(), folders_.end());
    for (const std::int64_t gone : checkpoints_to_delete(all, best_folder_, arguments_.value("save_total_limit", 0))) {
      folders_.erase(gone);
    }
    events.push_back({"save", step, epoch, std::vector<std::int64_t>(folders_.begin(), folders_.end()),
                      best_folder_ ? Json(*best_folder_) : Json(nullptr),
                      best_value() ? Json(*best_value()) : Json(nullptr)});
  }

  Json arguments_;
  std::int64_t rows_, batch_;
  StepPlan plan_;
  Flow flow_;
  Schedule schedule_;
  LossMeter losses_;
  std::optional<BestModel> best_;
  std::optional<EarlyStopping> stopping_;
  std::optional<std::int64_t> best_folder_;
  std::set<std::int64_t> folders_;
  std::size_t num_evaluations_ = 0;
  bool stop_ = false;
};

// Compares numbers as numbers: 1 equals 1.0. We weight a short last group correctly; that release does not.
void expect_same_event(const Json& ours, const Json& theirs, bool with_loss) {
  ASSERT_EQ(ours.size(), theirs.size()) << ours.dump() << " and " << theirs.dump();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const bool is_loss = i == 3 && ours[0] == "log";
    if (is_loss && !with_loss) continue;
    if (ours[i].is_number() && theirs[i].is_number()) {
      EXPECT_EQ(ours[i].get<double>(), theirs[i].get<double>()) << ours.dump() << " and " << theirs.dump();
    } else {
      EXPECT_EQ(ours[i], theirs[i]) << ours.dump() << " and " << theirs.dump();
    }
  }
}

TEST(TrainerReference, EveryEventOfEveryRunIsTransformers) {
  int num_cases = 0, num_stopped = 0;
  for (const Json& row : train_reference("trainer_4_50.json", "flow")) {
    SCOPED_TRACE(row.dump());
    DryRun run(row);
    run.run();
    const bool with_loss = row.value("gradient_accumulation_steps", 1) == 1;
    EXPECT_EQ(run.total_steps(), row.at("total_steps"));
    EXPECT_EQ(run.steps_done, row.at("done"));
    ASSERT_EQ(run.events.size(), row.at("events").size()) << run.events.dump();
    for (std::size_t i = 0; i < run.events.size(); ++i) {
      expect_same_event(run.events[i], row.at("events")[i], with_loss);
    }
    if (with_loss) {
      EXPECT_NEAR(run.train_loss(), row.at("train_loss").get<double>(), 1e-9);
    }
    ++num_cases;
    num_stopped += run.steps_done < run.total_steps() ? 1 : 0;
  }
  EXPECT_EQ(num_cases, 78);
  EXPECT_GE(num_stopped, 4);  // early stopping is among them
}

}  // namespace
}  // namespace tessera
