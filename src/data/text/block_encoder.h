// Parses and encodes blocks of rows in threads, and hands the results out in the order of the blocks.
//
//   BlockEncoder encoder(stream, encode, 8);
//   while (std::optional<RowBlock> block = stream.next()) {
//     while (encoder.is_full()) use(encoder.take());
//     encoder.add(std::move(*block));
//   }
//   while (!encoder.is_empty()) use(encoder.take());
//
// For one thread. The stream must outlive the encoder, whose destructor waits only for the blocks in progress.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "data/rows/row_stream.h"
#include "data/text/encoded_row.h"

namespace tessera {

struct EncodedBlock {
  std::vector<EncodedRow> rows;  // without those that were dropped
  std::int64_t num_rows_of_file = 0, num_dropped = 0;
};

class BlockEncoder {
 public:
  // If the system gives fewer threads than requested, those do the work.
  BlockEncoder(const RowStream& stream, EncodeRow encode, int num_threads);
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // Two blocks per thread: while a part is written to disk, each thread has another one to go on with.
  bool is_full() const { return results_.size() >= 2 * threads_.size() + 2; }
  bool is_empty() const { return results_.empty(); }
  void add(RowBlock block);
  // The oldest; waits for it. Throws what its rows threw, naming file and line.
  EncodedBlock take();

 private:
  using Task = std::packaged_task<EncodedBlock()>;

  EncodedBlock encode(const RowBlock& block) const;
  void work();

  const RowStream& stream_;
  const EncodeRow encode_;
  std::deque<std::future<EncodedBlock>> results_;

  std::mutex mutex_;
  std::condition_variable task_added_;
  std::deque<Task> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tessera
