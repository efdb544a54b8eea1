// The values of one array as JSON text.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tessera {

class ValueWriter {
 public:
  explicit ValueWriter(std::shared_ptr<arrow::Array> array) : array_(std::move(array)) {}
  virtual ~ValueWriter() = default;

  // Throws ValueMistake.
  void write(std::int64_t index, std::string& out) const {
    if (array_->IsNull(index))
      out += "null";
    else
      write_valid(index, out);
  }

 protected:
  template <typename Array>
  const Array& as() const {
    return static_cast<const Array&>(*array_);
  }

 private:
  virtual void write_valid(std::int64_t index, std::string& out) const = 0;

  std::shared_ptr<arrow::Array> array_;
};

// For arrays that passed check_structure(), of a type that select_columns() lets through.
std::unique_ptr<ValueWriter> make_writer(const std::shared_ptr<arrow::Array>& array, const arrow::Field& field);

}  // namespace tessera
