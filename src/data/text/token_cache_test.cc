#include "data/text/token_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "support/message_of.h"
#include "support/squad_sample.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const Tokenizer& sample_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(squad_sample("tokenizer"));
  return tokenizer;
}

TextDataSettings sample_settings(const fs::path& cache) {
  TextDataSettings settings;
  settings.file = squad_sample("sample-v1.1.json");
  settings.cache_folder = cache;
  return settings;
}

bool are_equal(const TokenStore& a, const TokenStore& b) {
  if (a.size() != b.size()) return false;
  for (std::int64_t row = 0; row < a.size(); ++row) {
    if (!std::ranges::equal(a.ids(row), b.ids(row)) || !std::ranges::equal(a.targets(row), b.targets(row)))
      return false;
  }
  return true;
}

std::vector<fs::path> kept_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

TEST(TokenCache, TheSecondStartMapsWhatTheFirstMade) {
  const TestFolder folder;
  const TextData first = load_text_data(sample_settings(folder / "deep/cache"), sample_tokenizer());
  EXPECT_EQ(first.cache_use, CacheUse::kMade);
  const TextData second = load_text_data(sample_settings(folder / "deep/cache"), sample_tokenizer());
  EXPECT_EQ(second.cache_use, CacheUse::kFound);
  EXPECT_TRUE(second.tokens.is_mapped());
  EXPECT_EQ(second.cache_file, first.cache_file);
  const TextData without = load_text_data(sample_settings(""), sample_tokenizer());
  EXPECT_EQ(without.cache_use, CacheUse::kMadeUnkept);
  EXPECT_TRUE(are_equal(first.tokens, second.tokens));
  EXPECT_TRUE(are_equal(first.tokens, without.tokens));
  EXPECT_EQ(first.tokens.size(), 37);
  EXPECT_EQ(first.tokens.counts().num_rows_of_file, 37);
}

TEST(TokenCache, EverythingThatChangesTheTokensChangesTheName) {
  const TestFolder folder;
  const std::string text = read_file(squad_sample("sample-v1.1.json"));
  write_file_atomically(folder / "same.json", text);
  write_file_atomically(folder / "other.json", text + " ");
  std::set<fs::path> names;
  const auto add = [&](const auto& change) {
    TextDataSettings settings = sample_settings(folder / "cache");
    change(settings);
    names.insert(load_text_data(settings, sample_tokenizer()).cache_file);
    return names.size();
  };
  EXPECT_EQ(add([](auto&) {}), 1U);
  EXPECT_EQ(add([](auto& s) { s.num_threads = 3; }), 1U);
  EXPECT_EQ(add([&](auto& s) { s.file = folder / "same.json"; }), 1U);  // content counts, not names
  EXPECT_EQ(add([&](auto& s) { s.file = folder / "other.json"; }), 2U);
  EXPECT_EQ(add([](auto& s) { s.max_length = 511; }), 3U);
  EXPECT_EQ(add([](auto& s) { s.label_mode = LabelMode::kFull; }), 4U);
  EXPECT_EQ(add([](auto& s) { s.subset.max_rows = 5; }), 5U);
  EXPECT_EQ(add([](auto& s) { s.subset = {5, true, 0}; }), 6U);
  EXPECT_EQ(add([](auto& s) { s.subset = {5, true, 1}; }), 7U);
  // Another tokenizer: one word fewer.
  std::string tokenizer_json = read_file(squad_sample("tokenizer/tokenizer.json"));
  tokenizer_json.replace(tokenizer_json.find("\"<unk>\""), 7, "\"<unq>\"");
  fs::create_directories(folder / "tok");
  write_file_atomically(folder / "tok/tokenizer.json", tokenizer_json);
  write_file_atomically(folder / "tok/tokenizer_config.json",
                        read_file(squad_sample("tokenizer/tokenizer_config.json")));
  names.insert(load_text_data(sample_settings(folder / "cache"), Tokenizer::load(folder / "tok")).cache_file);
  EXPECT_EQ(names.size(), 8U);
}

TEST(TokenCache, ADamagedFileIsMadeAnew) {
  const TestFolder folder;
  const TextData good = load_text_data(sample_settings(folder.path()), sample_tokenizer());
  const std::string bytes = read_file(good.cache_file);
  for (const std::size_t place : {std::size_t{3}, std::size_t{60}, bytes.size() / 2, bytes.size() - 1}) {
    std::string bad = bytes;
    bad[place] = static_cast<char>(~bad[place]);
    write_file_atomically(good.cache_file, bad);
    const TextData again = load_text_data(sample_settings(folder.path()), sample_tokenizer());
    EXPECT_EQ(again.cache_use, CacheUse::kMade) << place;
    EXPECT_EQ(read_file(good.cache_file), bytes);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, bytes.size() - 4}) {
    write_file_atomically(good.cache_file, bytes.substr(0, size));
    EXPECT_EQ(load_text_data(sample_settings(folder.path()), sample_tokenizer()).cache_use, CacheUse::kMade) << size;
    EXPECT_EQ(read_file(good.cache_file), bytes);
  }
}

