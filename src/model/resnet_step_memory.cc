// The memory use of model/resnet.cc, without the workspaces that cuDNN chooses itself.
#include <algorithm>
#include <vector>

#include "model/resnet.h"
#include "model/step_memory.h"

namespace tessera {
namespace {

std::int64_t halved(std::int64_t side) {
  return (side + 1) / 2;
}

class ResNet50StepMemory : public StepMemory {
 public:
  ResNet50StepMemory(std::int64_t num_classes, const StepShape& shape) : num_classes_(num_classes), shape_(shape) {
    if (shape.element_bytes == kFloatBytes) shape_.casts_parameters = false;
    std::int64_t in = kStemChannels, side = halved(halved(shape.longest));
    for (const auto& [channels, num_blocks, first_stride] : kResNet50Layers) {
      for (std::int64_t i = 0; i < num_blocks; ++i) {
        const bool shrinks = i == 0 && first_stride == 2;
        const std::int64_t to_side = shrinks ? halved(side) : side;
        blocks_.push_back({in, channels, side, to_side, i == 0});
        in = channels * kExpansion;
        side = to_side;
      }
    }
  }

  std::size_t num_units() const override { return blocks_.size(); }
  std::int64_t input_bytes(std::size_t unit) const override {
    return image_bytes(blocks_[unit].in_channels, blocks_[unit].side);
  }
  std::int64_t output_bytes(std::size_t unit) const override {
    return image_bytes(blocks_[unit].channels * kExpansion, blocks_[unit].to_side);
  }

  void begin_forward(MemoryTape& tape) const override {
    tape.take(image_bytes(3, shape_.longest));  // channels last
    convolution_forward(3, kStemChannels, 49, stem_bytes(), true, tape);
    tape.take(stem_bytes());  // batch-norm's, the ReLU in place
    tape.take(input_bytes(0) + pool_index_bytes());
    if (is_fused()) tape.give(stem_bytes());
  }

  void unit_forward(std::size_t unit, bool keeps, MemoryTape& tape) const override {
    const Block& block = blocks_[unit];
    const auto [inner, middle, out] = bytes_of(unit);
    convolution_forward(block.in_channels, block.channels, 1, inner, keeps, tape);
    tape.take(inner);  // batch-norm's, the ReLU in place
    tape.give_unless(keeps, inner);
    convolution_forward(block.channels, block.channels, 9, middle, keeps, tape);
    tape.take(middle);
    tape.give_unless(keeps, inner + middle);
    convolution_forward(block.channels, block.channels * kExpansion, 1, out, keeps, tape);
    tape.take(out);  // becomes the sum and the output in place
    tape.give_unless(keeps, middle + out);
    if (!block.changes_shape) return;
    convolution_forward(block.in_channels, block.channels * kExpansion, 1, out, keeps, tape);
    tape.take(out);
    tape.give(out);  // added
    tape.give_unless(keeps, out);
  }

  void unit_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const override {
    const Block& block = blocks_[unit];
    const auto [inner, middle, out] = bytes_of(unit);
    const std::int64_t in = input_bytes(unit), wide = block.channels * kExpansion;
    const std::int64_t ended = gradient_is_held ? 0 : 2 * out;  // the incoming gradient, and the output, which is kept
    if (gradient_is_held && unit + 1 == blocks_.size()) tape.give(out);  // the first pass's, which the mean had
    if (is_fused()) {
      tape.take(out);  // the residual's
      norm_backward(wide, out, out + ended, tape);
    } else {
      tape.take(out);  // of the ReLU
      tape.give(ended);
    }
    if (block.changes_shape) {
      norm_backward(wide, out, is_fused() ? 2 * out : out, tape);
      convolution_backward(block.in_channels, wide, 1, in, out, tape);
    }
    if (!is_fused()) norm_backward(wide, out, block.changes_shape ? 2 * out : out, tape);
    convolution_backward(block.channels, wide, 1, middle, out, tape);
    for (const auto& [from, size, before, here] :
         {Inner{block.channels, 9, inner, middle}, Inner{block.in_channels, 1, in, inner}}) {
      norm_relu_backward(block.channels, here, tape);
      convolution_backward(from, block.channels, size, before, here, tape);
    }
    tape.give(block.changes_shape ? in : out);  // one of two gradients of the input
    // Otherwise the previous block's ReLU keeps it.
    if (unit == 0 || gradient_is_held) tape.give(in);
  }

  void end_forward(MemoryTape& tape) const override {
    tape.take(feature_bytes() + shape_.num_tokens * num_classes_ * shape_.element_bytes);
    if (shape_.casts_parameters) tape.take(head_numel() * shape_.element_bytes);
    tape.take(2 * shape_.num_tokens * num_classes_ * 4);  // the loss: float32 logits, log-softmax
    tape.take(next_picture_bytes());
  }

  void end_backward(MemoryTape& tape) const override {
    const std::int64_t logits = shape_.num_tokens * num_classes_;
    const std::int64_t weight = kFeatures * num_classes_;
    tape.pass(2 * logits * 4);
    tape.take(feature_bytes() + (weight + num_classes_) * shape_.element_bytes);
    tape.give(feature_bytes() + logits * (shape_.element_bytes + 2 * 4));
    if (shape_.casts_parameters) {
      tape.give(head_numel() * shape_.element_bytes);
      cast_gradient(weight, tape);
      cast_gradient(num_classes_, tape);
    }
    tape.hand_over(num_classes_);
    tape.hand_over(weight);
    tape.take(output_bytes(blocks_.size() - 1));  // the mean's
    tape.give(feature_bytes());
  }

