"""Games on a GPU: the compiled rules of every game as CUDA kernels, their inputs and outputs as tensors of PyTorch.

Start reading at `ninetka_env.gpu.vector`. Only this package imports numba's module for CUDA, and nothing imports this
package before a GPU is asked for.
"""
