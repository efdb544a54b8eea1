// Which environment variables Tessera, torch, NCCL and MPI read, and which ones only look as if they did.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace tessera {

using Variables = std::map<std::string, std::string>;

// Those of `all` that may be shown: named ones and every NCCL_*, TORCH_NCCL_*, OMP_*, UCX_*, OMPI_MCA_*, GLOO_*. Never
// others: they may hold secrets. A shown variable whose name suggests a secret has the value "(set)".
Variables heeded_variables(const Variables& all);

// Names in `all` that nothing reads although they look like it, with the name that was most likely meant: NCCL_DEBGU ->
// NCCL_DEBUG, NCLL_DEBUG -> NCCL_DEBUG. An unknown NCCL variable that resembles no known one is left alone.
Variables misspelt_variables(const Variables& all);

// What is wrong with a value of CUDA_VISIBLE_DEVICES: "'x' is not a GPU number"; none if CUDA accepts it.
std::optional<std::string> visible_devices_mistake(const std::string& value);
// Whether such a value leaves CUDA without a GPU: empty, -1 or NoDevFiles first.
bool hides_every_gpu(const std::string& value);

bool is_port(const std::string& value);

}  // namespace tessera
