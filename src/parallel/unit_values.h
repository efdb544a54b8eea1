// A unit's parameters: the whole buffer that the module sees, the shard that gathers send, and the master values.
//
// Its verbs are gather, release, and those that follow an update. docs/design/parallel.md draws the states. One thread
// at a time; all ranks of the shard group start gathers in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include <future>
#include <memory>
#include <vector>

#include "kernels/flat_buffers.h"
#include "parallel/unit_layout.h"
#include "tessera/unit.h"

namespace tessera {

class UnitValues {
 public:
  // The parameters (by slot) become views of the whole buffer. They start with their own values, or with the source's
  // if there is one; with `sync_from_first`, which is collective, with those of the groups' first rank.
  UnitValues(std::shared_ptr<const UnitContext> context, std::vector<at::Tensor> parameters,
             const ParameterSource& source, bool sync_from_first);

  void begin_gather();
  void wait_gather();
  void release();
  // Keeps this rank's part of the second copy, if the row has one: until an update, gathers read from it.
  void release_until_backward();
  bool is_whole() const { return state_ == State::kWhole; }
  bool is_on_its_way() const { return state_ == State::kGathering; }

  const kernels::SplitFloats& master() const { return master_; }
  const at::Tensor& compute_copy() const { return compute_copy_; }
  // The master and the compute copy have new values, or will have them when `pending` (which may be empty) is ready.
  // Gathers send them from now on; with delayed updates, after publish_update.
  void adopt_update(std::shared_future<void> pending);
  // With delayed updates: waits for the last update if it is not published yet; gathers send it from now on. The next
  // update may write when the transfer is done.
  Transfer publish_update();
  // Waits for a pending update, published or not, and rethrows its error.
  void wait_for_update();
  // Replaces all values: [padded] float32 on the device, the same on every rank. Call it after finish_update.
  void replace(const at::Tensor& values);
  // Replaces this rank's part: [updated] float32 on any device. Where parameters are kept whole and updated in parts,
  // it is collective: the parts are sent to the other ranks. Call it after finish_update.
  void replace_part(const at::Tensor& values);

 private:
  // kStale: whole on the device, but the host has newer values.
  enum class State { kSplit, kStale, kGathering, kWhole };

  at::Tensor first_values(const ParameterSource& source, bool sync_from_first) const;
  void place(const at::Tensor& values);
  void set_master(const at::Tensor& values);  // and the compute copy
  void bind_parameters();
  // The master is on the host and gathers send from the device: new values are uploaded after each update.
  bool updates_go_up() const {
    return context_->placement.optimizer.is_on_host() && !context_->placement.parameters.is_on_host();
  }
  void upload();
  void order_after_upload(const Transfer& upload);

  std::shared_ptr<const UnitContext> context_;
  std::vector<at::Tensor> parameters_;

  at::Tensor whole_;        // [padded] compute type on the device; its storage is empty while split
  at::Tensor shard_;        // [shard] compute type: what a gather sends; defined if parameters are split
  at::Tensor second_copy_;  // [part of it] compute type on the device: what gathers send while it is defined
  // [updated] float32; may be whole_, a part of it, shard_ or the host's compute_copy_, with a remainder or not
  kernels::SplitFloats master_;
  at::Tensor compute_copy_;  // [updated] compute type, written by the optimizer; undefined if master_ serves
  State state_ = State::kWhole;
  WorkHandle gather_;
  Transfer upload_, download_;
  Transfer uploaded_;              // the last upload that a stream waited for: it may still read the host's buffer
  bool device_is_behind_ = false;  // the host has newer values than whole_ or shard_ on the device
  bool has_unpublished_ = false;   // an update that gathers do not send yet
  std::shared_future<void> pending_;
};

}  // namespace tessera
