// What libtessera_mpi.so offers to libtessera.so.
#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/mpi/runtime.h"
#include "comm/mpi_support.h"
#include "core/text.h"

namespace tessera {
namespace {

class MpiSupportOfLibrary final : public MpiSupport {
 public:
  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return {};
    // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ...": the first part is enough.
    return split(std::string(trim(text)), ',').front();
  }
  std::string version_built_for() const override {
    return fmt::format("Open MPI v{}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
  }
  std::filesystem::path library() const override {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&MPI_Get_library_version), &info) == 0) return {};
    return info.dli_fname;
  }

  void start(std::chrono::milliseconds timeout) const override { MpiRuntime::instance(timeout); }
  int rank() const override { return MpiRuntime::instance().rank(); }
  int size() const override { return MpiRuntime::instance().size(); }
  std::string broadcast_text(const std::string& text, std::chrono::milliseconds timeout) const override {
    return MpiRuntime::instance().broadcast_text(text, timeout);
  }

  c10::intrusive_ptr<c10d::Backend> make_backend(const std::vector<int>& ranks, int group_rank,
                                                 ReduceOrder order) const override {
    std::size_t hash = 17;  // tells apart the messages of two groups that are made at the same time
    for (int rank : ranks) hash = hash * 31 + static_cast<std::size_t>(rank);
    const MPI_Comm communicator = MpiRuntime::instance().make_communicator(ranks, static_cast<int>(hash % 32749));
    auto lane = std::make_shared<MpiLane>(communicator, group_rank, static_cast<int>(ranks.size()), std::move(order));
    return c10::make_intrusive<MpiBackend>(lane->rank, lane->size, lane);
  }

  void open_world(std::chrono::milliseconds finalize_timeout) const override {
    MpiRuntime::instance().open_world(finalize_timeout);
  }
  void close_world() const override { MpiRuntime::instance().close_world(); }
  void end() const override { MpiRuntime::instance().end(); }
};

}  // namespace
}  // namespace tessera

extern "C" const tessera::MpiSupport* tessera_mpi_support() {
  static const tessera::MpiSupportOfLibrary support;
  return &support;
}
