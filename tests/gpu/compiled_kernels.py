"""Run the compiled code of kernels on the CPU, with numba-cuda and a C compiler, but without a GPU.

numba-cuda translates kernels to LLVM code for GPUs. Here this code is translated for the processor of this machine, so
numba-cuda's types, its arithmetic, the layout of arguments, the tables and the barriers are those of a GPU. What is not
tested is the rest of the way to a GPU: NVIDIA's compiler, the launch, and threads that really run at the same time.

`python -m pytest -p compiled_kernels FILE` runs a file of tests with it.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import torch
from numba import cuda, from_dtype, types
from numba.cuda import dispatcher
from numba.cuda.cudadrv import nvvm
from one_gpu import CAPABILITY, Device

from ninetka_env.gpu import device

HERE = Path(__file__).parent
FUNCTIONS = {
    "llvm.nvvm.read.ptx.sreg.tid.x": "thread_index",
    "llvm.nvvm.read.ptx.sreg.ctaid.x": "block_index",
    "llvm.nvvm.read.ptx.sreg.ntid.x": "block_size",
    "llvm.nvvm.barrier0": "wait_for_block",
    "__nv_sqrt": "llvm.sqrt.f64",
    "__nv_fmax": "llvm.maxnum.f64",
    "__nv_fmin": "llvm.minnum.f64",
}
"""For each function of GPUs that kernels call, the function here: of `block.c` or of LLVM."""
SIZES = {"i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}
"""Number of bytes of the types of numbers in memory, except single bytes."""
ACCESS = re.compile(
    r'^  (?:%"[^"]*" = load|store) (?:volatile )?([^,]+?)(?: [^ ,]+)?, [^,]*\* ([%@]"[^"]*")(?:, align (\d+))?$',
    re.MULTILINE,
)
"""A load or a store in the text of LLVM code: its type, its address, and its alignment if it is not the type's."""


def llvm_modules(kernel: Any, arguments: tuple[types.Type, ...]) -> list[str]:
    """Return the LLVM code of a kernel and the functions that it calls, as numba-cuda gives it to NVIDIA's compiler."""
    given: list[Any] = []
    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda modules, **options: (given.append(modules), compile_ir(modules, **options))[1]
    try:
        cuda.compile_ptx(kernel.py_func, arguments, cc=CAPABILITY)
    finally:
        nvvm.compile_ir = compile_ir
    return [given[-1]] if isinstance(given[-1], str) else given[-1]


@functools.cache
def block_library() -> ctypes.CDLL:
    """Compile and load `block.c`."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "block.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, HERE / "block.c"], check=True)
        library = ctypes.CDLL(str(path))
    for name in ("thread_index", "block_index", "block_size", "wait_for_block", "check_address"):
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    return library


def for_this_processor(text: str, machine: llvm.TargetMachine, check_addresses: bool) -> str:
    """Return LLVM code for the processor of this machine from LLVM code for GPUs."""
    for name, here in FUNCTIONS.items():
        text = text.replace(f'@"{name}"', f'@"{here}"')
    text = re.sub("target triple = .*", f'target triple = "{llvm.get_default_triple()}"', text)
    text = re.sub("target datalayout = .*", f'target datalayout = "{machine.target_data}"', text)
    text = re.sub("^!nvvm.annotations = .*", "", text, flags=re.MULTILINE)  # they change the kernel's call
    text = re.sub(r" addrspace\([13]\)", "", text).replace("addrspacecast", "bitcast")
    return with_checks(text) if check_addresses else text


def with_checks(text: str) -> str:
    """Return LLVM code that checks the address of each number that it loads and stores."""
    numbers = itertools.count()

    def check(access: re.Match[str]) -> str:
        kind, address, alignment = access.groups()
        size = 8 if kind.endswith("*") else SIZES.get(kind, 1)
        if (size := min(size, int(alignment or size))) == 1:
            return access[0]
        name = f'%"address.{next(numbers)}"'
        call = f'call void @"check_address"(i8* {name}, i32 {size})'
        return f"  {name} = bitcast {kind}* {address} to i8*\n  {call}\n{access[0]}"

    checked = ACCESS.sub(check, text)
    return checked if checked == text else f'{checked}\ndeclare void @"check_address"(i8*, i32)\n'


def entry(text: str, name: str) -> tuple[str, int]:
    """Return the text of a function that calls a kernel with words of 64 bits, and the number of words."""
    found = re.search(rf"^define void {re.escape(name)}\((.*)\)", text, re.MULTILINE)
    assert found
    kinds = [parameter.rsplit(" ", 1)[0] for parameter in found[1].split(", ")]
    lines, given = ['define void @"entry"(i64* %words) {'], []
    for i, kind in enumerate(kinds):
        lines += [f"  %at{i} = getelementptr i64, i64* %words, i64 {i}", f"  %word{i} = load i64, i64* %at{i}"]
        convert = "inttoptr" if kind.endswith("*") else "bitcast" if kind == "i64" else "trunc"
        lines.append(f"  %given{i} = {convert} i64 %word{i} to {kind}")
        given.append(f"{kind} %given{i}")
    return "\n".join([*lines, f"  call void {name}({', '.join(given)})", "  ret void", "}"]), len(kinds)


def linked(texts: list[str], machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Return optimized LLVM code from the text of its modules; `AssertionError` if it calls unknown functions."""
    first, *others = map(llvm.parse_assembly, texts)
    for module in others:
        first.link_in(module)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(first, passes)
    declared = {function.name for function in first.functions if function.is_declaration}
    elsewhere = {name for name in declared if ".nvvm." in name or not name.startswith("llvm.")}
    unknown = elsewhere - {"check_address", *FUNCTIONS.values()}
    assert not unknown, f"add to FUNCTIONS: {sorted(unknown)}"
    return first


