//! The modules of a crate, and which of them uses which: read from the source, without compiling it.
//!
//! [`Tree`] holds the modules and the paths that stand in them, outside tests. [`Graph`] resolves these paths and
//! gives the edges between files and between top-level modules. [`layers`] says in which order the launcher's
//! top-level modules stand, and what breaks that order.
//!
//! A path counts wherever it stands: in a `use`, in an expression, type or pattern, in the arguments of a macro, in an
//! attribute. An item that is imported through a re-export is an edge to the module that re-exports it; that module
//! has an edge of its own to where the item comes from. So a re-export cannot hide an edge.

mod cfg;
mod graph;
pub mod layers;
mod paths;
mod resolve;
mod tree;

pub use graph::{Edge, Edges, Graph, circle_through, circles};
pub use tree::{Lines, Module, ModuleId, Tree};
