"""The operators in kernels, by the names of `cq.planner.operators`; `cq.codegen.stage` imports them."""
