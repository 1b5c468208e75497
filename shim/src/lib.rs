//! libsandbox.so
