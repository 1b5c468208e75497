//! What a file is, before anybody runs it.
