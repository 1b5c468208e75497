//! The profiles that `sbx` carries with it, and their JSON Schema.
