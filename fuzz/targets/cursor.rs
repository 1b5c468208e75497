#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sbx_fuzz::cursor(data));
