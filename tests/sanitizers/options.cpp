// SPDX-License-Identifier: Apache-2.0
//
// Asked for by the sanitizers' libraries as they start, before any of our own code runs; not instrumented itself.
// halt_on_error: else undefined behaviour is only printed, and the test passes. allocator_may_return_null: memory that
// cannot be had is a case the engine handles, not a finding. LibTorch's reader of TorchScript files loses the directory of an archive that
// it refuses, as its constructor throws.

extern "C" {

const char* __asan_default_options() { return "allocator_may_return_null=1:detect_stack_use_after_return=1"; }
const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
const char* __tsan_default_options() { return "allocator_may_return_null=1:second_deadlock_stack=1"; }

const char* __lsan_default_suppressions() { return "leak:mz_zip_reader_init\nleak:mz_zip_reader_read_central_dir\n"; }

} // extern "C"
