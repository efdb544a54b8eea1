#include "core/hugging_face_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/file.h"
#include "core/text.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

fs::path home_of_user(const Environment& environment) {
  return environment.find("HOME").value_or(".");
}

}  // namespace

std::optional<fs::path> hugging_face_path(const Environment& environment, const char* name) {
  const auto value = environment.find(name);
  if (!value) return std::nullopt;
  if (*value == "~" || value->starts_with("~/")) {
    return home_of_user(environment) / fs::path(*value).lexically_relative("~");
  }
  return *value;
}

fs::path hugging_face_home(const Environment& environment) {
  if (const auto home = hugging_face_path(environment, "HF_HOME")) return *home;
  return hugging_face_path(environment, "XDG_CACHE_HOME").value_or(home_of_user(environment) / ".cache") /
         "huggingface";
}

fs::path hub_cache(const Environment& environment) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = hugging_face_path(environment, name)) return *cache;
  }
  return hugging_face_home(environment) / "hub";
}

fs::path datasets_cache(const Environment& environment) {
  return hugging_face_path(environment, "HF_DATASETS_CACHE").value_or(hugging_face_home(environment) / "datasets");
}

bool is_hub_name(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && !name.starts_with('/') && !name.starts_with('.') && !name.ends_with('/') &&
         std::count(name.begin(), name.end(), '/') <= 1 && std::all_of(name.begin(), name.end(), allowed);
}

std::string hub_folder_name(const char* kind, const std::string& hub_name) {
  return fmt::format("{}--{}", kind, join(split(hub_name, '/'), "--"));
}

std::optional<fs::path> cached_snapshot(const fs::path& hub_folder) {
  const fs::path main = hub_folder / "refs/main";
  const std::string revision = is_there(main) ? std::string(trim(read_file(main))) : "";
  // A file's text must never lead out of the cache.
  if (revision.empty() || revision.starts_with('.') || revision.find('/') != std::string::npos) return std::nullopt;
  const fs::path snapshot = hub_folder / "snapshots" / revision;
  if (!is_folder(snapshot)) return std::nullopt;
  return snapshot;
}

}  // namespace tessera
