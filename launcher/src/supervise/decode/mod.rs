//! System-call arguments as text.
