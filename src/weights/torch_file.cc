#include "weights/torch_file.h"

#include "core/error.h"
#include "weights/legacy_torch_file.h"
#include "weights/pickle.h"
#include "weights/torch_archive.h"

namespace tessera {

namespace {

void refuse_other_formats(std::string_view file, const std::string& origin) {
  if (file.starts_with("PK")) return;
  if (file.starts_with("version https://git-lfs")) {
    refuse_file(origin, "this is a git-lfs pointer, not the file itself; fetch it with `git lfs pull`");
  }
  refuse_file(origin, "not a torch.save file: it is neither a zip archive nor the format from before torch 1.6");
}

}  // namespace

std::vector<WeightEntry> parse_torch_file(std::string_view file, const std::string& origin) {
  if (is_legacy_torch_file(file)) return parse_legacy_torch_file(file, origin);
  refuse_other_formats(file, origin);
  const TorchArchive archive(file, origin);
  std::vector<WeightEntry> entries;
  for (const PickledTensor& tensor : parse_pickled_state_dict(archive.pickle(), origin)) {
    entries.push_back(archive.place(tensor));
  }
  return entries;
}

}  // namespace tessera
