// Makes the parts of a corpus that are not there, together with other processes that do the same.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "data/text/block_encoder.h"
#include "data/text/corpus.h"
#include "data/text/corpus_folder.h"
#include "data/text/token_store_builder.h"

namespace tessera {

struct CorpusInput {
  std::int64_t part_bytes = 0;  // per part
  std::string files_name = {};  // name_of_files() when the corpus got its key; a part of other content is not kept
};

class CorpusMaker {
 public:
  // All but `input` must outlive it.
  CorpusMaker(CorpusFolder& folder, const OpenStream& open, const EncodeRow& encode, const CorpusSettings& settings,
              CorpusInput input);

  // All parts, in order. `stream`: opened, and not read yet.
  std::vector<TokenStore> make(std::unique_ptr<RowStream> stream);
  std::int64_t num_made() const { return num_made_; }

 private:
  struct Part {
    std::optional<TokenStore> tokens;
    std::int64_t file_bytes = 0;
    bool is_counted = false;  // in progress_
  };
  // A part that this process makes: some of its blocks may not be read yet, others not be encoded.
  struct OwnPart {
    std::size_t number;
    std::optional<MakerLock> lock;
    TokenStoreBuilder builder = {};
    std::int64_t num_rows_of_file = 0;
    std::int64_t num_blocks_left = 0;  // read, and being encoded
    bool is_read = false;
  };

  void go_through(RowStream& stream, std::size_t num_parts);
  bool begin_part(std::size_t number);
  void end_part(std::size_t number);
  void take_block(BlockEncoder& encoder);
  void finish_parts();
  void check_files() const;
  bool wait_for_others();
  std::size_t num_parts_to_read() const;
  void count_found(Part& part);
  void report() const;

  CorpusFolder& folder_;
  const OpenStream& open_;
  const EncodeRow& encode_;
  const CorpusSettings& settings_;
  const CorpusInput input_;
  const int num_threads_;
  std::vector<std::filesystem::path> files_;

  std::vector<Part> parts_;               // those that have been seen
  std::deque<OwnPart> own_parts_;         // not finished yet, in order
  std::deque<std::int64_t> block_bytes_;  // of the files: of each block that is being encoded
  std::int64_t num_made_ = 0;
  CorpusProgress progress_;
};

}  // namespace tessera
