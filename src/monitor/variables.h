// Which environment variables Tessera, torch, NCCL and MPI heed, and which ones only look as if.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace tessera {

using Variables = std::map<std::string, std::string>;

// Those of `all` that may be shown: named ones and every NCCL_*, TORCH_NCCL_*, OMP_*, UCX_*, OMPI_MCA_*, GLOO_*. Never
// others: they may hold secrets. Of these, one whose name says so has the value "(set)".
Variables heeded_variables(const Variables& all);

// Names of `all` that nothing reads though they look as if, with what was most likely meant: NCCL_DEBGU -> NCCL_DEBUG,
// NCLL_DEBUG -> NCCL_DEBUG. A variable of NCCL that we do not know and that is near none is left alone.
Variables misspelt_variables(const Variables& all);

// What is wrong with a value of CUDA_VISIBLE_DEVICES: "'x' is no number of a GPU"; nothing where CUDA takes it.
std::optional<std::string> visible_devices_mistake(const std::string& value);
// Whether such a value leaves CUDA without a GPU: empty, -1 or NoDevFiles first.
bool hides_every_gpu(const std::string& value);

bool is_port(const std::string& value);

}  // namespace tessera
