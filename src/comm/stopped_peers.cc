#include "comm/stopped_peers.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/process_state.h"

namespace tessera {
namespace {

std::filesystem::path program_of(const std::filesystem::path& process) {
  std::error_code ignored;
  return std::filesystem::read_symlink(process / "exe", ignored);
}

}  // namespace

void kill_stopped_peers(const std::vector<Guest>& roster) noexcept {
  try {
    const std::filesystem::path own_program = program_of("/proc/self");
    for (const Guest& guest : roster) {
      if (guest.host != host_name() || guest.pid == getpid() || guest.pid <= 1) continue;
      // In a container the number may belong to another process: this one runs the same program and is stopped.
      const std::filesystem::path process = "/proc/" + std::to_string(guest.pid);
      if (process_state(process) != 'T' || own_program.empty() || program_of(process) != own_program) continue;
      kill(static_cast<pid_t>(guest.pid), SIGKILL);
    }
  } catch (const std::exception&) {  // out of memory: whoever started the ranks ends them
  }
}

}  // namespace tessera