class CompiledKernel:
    """A kernel for arguments of certain types."""

    def __init__(self, kernel: Any, arguments: tuple[types.Type, ...], check_addresses: bool) -> None:
        self.library = block_library()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
        modules = llvm_modules(kernel, arguments)
        name = re.search(r'(@"[^"]+"), !"kernel", i32 1', "\n".join(modules))
        shared = re.search(r'@"(\w+)" = addrspace\(3\) global \[(\d+) x i(\d+)\]', "\n".join(modules))
        assert name
        texts = [for_this_processor(module, machine, check_addresses) for module in modules]
        first = next(i for i, text in enumerate(texts) if f"define void {name[1]}(" in text)
        call, self.num_words = entry(texts[first], name[1])
        texts[first] += "\n" + call
        self.engine = llvm.create_mcjit_compiler(linked(texts, machine), machine)
        self.engine.finalize_object()
        self.entry = ctypes.c_void_p(self.engine.get_function_address("entry"))
        self.waits = any("wait_for_block" in text for text in texts)
        self.shared = None, 0
        if shared:
            address = self.engine.get_global_value_address(shared[1])
            self.shared = ctypes.c_void_p(address), int(shared[2]) * int(shared[3]) // 8

    def __call__(self, blocks: int, threads: int, words: list[int]) -> None:
        """Run the threads of all blocks; `AssertionError` for what would be undefined on a GPU."""
        assert len(words) == self.num_words
        array = (ctypes.c_int64 * len(words))(*words)
        if self.waits:
            ended = self.library.run_blocks(self.entry, array, blocks, threads, *self.shared)
            assert ended == 0, "only some threads of a block reached a barrier"
        else:
            self.library.run_threads(self.entry, array, blocks, threads)
        assert not self.library.has_misaligned(), "a misaligned address"


COMPILED: dict[Any, CompiledKernel] = {}
check_addresses = True


def launch(kernel: Any, _: torch.device, blocks: int, threads: int, *arguments: Any) -> None:
    """Run a kernel; see `ninetka_env.gpu.device.launch`."""
    kinds = tuple(
        types.Array(from_dtype(one.dtype), one.ndim, "C") if isinstance(one, np.ndarray) else types.int64
        for one in arguments
    )
    key = kernel, kinds, check_addresses
    if key not in COMPILED:
        COMPILED[key] = CompiledKernel(*key)
    words: list[int] = []
    for one in arguments:
        if isinstance(one, np.ndarray):
            assert one.flags.c_contiguous
            words += [0, 0, one.size, one.itemsize, one.ctypes.data, *one.shape, *one.strides]
        else:
            words.append(int(one))
    COMPILED[key](blocks, threads, words)


dispatcher.get_current_device = lambda: Device
device.IS_SIMULATED = True
device.launch = launch