  void begin_backward(MemoryTape& tape) const override {
    tape.take(stem_bytes());  // of the pooling
    tape.give(input_bytes(0) + pool_index_bytes());
    if (is_fused()) {
      norm_backward(kStemChannels, stem_bytes(), 2 * stem_bytes(), tape);
    } else {
      norm_relu_backward(kStemChannels, stem_bytes(), tape);
    }
    convolution_backward(3, kStemChannels, 49, 0, stem_bytes(), tape);  // pictures need no gradient
    tape.give(image_bytes(3, shape_.longest) + next_picture_bytes());
  }

 private:
  static constexpr std::int64_t kFeatures = 2048;
  struct Inner {
    std::int64_t in_channels, size, before_bytes, bytes;
  };
  struct Block {
    std::int64_t in_channels, channels, side, to_side;
    bool changes_shape;
  };
  struct BlockBytes {
    std::int64_t inner, middle, out;
  };

  std::int64_t parameter_bytes() const { return shape_.casts_parameters ? kFloatBytes : shape_.element_bytes; }
  std::int64_t head_numel() const { return (kFeatures + 1) * num_classes_; }
  std::int64_t image_bytes(std::int64_t channels, std::int64_t side) const {
    return shape_.num_tokens * channels * side * side * shape_.element_bytes;
  }
  // The next batch comes to a GPU during backward, a byte for each value, and stays until the next step takes it: after
  // backward there is more room than that.
  std::int64_t next_picture_bytes() const {
    return shape_.on_gpu ? image_bytes(3, shape_.longest) / shape_.element_bytes : 0;
  }
  std::int64_t stem_bytes() const { return image_bytes(kStemChannels, halved(shape_.longest)); }
  std::int64_t pool_index_bytes() const { return input_bytes(0) / shape_.element_bytes * (is_fused() ? 1 : 8); }
  std::int64_t feature_bytes() const { return shape_.num_tokens * kFeatures * shape_.element_bytes; }
  BlockBytes bytes_of(std::size_t unit) const {
    const Block& block = blocks_[unit];
    return {image_bytes(block.channels, block.side), image_bytes(block.channels, block.to_side), output_bytes(unit)};
  }

  // `size`: elements of one filter in one channel. The weight is copied to channels last; oneDNN copies it once more. A
  // cast weight is channels last already, and kept for backward.
  void convolution_forward(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t out_bytes, bool keeps,
                           MemoryTape& tape) const {
    const std::int64_t weight = in * out * size * shape_.element_bytes;
    tape.take(out_bytes);
    if (!shape_.casts_parameters) return tape.pass(weight * (shape_.on_gpu ? 1 : 2));
    tape.take(weight);
    if (!shape_.on_gpu) tape.pass(weight);
    if (!keeps) tape.give(weight);
  }
  void convolution_backward(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t in_bytes,
                            std::int64_t out_bytes, MemoryTape& tape) const {
    const std::int64_t numel = in * out * size, weight = numel * shape_.element_bytes;
    tape.take(weight + in_bytes);
    if (!shape_.casts_parameters) tape.pass(weight);
    // oneDNN sums a weight's gradient in four parts, as measured on ARM.
    if (!shape_.casts_parameters) tape.take(weight);
    tape.pass(shape_.on_gpu ? weight : 4 * weight);
    tape.give(weight + out_bytes);
    if (shape_.casts_parameters) cast_gradient(numel, tape);
    tape.hand_over(numel);
  }
  // From the compute type, channels last, to float32, then to plain layout.
  void cast_gradient(std::int64_t numel, MemoryTape& tape) const {
    tape.take(numel * kFloatBytes);
    tape.give(numel * shape_.element_bytes);
    tape.pass(numel * kFloatBytes);
  }
  // `gone_bytes`: what was normalised, and the incoming gradient if nothing else needs it.
  void norm_backward(std::int64_t channels, std::int64_t bytes, std::int64_t gone_bytes, MemoryTape& tape) const {
    tape.take(bytes + 2 * channels * parameter_bytes());
    tape.give(gone_bytes);
    tape.hand_over(channels);
    tape.hand_over(channels);
  }

  void norm_relu_backward(std::int64_t channels, std::int64_t bytes, MemoryTape& tape) const {
    if (is_fused()) return norm_backward(channels, bytes, 3 * bytes, tape);
    tape.take(bytes);  // of the ReLU, which kept its result
    tape.give(2 * bytes);
    norm_backward(channels, bytes, 2 * bytes, tape);
  }
  // kernels/image_ops.h: the pooling then keeps its places alone, the norm what it normalised.
  bool is_fused() const { return shape_.on_gpu && shape_.element_bytes != kFloatBytes; }

  std::int64_t num_classes_;
  StepShape shape_;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<StepMemory> resnet50_step_memory(std::int64_t num_classes, const StepShape& shape) {
  return std::make_unique<ResNet50StepMemory>(num_classes, shape);
}

}  // namespace tessera
