#include "data/text/document_encoder.h"

#include <gtest/gtest.h>

#include <span>

#include "core/error.h"
#include "core/file.h"
#include "data/loading/packing.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<std::int32_t>;

const fs::path kDocuments = fs::path(TESSERA_TEST_DATA_FOLDER) / "row_jobs";

const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(kDocuments / "qwen3");
  return tokenizer;
}

std::vector<Ids> encoded(const DocumentOptions& options, const std::string& text) {
  std::vector<Ids> all;
  for (const EncodedRow& row : DocumentEncoder(small_tokenizer(), options).encode(Json{{"text", text}})) {
    EXPECT_TRUE(row.counted.empty());
    all.push_back(row.ids);
  }
  return all;
}

TEST(DocumentEncoder, EndsDocumentsOnceAndCutsTheLongOnes) {
  const Ids ids = small_tokenizer().encode("The child reads a long book.");
  const std::int32_t end = *small_tokenizer().eos_id();
  Ids ended = ids;
  ended.push_back(end);
  const std::string text = "The child reads a long book.";
  EXPECT_EQ(encoded({}, text), std::vector<Ids>{ended});
  EXPECT_EQ(encoded({}, text + "<|im_end|>"), std::vector<Ids>{ended});
  EXPECT_EQ(encoded({.ends_documents = false}, text), std::vector<Ids>{ids});
  const std::vector<Ids> cut = encoded({.max_length = 4}, text);
  ASSERT_EQ(cut.size(), (ended.size() + 3) / 4);
  Ids joined;
  for (const Ids& piece : cut) joined.insert(joined.end(), piece.begin(), piece.end());
  EXPECT_EQ(joined, ended);
}

// A row of no tokens has its place among the rows of its group.
TEST(DocumentEncoder, AnEmptyDocumentIsLeftOutUnlessDocumentsStayWhole) {
  EXPECT_EQ(encoded({}, ""), std::vector<Ids>{});
  EXPECT_EQ(encoded({.max_length = 0}, ""), std::vector<Ids>{Ids{}});
}

// tools/references/row_jobs.py: 2300 documents, some of them empty, in groups of 1000.
TEST(DocumentEncoder, BlocksAreThoseOfRunClm) {
  const Json reference = read_json_file(kDocuments / "losses.json");
  for (const char* family : {"llama", "qwen3"}) {
    const Tokenizer tokenizer = Tokenizer::load(kDocuments / family);
    const DocumentEncoder encoder(tokenizer, {.max_length = 0, .ends_documents = false});
    const auto stream = open_rows({kDocuments / "documents.jsonl.gz"});
    std::vector<Ids> documents;
    std::vector<std::int32_t> lengths;
    while (auto block = stream->next()) {
      for (const PlacedRow& row : stream->parse(*block)) {
        documents.push_back(encoder.encode(row.values).at(0).ids);
        lengths.push_back(static_cast<std::int32_t>(documents.back().size()));
      }
    }
    const PackedRows blocks = pack_wrapped(
        lengths, {.max_length = reference.at("block_size"), .rows_per_group = kRowsPerGroup, .drops_rest = true});
    const Json& expected = reference.at(family).at("lm");
    EXPECT_EQ(blocks.size(), expected.at("num_blocks")) << family;
    std::uint32_t crc = 0;
    for (const TokenPiece& piece : blocks.pieces()) {
      const std::span ids = std::span(documents[static_cast<std::size_t>(piece.row)])
                                .subspan(static_cast<std::size_t>(piece.begin), static_cast<std::size_t>(piece.length));
      crc = crc32({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()}, crc);
    }
    EXPECT_EQ(crc, expected.at("crc32_of_ids")) << family;
  }
}

}  // namespace
}  // namespace tessera
