"""numba as a translator: an alternative to `translator.py`.

Imported only if CQ_TRANSLATOR says so. Of numba's pipeline only the passes that turn bytecode into typed LLVM code are
used; every callee is a declared symbol. It takes 10 to 30 ms a function.
"""

from __future__ import annotations

import ast
import dis
import gc
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from llvmlite import ir
from numba.core import cgutils, codegen
from numba.core import ir as numba_ir
from numba.core import types as numba_types
from numba.core.compiler import CompilerBase, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.errors import NumbaError
from numba.core.interpreter import Interpreter
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import BaseNativeLowering, NoPythonBackend, NopythonTypeInference
from numba.core.typing import signature as numba_signature
from numba.core.typing.templates import AbstractTemplate
from numba.core.untyped_passes import FixupArgs

from cq.runtime.base.intrinsics import IR_TYPES, RAISES, result_type
from cq.runtime.base.restricted import Callee, TranslationError
from cq.runtime.base.signatures import NativeSignature

types: Any = numba_types  # its members are made at run time

_NUMBA_TYPES = {"i64": types.int64, "f64": types.float64, "bool": types.boolean, "void": types.none}
_BUILTINS: dict[str, Any] = {
    "range": range, "int": int, "float": float, "bool": bool, "abs": abs, "math": math,
}  # fmt: skip


class _Interpreter(Interpreter):  # type: ignore[misc]
    """Numba's interpreter without the search for what the restricted Python lacks: `with`, lists, `**`."""

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        return func_ir


@register_pass(mutates_CFG=True, analysis_only=False)
class _TranslateByteCode(FunctionPass):  # type: ignore[misc]
    _name = "cq_translate_bytecode"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.func_ir = _Interpreter(state.func_id).interpret(state.bc)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Prepare(FunctionPass):  # type: ignore[misc]
    """Replaces numba's post-processing and SSA, which find out which variables live where.

    Nothing here has references to release, and LLVM finds the lifetimes of numbers itself. Without SSA a
    variable that is assigned a literal would have that literal's type and take no other value.
    """

    _name = "cq_prepare"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        func_ir.blocks = canonicalize_cfg(func_ir.blocks)
        func_ir.generator_info = None
        _unlock_literals(func_ir)
        return True


def _unlock_literals(func_ir: Any) -> None:
    """Assign literals to variables with several assignments through a variable of their own."""
    assigned = Counter(s.target.name for b in func_ir.blocks.values() for s in b.body if isinstance(s, numba_ir.Assign))
    for block in func_ir.blocks.values():
        body = []
        for s in block.body:
            literal = isinstance(s, numba_ir.Assign) and isinstance(s.value, _LITERALS)
            if literal and assigned[s.target.name] > 1:
                held = block.scope.make_temp(s.loc)
                func_ir._definitions[held.name].append(s.value)
                body += [numba_ir.Assign(s.value, held, s.loc), numba_ir.Assign(held, s.target, s.loc)]
            else:
                body.append(s)
        block.body = body


_LITERALS = (numba_ir.Const, numba_ir.Global, numba_ir.FreeVar)


class _Lower(Lower):  # type: ignore[misc]
    """Numba's lowering without what it looks up for each block and instruction in case of exceptions."""

    def pre_block(self, block: Any) -> None:
        self._cur_ir_block = block

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        for instruction in block.body:
            self.loc = instruction.loc
            self.lower_inst(instruction)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "cq_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


_PASSES = (_TranslateByteCode, FixupArgs, _Prepare, NopythonTypeInference, _Lowering, NoPythonBackend)


