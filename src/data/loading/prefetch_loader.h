// Items made ahead of time by worker threads and handed out in order.
//
//   PrefetchLoader<Image> loader(0, files.size(), [&](std::int64_t i) { return decode(files[i]); },
//                                {.num_workers = 4, .num_ahead = 16, .name_of = [&](auto i) { return files[i]; }});
//   while (std::optional<Image> image = loader.next()) ...
//
// The output does not depend on the number of workers, as long as `make(i)` depends on i alone. At most `num_ahead`
// items exist that next() has not handed out, including those in progress. `make` and `name_of` are called from several
// threads at a time, and what they refer to must outlive the loader; `make` should not use libtorch's own threads (each
// worker would start a team). With no workers next() makes the item itself: for debugging and for items that cost
// nothing.
//
// next() is for one thread. An error in `make` is thrown by the next() that asks for that item, as an Error prefixed
// with its `name_of`; the call after that continues with the following item. The destructor may run at any moment and
// waits only for the items in progress.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tessera {

struct PrefetchOptions {
  int num_workers = 1;
  std::int64_t num_ahead = 2;                             // at least 1; more workers than this would idle
  std::function<std::string(std::int64_t)> name_of = {};  // what messages call an item: its path, or "row 17 of x.json"
};

template <typename Item>
class PrefetchLoader {
 public:
  using Make = std::function<Item(std::int64_t index)>;

  // Items begin, begin + 1, ... end - 1: a resumed epoch starts in the middle, at no cost.
  PrefetchLoader(std::int64_t begin, std::int64_t end, Make make, PrefetchOptions options = {})
      : make_(std::move(make)),
        options_(std::move(options)),
        end_(std::max(begin, end)),
        position_(begin),
        next_to_make_(begin) {
    if (options_.num_workers < 0 || options_.num_ahead < 1) {
      throw Error("a loader needs 0 or more workers and at least 1 item ahead");
    }
    slots_.resize(static_cast<std::size_t>(std::min(options_.num_ahead, end_ - begin)));
    const std::int64_t num_workers = std::min<std::int64_t>(options_.num_workers, std::ssize(slots_));
    try {
      for (std::int64_t i = 0; i < num_workers; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::exception& error) {
      const std::size_t num_started = workers_.size();
      stop();
      throw Error("a loader with " + std::to_string(num_workers) + " threads could start only " +
                  std::to_string(num_started) + ": " + error.what() + "; ask for fewer workers");
    }
  }
  ~PrefetchLoader() { stop(); }
  PrefetchLoader(const PrefetchLoader&) = delete;
  PrefetchLoader& operator=(const PrefetchLoader&) = delete;

  // Waits for the item at position(); nullopt: all have been handed out.
  std::optional<Item> next() {
    if (position_ == end_) return std::nullopt;
    Slot slot = workers_.empty() ? produce(position_++) : take();
    if (slot.error) std::rethrow_exception(slot.error);
    return std::move(slot.item);
  }

  // The same without waiting; nullopt also: not made yet, or it could not be made, which next() then says.
  std::optional<Item> next_if_made() {
    if (workers_.empty() || position_ == end_) return std::nullopt;
    {
      const std::lock_guard lock(mutex_);
      if (!slot_of(position_).item) return std::nullopt;
    }
    return next();
  }

  // The item that the next call of next() gives.
  std::int64_t position() const { return position_; }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr error;
    bool is_done = false;
  };

  Slot take() {
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(position_);
    item_made_.wait(lock, [&] { return slot.is_done; });
    Slot taken = std::exchange(slot, Slot{});
    ++position_;
    lock.unlock();
    place_free_.notify_one();
    return taken;
  }

  void work() {
    pthread_setname_np(pthread_self(), "tessera-loader");
    std::unique_lock lock(mutex_);
    while (true) {
      place_free_.wait(lock, [&] { return stopping_ || next_to_make_ == end_ || has_place(); });
      if (stopping_ || next_to_make_ == end_) return;
      const std::int64_t index = next_to_make_++;
      if (next_to_make_ == end_) place_free_.notify_all();  // the other workers may stop
      lock.unlock();
      Slot made = produce(index);
      lock.lock();
      slot_of(index) = std::move(made);
      if (index == position_) item_made_.notify_one();
    }
  }

  Slot produce(std::int64_t index) const {
    Slot slot;
    slot.is_done = true;
    try {
      slot.item.emplace(make_(index));
    } catch (...) {
      slot.error = named_error(index);
    }
    return slot;
  }

  // The error being handled, prefixed with the item's name.
  std::exception_ptr named_error(std::int64_t index) const {
    const std::exception_ptr plain = std::current_exception();
    if (!options_.name_of) return plain;
    try {
      const std::string name = options_.name_of(index);
      try {
        std::rethrow_exception(plain);
      } catch (const Error& error) {
        return std::make_exception_ptr(error.in_context(name));
      } catch (const std::bad_alloc&) {
        return std::make_exception_ptr(Error(name + ": out of memory"));
      } catch (const std::exception& error) {
        return std::make_exception_ptr(Error(name + ": " + error.what()));
      }
    } catch (...) {  // what `make` threw has no message, or name_of threw too
      return plain;
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    place_free_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  bool has_place() const { return next_to_make_ - position_ < std::ssize(slots_); }
  Slot& slot_of(std::int64_t index) { return slots_[static_cast<std::size_t>(index % std::ssize(slots_))]; }

  const Make make_;
  const PrefetchOptions options_;
  const std::int64_t end_;
  std::int64_t position_;  // written by next()'s thread alone, under the mutex where there are workers

  std::mutex mutex_;
  std::condition_variable item_made_, place_free_;
  std::int64_t next_to_make_;
  std::vector<Slot> slots_;  // item i is in slot i modulo their number
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tessera
