#include "data/text/block_encoder.h"

#include <pthread.h>

#include <iterator>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace tessera {

BlockEncoder::BlockEncoder(const RowStream& stream, EncodeRow encode, int num_threads)
    : stream_(stream), encode_(std::move(encode)) {
  try {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    log_debug("tokenising in {} threads, not {}: {}", threads_.size(), num_threads, error.what());
  }
}

BlockEncoder::~BlockEncoder() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  task_added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BlockEncoder::add(RowBlock block) {
  Task task([this, block = std::move(block)] { return encode(block); });
  results_.push_back(task.get_future());
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  task_added_.notify_one();
}

EncodedBlock BlockEncoder::take() {
  std::future<EncodedBlock> result = std::move(results_.front());
  results_.pop_front();
  if (threads_.empty()) {
    waiting_.front()();
    waiting_.pop_front();
  }
  return result.get();
}

void BlockEncoder::work() {
  pthread_setname_np(pthread_self(), "tessera-tokens");
  std::unique_lock lock(mutex_);
  while (true) {
    task_added_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Task task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    task = {};  // frees the block
    lock.lock();
  }
}

EncodedBlock BlockEncoder::encode(const RowBlock& block) const {
  EncodedBlock result;
  for (const PlacedRow& row : stream_.parse(block)) {
    std::vector<EncodedRow> encoded;
    try {
      encoded = encode_(row);
    } catch (const Error& error) {
      throw error.in_context(stream_.place_of(block, row));
    }
    std::erase_if(encoded, [](const EncodedRow& piece) { return piece.is_dropped; });
    ++result.num_rows_of_file;
    result.num_dropped += encoded.empty() ? 1 : 0;
    result.rows.insert(result.rows.end(), std::make_move_iterator(encoded.begin()),
                       std::make_move_iterator(encoded.end()));
  }
  return result;
}

}  // namespace tessera
