// The secret that the ranks of a job share, and strangers do not: where it comes from. docs/security.md tells users.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "comm/meeting/keyed_hash.h"
#include "core/environment.h"

namespace tessera {

inline constexpr const char* kSecretVariable = "TESSERA_SECRET";           // 64 hexadecimal digits
inline constexpr const char* kSecretFileVariable = "TESSERA_SECRET_FILE";  // else ~/.config/tessera/secret

// TESSERA_SECRET of this process, if it is set. The first call erases it, from /proc/PID/environ too, so that neither
// children nor `ps e` show it; later calls return the same. Throws UsageError if it is not 64 hexadecimal digits.
std::optional<Key> take_secret_of_environment();

// The secret of the user's file, which is made on first use. Safe between processes of several nodes that share the
// folder: all get the same. Throws UsageError if the file is not this user's, others may read it, or it holds something
// else.
Key secret_of_file(const Environment& environment);
std::filesystem::path secret_file(const Environment& environment);

// The key of one job: from the user's secret, which may serve many jobs, and the job's id.
Key job_key(const Key& secret, const std::string& job_id);

}  // namespace tessera
