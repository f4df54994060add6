//! The imports of a file: its `use` declarations, and the paths in its code that start at a module.

use crate::lexer::{Token, TokenKind};
use crate::tree::File;

/// One imported path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The names of the path as written: `crate`, `a`, `B`.
    pub path: Vec<String>,
    /// The name that the file gives it; `None` for a glob and for a path in code.
    pub name: Option<String>,
    /// `true` if it ends in `*`; `path` is then the module.
    pub is_glob: bool,
    /// `true` if it only passes the name on: `pub use`.
    pub is_reexport: bool,
}

/// The imports of `file` outside its tests.
pub fn imports(file: &File) -> Vec<Import> {
    let code: Vec<&Token> = file.source.code.iter().filter(|token| !file.is_test_line(token.line)).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if code[at].is("use") && code.get(at + 1).is_some_and(|next| next.kind == TokenKind::Word) {
            let mut reader = UseReader { code: &code, at: at + 1, is_reexport: is_reexport(&code[..at]) };
            reader.read_tree(&mut Vec::new(), &mut found);
            at = reader.at;
        } else if let Some((path, end)) = path_in_code(&code, at) {
            found.push(Import { path, name: None, is_glob: false, is_reexport: false });
            at = end;
        }
        at += 1;
    }
    found
}

/// Returns `true` if a `use` after `before` is public, in the crate or beyond.
fn is_reexport(before: &[&Token]) -> bool {
    match before {
        [.., public] if public.is("pub") => true,
        [.., close] if close.is(")") => {
            let open = before.iter().rposition(|token| token.is("("));
            open.is_some_and(|open| open > 0 && before[open - 1].is("pub"))
        }
        _ => false,
    }
}

/// A path in code that starts with `crate` or `super`, and the index of its last token.
fn path_in_code(code: &[&Token], at: usize) -> Option<(Vec<String>, usize)> {
    let is_start = code[at].is("crate") || code[at].is("super");
    // `$crate::` is of a macro, `pub(in crate::a)` imports nothing.
    let is_other = at > 0 && ["$", ":", "in"].iter().any(|before| code[at - 1].is(before));
    if !is_start || is_other {
        return None;
    }
    let mut path = vec![code[at].text.clone()];
    let mut end = at;
    while let [first, second, name, ..] = code[end + 1..] {
        if !(first.is(":") && second.is(":") && name.kind == TokenKind::Word) {
            break;
        }
        path.push(name.text.clone());
        end += 3;
    }
    (path.len() > 1).then_some((path, end))
}

/// Reads the tree of one `use` declaration.
struct UseReader<'a> {
    code: &'a [&'a Token],
    at: usize,
    is_reexport: bool,
}

impl UseReader<'_> {
    fn next_is(&self, text: &str) -> bool {
        self.code.get(self.at).is_some_and(|token| token.is(text))
    }

    /// Reads `a::b`, `a::b as c`, `a::*` or `a::{..}` below `prefix`.
    fn read_tree(&mut self, prefix: &mut Vec<String>, found: &mut Vec<Import>) {
        let depth = prefix.len();
        while let Some(token) = self.code.get(self.at) {
            if token.kind == TokenKind::Word && !token.is("as") {
                prefix.push(token.text.clone());
                self.at += 1;
            } else if token.is(":") {
                self.at += 1;
            } else if token.is("{") {
                self.read_group(prefix, found);
                break;
            } else if token.is("*") {
                self.at += 1;
                self.push(prefix, None, true, found);
                break;
            } else {
                let name = self.read_alias().or_else(|| prefix.last().cloned());
                self.push(prefix, name, false, found);
                break;
            }
        }
        prefix.truncate(depth);
    }

    fn read_group(&mut self, prefix: &mut Vec<String>, found: &mut Vec<Import>) {
        self.at += 1;
        while self.at < self.code.len() && !self.next_is("}") {
            if self.next_is(",") {
                self.at += 1;
            } else {
                let before = self.at;
                self.read_tree(prefix, found);
                self.at = self.at.max(before + 1);
            }
        }
        self.at += 1;
    }

    /// The name after `as`, if one stands here.
    fn read_alias(&mut self) -> Option<String> {
        if !self.next_is("as") {
            return None;
        }
        let name = self.code.get(self.at + 1)?.text.clone();
        self.at += 2;
        Some(name)
    }

    fn push(&self, prefix: &[String], name: Option<String>, is_glob: bool, found: &mut Vec<Import>) {
        let is_module = prefix.len() > 1 && prefix.last().is_some_and(|last| last == "self");
        let path = if is_module { &prefix[..prefix.len() - 1] } else { prefix };
        let name = if is_module && name.as_deref() == Some("self") { path.last().cloned() } else { name };
        found.push(Import { path: path.to_vec(), name, is_glob, is_reexport: self.is_reexport });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn of(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/src/lib.rs", text)]);
        let shown = imports(tree.file("crates/a/src/lib.rs").unwrap()).into_iter().map(|import| {
            let public = if import.is_reexport { "pub " } else { "" };
            let end = if import.is_glob { "::*" } else { "" };
            let name = import.name.map_or(String::new(), |name| format!(" as {name}"));
            format!("{public}{}{end}{name}", import.path.join("::"))
        });
        shown.collect()
    }

    #[test]
    fn a_declaration_is_taken_apart() {
        assert_eq!(
            of("use a::{self, b::{C, D as E}, f::*};\npub(crate) use super::g;"),
            ["a as a", "a::b::C as C", "a::b::D as E", "a::f::*", "pub super::g as g"]
        );
    }

    #[test]
    fn paths_in_code_count_and_those_of_macros_do_not() {
        assert_eq!(
            of("pub(in crate::x) fn f() -> crate::a::B { super::c(); $crate::d::e(); other::crate_name() }"),
            ["crate::a::B", "super::c"]
        );
    }
}
