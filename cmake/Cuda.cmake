# nvcc, for the kernels of the CUDA flavour and their tests.
# Ampere and Hopper; newer GPUs translate Hopper's code when they load it.
set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "GPU architectures that src/kernels/*.cu are compiled for")
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")  # of the toolkit whose headers are used
endif()
enable_language(CUDA)