class _Pipeline(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("cq")
        for compiler_pass in _PASSES:
            manager.add_pass(compiler_pass, compiler_pass.__name__)
        manager.finalize()
        return [manager]


class _Text(codegen.CPUCodeLibrary):  # type: ignore[misc]
    """Keeps the assembly of a function instead of optimising it."""

    def add_ir_module(self, ir_module: Any) -> None:
        self.text = str(ir_module)

    def add_linking_library(self, library: Any) -> None:
        if library.name != "nrt":  # numba always offers its reference counting; nothing here has a reference
            raise TranslationError(f"{self.name} uses {library.name}, which is not an op")


class ByNumba:
    """Translates functions; holds the symbols it has declared to numba."""

    def __init__(self) -> None:
        self._typing, self._target = cpu_target.typing_context, cpu_target.target_context
        self._typing.refresh()
        self._target.refresh()
        self._stubs: dict[Callee, object] = {}
        self._resolved: dict[tuple[Any, Any], Any] = {}

    def translate(
        self,
        tree: ast.FunctionDef,
        signature: NativeSignature,
        symbol: str,
        callees: Mapping[str, Callee],
        constants: Mapping[str, Any],
    ) -> str:
        """A module in LLVM assembly that defines `symbol` with a plain C signature.

        callees, constants: the meaning of the function's global names; builtins of the restricted Python are added.
        """
        code = _code(tree)
        where = f"{code.co_filename}:{code.co_firstlineno} {code.co_name}"
        scope = {name: self._known(name, callees, constants, where) for name in _global_names(code)}
        function = FunctionType(code, scope, code.co_name)
        arguments = [_NUMBA_TYPES[kind] for kind in signature.arguments]
        with global_compiler_lock, self._fast():
            library = _Text(self._target.codegen(), code.co_name)
            try:
                compiled = compile_extra(
                    self._typing, self._target, function, arguments, _result_type(signature), _flags(), {},
                    library=library, pipeline_class=_Pipeline,
                )  # fmt: skip
            except NumbaError as why:
                raise TranslationError(f"{where}: {why}") from why
        return _plain_c(library.text, compiled.fndesc.llvm_func_name, signature, symbol)

    @contextmanager
    def _fast(self) -> Iterator[None]:
        """Numba resolves a call of the same types once, and no garbage is collected: a third less time (measured)."""
        resolve = types.Function.get_call_type

        def remembered(function: Any, context: Any, given: Any, named: Any) -> Any:
            key = (function, given)
            if named or (found := self._resolved.get(key)) is None:
                found = resolve(function, context, given, named)
                if found is not None and not named:
                    self._resolved[key] = found
            return found

        collecting = gc.isenabled()
        gc.disable()
        types.Function.get_call_type = remembered
        try:
            yield
        finally:
            types.Function.get_call_type = resolve
            if collecting:
                gc.enable()

    def _known(self, name: str, callees: Mapping[str, Callee], constants: Mapping[str, Any], where: str) -> Any:
        if name in callees:
            return self._stub(callees[name])
        if name in constants:
            return constants[name]
        if name in _BUILTINS:
            return _BUILTINS[name]
        raise TranslationError(f"{where}: {name} is neither an op, nor a native function, nor a constant")

    def _stub(self, callee: Callee) -> object:
        """A Python object that numba takes for a function and compiles to a call of the symbol."""
        if (known := self._stubs.get(callee)) is not None:
            return known
        stub = _Symbol()
        typed = numba_signature(
            _result_type(callee.signature), *(_NUMBA_TYPES[kind] for kind in callee.signature.arguments)
        )

        def generic(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if len(given) != len(typed.args) or named:
                return None
            cut = any(
                isinstance(a, types.Float) and not isinstance(b, types.Float)
                for a, b in zip(given, typed.args, strict=True)
            )
            return None if cut else typed  # numba would silently turn a double into an integer

        def lower(context: Any, builder: Any, called: Any, values: Any) -> Any:
            void = called.return_type == types.none
            result = ir.VoidType() if void else context.get_value_type(called.return_type)
            shape = ir.FunctionType(result, [context.get_value_type(kind) for kind in called.args])
            made = builder.call(cgutils.get_or_insert_function(builder.module, shape, callee.symbol), values)
            return context.get_dummy_value() if void else made

        template = type(callee.symbol, (AbstractTemplate,), {"key": stub, "generic": generic})
        self._typing.insert_global(stub, types.Function(template))
        self._target.insert_func_defn([(lower, stub, typed.args)])
        self._stubs[callee] = stub
        return stub


def _code(tree: ast.FunctionDef) -> CodeType:
    """A function compiled without asserts and decorators."""
    bare = ast.FunctionDef(tree.name, tree.args, tree.body, [], None, None, lineno=tree.lineno, col_offset=0)
    module = compile(ast.Module([bare], []), "<native>", "exec", optimize=1)
    return next(code for code in module.co_consts if isinstance(code, CodeType))


class _Symbol:
    """Stands for a callee in the globals of a function under translation."""

    __slots__ = ("__weakref__",)


def _global_names(code: CodeType) -> list[str]:
    """The names a function looks up outside itself."""
    return sorted({step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"})


def _result_type(signature: NativeSignature) -> Any:
    kinds = [_NUMBA_TYPES[kind] for kind in signature.results]
    return types.none if not kinds else kinds[0] if len(kinds) == 1 else types.Tuple(kinds)


def _flags() -> Flags:
    flags = Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = flags.no_rewrites = True
    flags.error_model = "numpy"  # no check that could raise
    return flags


def _plain_c(text: str, inner: str, signature: NativeSignature, symbol: str) -> str:
    """The translated text with our names, and a wrapper that turns numba's convention into a plain function."""
    text = text.replace(f'@"{inner}"', f'@"{symbol}.body"')
    text = re.sub(rf'^@".*?NumbaEnv.*$\n?|^declare .*@"{re.escape(symbol)}"\(.*$\n?', "", text, flags=re.M)
    arguments = ", ".join(f"{IR_TYPES[kind]} %{n}" for n, kind in enumerate(signature.arguments))
    passed = "".join(f", {IR_TYPES[kind]} %{n}" for n, kind in enumerate(signature.arguments))
    result = result_type(signature)
    slot = result if signature.results else "ptr"
    final = f"%v = load {result}, ptr %r\n  ret {result} %v" if signature.results else "ret void"
    return f"""{text}
declare void @"{RAISES}{symbol}"()
define {result} @"{symbol}"({arguments}) nounwind {{
  %r = alloca {slot}
  %e = alloca ptr
  %s = call i32 @"{symbol}.body"(ptr %r, ptr %e{passed})
  %user = icmp sgt i32 %s, 0
  %error = icmp eq i32 %s, -1
  %raised = or i1 %user, %error
  br i1 %raised, label %raises, label %returns
raises:
  call void @"{RAISES}{symbol}"()
  unreachable
returns:
  {final}
}}
"""
