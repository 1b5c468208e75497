//! What a confined program may do, and how the kernel is told.
#![cfg_attr(not(any(feature = "std", test)), no_std)]
