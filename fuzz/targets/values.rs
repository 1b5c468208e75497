#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sbx::fuzzing::values(data));