TEST(TokenCache, TheTokensDoNotDependOnTheNumberOfThreads) {
  // More rows than one thread gets: the sample several times over.
  const TestFolder folder;
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += read_file(squad_sample("sample.jsonl"));
  write_file_atomically(folder / "many.jsonl", lines);
  TextDataSettings settings = sample_settings("");
  settings.file = folder / "many.jsonl";
  settings.num_threads = 1;
  const TextData one = load_text_data(settings, sample_tokenizer());
  settings.num_threads = 5;
  EXPECT_TRUE(are_equal(one.tokens, load_text_data(settings, sample_tokenizer()).tokens));
  EXPECT_EQ(one.tokens.size(), 12 * 37);
}

TEST(TokenCache, ManyProcessesAndThreadsMayWantTheSameFileAtOnce) {
  const TestFolder folder;
  sample_tokenizer();  // loaded before the forks
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool is_right = true;
      std::vector<std::thread> threads;
      for (int j = 0; j < 2; ++j) {
        threads.emplace_back([&] {
          for (int k = 0; k < 5; ++k) {
            const TextData data = load_text_data(sample_settings(folder / "cache"), sample_tokenizer());
            if (data.tokens.size() != 37 || !data.tokens.is_mapped()) is_right = false;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      ::_exit(is_right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(kept_files(folder / "cache").size(), 1U);  // nothing half-written beside it, and no lock
}

TEST(TokenCache, WithoutAWritableFolderItGoesOnWithoutACache) {
  const TestFolder folder;
  write_file_atomically(folder / "file", "in the way");
  const TextData data = load_text_data(sample_settings(folder / "file/cache"), sample_tokenizer());
  EXPECT_EQ(data.cache_use, CacheUse::kMadeUnkept);
  EXPECT_EQ(data.tokens.size(), 37);
}

TEST(TokenCache, WaitsForTheProcessThatMakesTheFileButNotForOneThatIsDead) {
  const TestFolder folder;
  const fs::path cache_file = load_text_data(sample_settings(folder.path()), sample_tokenizer()).cache_file;
  fs::remove(cache_file);
  const fs::path lock_file = folder / ("." + cache_file.stem().string() + ".lock");
  const int descriptor = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  std::atomic<bool> is_done = false;
  std::jthread other([&] {
    EXPECT_EQ(load_text_data(sample_settings(folder.path()), sample_tokenizer()).cache_use, CacheUse::kMade);
    is_done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(is_done);
  ::close(descriptor);  // as the system does when a process ends; the file stays
  other.join();
  EXPECT_FALSE(fs::exists(lock_file));
}

TEST(TokenCache, SubsetsTakeTheRowsAsked) {
  TextDataSettings settings = sample_settings("");
  const TextData all = load_text_data(settings, sample_tokenizer());
  settings.subset = {10, true, 42};
  const TextData some = load_text_data(settings, sample_tokenizer());
  const std::vector<std::int64_t> rows = rows_of({-1, true, 42}, 37);
  ASSERT_EQ(some.tokens.size(), 10);
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(std::ranges::equal(some.tokens.ids(i), all.tokens.ids(rows[static_cast<std::size_t>(i)])));
  }
  settings.subset = {1000, false, 0};
  EXPECT_EQ(load_text_data(settings, sample_tokenizer()).tokens.size(), 37);
}

TEST(TokenCache, ARowThatCannotBeIsNamedByFileAndNumber) {
  TextDataSettings settings = sample_settings("");
  settings.max_length = 12;
  const std::string message = message_of([&] { load_text_data(settings, sample_tokenizer()); });
  EXPECT_NE(message.find("sample-v1.1.json, row 0 (56beb4e43aeaaa14008c9265): question and answer alone take"),
            std::string::npos)
      << message;
}

TEST(TokenCache, DefaultFolderFollowsTheEnvironment) {
  EXPECT_EQ(default_cache_folder(Environment({{"TESSERA_CACHE", "/t"}, {"XDG_CACHE_HOME", "/x"}})), "/t");
  EXPECT_EQ(default_cache_folder(Environment({{"TESSERA_CACHE", ""}, {"XDG_CACHE_HOME", "/x"}})), "/x/tessera");
  EXPECT_EQ(default_cache_folder(Environment({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})), "/x/tessera");
  EXPECT_EQ(default_cache_folder(Environment({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}})), "/h/.cache/tessera");
  EXPECT_EQ(default_cache_folder(Environment({{"HOME", "/h"}})), "/h/.cache/tessera");
  EXPECT_EQ(default_cache_folder(Environment({{"HOME", "h"}})), "");  // would depend on where the run was started
  EXPECT_EQ(default_cache_folder(Environment()), "");
}

}  // namespace
}  // namespace tessera
