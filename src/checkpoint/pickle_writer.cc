#include "checkpoint/pickle.h"
#include "core/error.h"

namespace tessera {

namespace {

// Operations of pickle's protocol 2 by their bytes; no memo, since nothing that is written is worth sharing.
class Writer {
 public:
  void op(unsigned char code) { text_ += static_cast<char>(code); }

  void number(std::int64_t value) {
    if (value >= 0 && value < 256) {
      op('K');
      little_endian(value, 1);
    } else if (value >= 0 && value < 65536) {
      op('M');
      little_endian(value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      op('J');
      little_endian(value, 4);
    } else {
      op(0x8a);
      little_endian(8, 1);
      little_endian(value, 8);
    }
  }

  void text(std::string_view value) {
    op('X');
    little_endian(static_cast<std::int64_t>(value.size()), 4);
    text_ += value;
  }

  void global(std::string_view module, std::string_view name) {
    op('c');
    text_ += module;
    text_ += '\n';
    text_ += name;
    text_ += '\n';
  }

  void tuple(const std::vector<std::int64_t>& values) {
    op('(');
    for (const std::int64_t value : values) number(value);
    op('t');
  }

  void ordered_dict() {
    global("collections", "OrderedDict");
    op(')');
    op('R');
  }

  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
  void tensor(const PickledTensor& tensor) {
    const auto storage = storage_name(tensor.type);
    if (!storage) {
      throw UsageError("tensor '" + tensor.name + "': " + std::string(torch_name(tensor.type)) +
                       " has no place in a torch .bin file; write safetensors");
    }
    global("torch._utils", "_rebuild_tensor_v2");
    op('(');
    op('(');
    text("storage");
    global("torch", *storage);
    text(tensor.storage_key);
    text("cpu");
    number(tensor.storage_numel);
    op('t');
    op('Q');
    number(tensor.offset);
    tuple(tensor.shape);
    tuple(tensor.strides);
    op(0x89);
    ordered_dict();
    op('t');
    op('R');
  }

  std::string take() { return std::move(text_); }

 private:
  void little_endian(std::int64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  std::string text_;
};

}  // namespace

std::string compose_pickled_state_dict(const std::vector<PickledTensor>& tensors) {
  Writer writer;
  writer.op(0x80);
  writer.op(2);
  writer.ordered_dict();
  writer.op('(');
  for (const PickledTensor& tensor : tensors) {
    writer.text(tensor.name);
    writer.tensor(tensor);
  }
  writer.op('u');
  writer.op('.');
  return writer.take();
}

}  // namespace tessera
