# SPDX-License-Identifier: Apache-2.0
#
# Finds LibTorch in the PyPI wheel of torch, for its C++ side alone. find_package(Torch) of the wheel is not used: it fails
# with C++20 and CMake 3.25, and on machines without nvcc.
#
# Input:   LIBTORCH_SITE_PACKAGES   the site-packages folder with torch/ in it; default: the checkout's .venv
# Targets: LibTorch::c10, LibTorch::torch_cpu   never `torch`, which needs torch_cuda
#          LibTorch::cuda_headers               CUDA 13 and CUPTI, from the NVIDIA wheels beside it
#          LibTorch::nccl_headers               where the wheel of NCCL is there
#          LibTorch::torch_cuda                 for a module that is opened at run time, where there are GPUs: c10's and ATen's CUDA
#                                               side and the CUDA runtime. What those need is looked for when it is opened
# The wheel's own libraries find CUPTI and the CUDA runtime through their run paths; a program needs only torch/lib.
if(NOT LIBTORCH_SITE_PACKAGES)
  file(GLOB _libtorch_candidates "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages")
  foreach(_candidate IN LISTS _libtorch_candidates)
    if(EXISTS "${_candidate}/torch/lib/libtorch_cpu.so")
      set(LIBTORCH_SITE_PACKAGES "${_candidate}" CACHE PATH "Folder that holds torch/")
    endif()
  endforeach()
endif()

find_path(LibTorch_INCLUDE_DIR NAMES torch/extension.h PATHS "${LIBTORCH_SITE_PACKAGES}/torch/include" NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY NAMES torch_cpu PATHS "${LIBTORCH_SITE_PACKAGES}/torch/lib" NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY NAMES c10 PATHS "${LIBTORCH_SITE_PACKAGES}/torch/lib" NO_DEFAULT_PATH)

find_path(LibTorch_CUDA_INCLUDE_DIR NAMES cupti.h PATHS "${LIBTORCH_SITE_PACKAGES}/nvidia/cu13/include" NO_DEFAULT_PATH)
find_path(LibTorch_NCCL_INCLUDE_DIR NAMES nccl.h PATHS "${LIBTORCH_SITE_PACKAGES}/nvidia/nccl/include" NO_DEFAULT_PATH)
find_file(LibTorch_CUDART_LIBRARY NAMES libcudart.so.13 PATHS "${LIBTORCH_SITE_PACKAGES}/nvidia/cu13/lib" NO_DEFAULT_PATH)

set(LibTorch_VERSION "")
if(EXISTS "${LIBTORCH_SITE_PACKAGES}/torch/version.py")
  file(STRINGS "${LIBTORCH_SITE_PACKAGES}/torch/version.py" _libtorch_version REGEX "^__version__ *= *'")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_libtorch_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR LibTorch_CUDA_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "./run and ./test install it into .venv. Else give -DLIBTORCH_SITE_PACKAGES=..., or -DSTAGECRAFT_WITH_TORCH=OFF")

if(LibTorch_FOUND AND NOT TARGET LibTorch::torch_cpu)
  get_filename_component(_libtorch_lib "${LibTorch_CPU_LIBRARY}" DIRECTORY)
  foreach(_name c10 torch_cpu)
    add_library(LibTorch::${_name} SHARED IMPORTED)
    set_target_properties(LibTorch::${_name} PROPERTIES
      IMPORTED_LOCATION "${_libtorch_lib}/lib${_name}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  endforeach()
  # DT_RPATH, so that what torch loads later is found there too; its CUDA side stays unresolved on purpose
  set_target_properties(LibTorch::torch_cpu PROPERTIES
    INTERFACE_LINK_LIBRARIES LibTorch::c10
    INTERFACE_LINK_OPTIONS "LINKER:--disable-new-dtags;LINKER:--unresolved-symbols=ignore-in-shared-libs")
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::cuda_headers)
  add_library(LibTorch::cuda_headers INTERFACE IMPORTED)
  set_target_properties(LibTorch::cuda_headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_CUDA_INCLUDE_DIR}")
  if(LibTorch_NCCL_INCLUDE_DIR)
    add_library(LibTorch::nccl_headers INTERFACE IMPORTED)
    set_target_properties(LibTorch::nccl_headers PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_NCCL_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES LibTorch::cuda_headers)
  endif()
  if(LibTorch_CUDART_LIBRARY)
    add_library(LibTorch::torch_cuda INTERFACE IMPORTED)
    set_target_properties(LibTorch::torch_cuda PROPERTIES
      INTERFACE_LINK_LIBRARIES
      # nothing of libtorch_cuda is called by name: loading it registers its kernels
      "LibTorch::torch_cpu;LibTorch::cuda_headers;-Wl,--push-state,--no-as-needed;${_libtorch_lib}/libtorch_cuda.so;-Wl,--pop-state;${_libtorch_lib}/libc10_cuda.so;${LibTorch_CUDART_LIBRARY}")
  endif()
endif()
mark_as_advanced(LibTorch_CUDA_INCLUDE_DIR LibTorch_NCCL_INCLUDE_DIR LibTorch_CUDART_LIBRARY LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY)
