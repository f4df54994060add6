//! The files of the page, which are part of the program.
//!
//! They are built from `web/` and committed, so building Isles needs no other tools. Invariant: only files of this list
//! are served.

/// A file of the page.
pub(crate) struct Asset {
    /// Its path at the server.
    pub(crate) path: &'static str,
    /// Its media type.
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

/// The script of the page.
pub(crate) const SCRIPT: &str = include_str!("../../../web/dist/app.js");

/// The style of the page.
pub(crate) const STYLE: &str = include_str!("../../../web/dist/app.css");

/// All files of the page.
pub(crate) const ASSETS: [Asset; 4] = [
    Asset { path: "/", kind: "text/html; charset=utf-8", text: include_str!("../../../web/dist/index.html") },
    Asset { path: "/app.js", kind: "text/javascript; charset=utf-8", text: SCRIPT },
    Asset { path: "/app.css", kind: "text/css; charset=utf-8", text: STYLE },
    Asset {
        path: "/favicon.svg",
        kind: "image/svg+xml",
        text: include_str!("../../../web/dist/favicon.svg"),
    },
];
