//! Placeholder header; replaced with the first code.
