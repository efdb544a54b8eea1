# libtorch, as targets of our own: `tessera_torch` (CPU) and `tessera_torch_cuda`.
#
# find_package(Torch) for a CUDA build of torch fails where no CUDA toolkit is installed. The CPU flavour needs none: it
# links only two libraries and their headers.
set(TORCH_DIR "" CACHE PATH "The torch package's folder, the one that holds include/ and lib/ (./x finds it)")
if(NOT TORCH_DIR)
  set(TORCH_DIR "${CMAKE_SOURCE_DIR}/.deps/torch/torch")
endif()
if(NOT EXISTS "${TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No libtorch in TORCH_DIR=${TORCH_DIR} (lib/libtorch_cpu.so is missing). "
                      "Run ./x setup, or pass -DTORCH_DIR=<site-packages>/torch.")
endif()

set(TESSERA_TORCH_VERSION "")
foreach(part MAJOR MINOR PATCH)
  file(STRINGS "${TORCH_DIR}/include/torch/headeronly/version.h" line REGEX "define TORCH_VERSION_${part} ")
  string(REGEX MATCH "[0-9]+$" number "${line}")
  list(APPEND TESSERA_TORCH_VERSION ${number})
endforeach()
list(JOIN TESSERA_TORCH_VERSION "." TESSERA_TORCH_VERSION)
if(TESSERA_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "TORCH_DIR=${TORCH_DIR} holds torch ${TESSERA_TORCH_VERSION}; Tessera needs 2.11.0 or newer.")
endif()
message(STATUS "torch ${TESSERA_TORCH_VERSION} in ${TORCH_DIR}")

add_library(tessera_torch INTERFACE)
# After the system's own folders: torch ships a copy of fmt (and others) that must not shadow the library we link.
target_compile_options(tessera_torch INTERFACE
  "SHELL:-idirafter ${TORCH_DIR}/include" "SHELL:-idirafter ${TORCH_DIR}/include/torch/csrc/api/include")
# USE_DISTRIBUTED and USE_C10D_NCCL change what c10d's headers declare, so every file gets the same.
target_compile_definitions(tessera_torch INTERFACE USE_DISTRIBUTED USE_C10D_NCCL)
target_link_libraries(tessera_torch INTERFACE
  "${TORCH_DIR}/lib/libtorch_cpu.so" "${TORCH_DIR}/lib/libc10.so")
# libtorch finds the NVIDIA libraries by its own RPATH; the linker need not find them.
target_link_options(tessera_torch INTERFACE -Wl,--allow-shlib-undefined)

if(TESSERA_CUDA)
  find_package(CUDAToolkit REQUIRED)
  if(NOT EXISTS "${TORCH_DIR}/lib/libtorch_cuda.so")
    message(FATAL_ERROR "TESSERA_CUDA=ON, but the torch in ${TORCH_DIR} has no lib/libtorch_cuda.so: it is a CPU-only torch.")
  endif()
  add_library(tessera_torch_cuda INTERFACE)
  target_include_directories(tessera_torch_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  # Its symbols register themselves: keep them even though nothing here refers to them.
  target_link_libraries(tessera_torch_cuda INTERFACE tessera_torch
    -Wl,--no-as-needed "${TORCH_DIR}/lib/libtorch_cuda.so" "${TORCH_DIR}/lib/libc10_cuda.so" -Wl,--as-needed)
endif()
