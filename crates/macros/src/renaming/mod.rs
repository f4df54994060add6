//! Renames `self` in a body.
//!
//! `let` cannot bind `self`, so the copy of a body that travels uses `__isles_self`, also inside macro calls and format
//! strings. Paths that start with `self::` and items with a `self` of their own stay as they are.

use proc_macro2::{Group, Ident, Literal, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, LitStr};

/// The name of `self` in a travelling body.
pub const SELF: &str = "__isles_self";

/// The name under which the body sees the variable `name`.
pub fn name_in_body(name: &Ident) -> Ident {
    if name == "self" { Ident::new(SELF, name.span()) } else { name.clone() }
}

/// `body` with `self` renamed.
pub fn without_self(body: &Expr) -> Expr {
    let mut body = body.clone();
    Renaming.visit_expr_mut(&mut body);
    body
}

struct Renaming;

impl VisitMut for Renaming {
    fn visit_expr_path_mut(&mut self, expr: &mut syn::ExprPath) {
        if let (None, Some(name)) = (&expr.qself, expr.path.get_ident()) {
            expr.path = name_in_body(name).into();
        }
    }

    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        call.tokens = renamed(call.tokens.clone());
    }

    fn visit_item_mut(&mut self, item: &mut syn::Item) {
        // A macro called as an item may be a statement of the body; all other items have no `self` from outside.
        if let syn::Item::Macro(_) = item {
            visit_mut::visit_item_mut(self, item);
        }
    }
}

/// The tokens of a macro call with `self` renamed, in each group of them also in the first string.
fn renamed(tokens: TokenStream) -> TokenStream {
    let mut renamed = Vec::new();
    let mut first_text = true;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        renamed.push(match token {
            TokenTree::Ident(name) if name == "self" => {
                let module = matches!(tokens.peek(), Some(TokenTree::Punct(mark)) if mark.as_char() == ':');
                TokenTree::Ident(if module { name } else { name_in_body(&name) })
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), self::renamed(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            TokenTree::Literal(literal) => match text(&literal) {
                Some(value) if first_text => {
                    first_text = false;
                    TokenTree::Literal(renamed_text(literal, &value))
                }
                _ => TokenTree::Literal(literal),
            },
            other => other,
        });
    }
    renamed.into_iter().collect()
}

/// Returns the text of a string literal; `None` for other literals.
fn text(literal: &Literal) -> Option<String> {
    syn::parse2::<LitStr>(TokenTree::Literal(literal.clone()).into()).ok().map(|text| text.value())
}

/// A format string with the argument `self` renamed; any other string as it is.
fn renamed_text(literal: Literal, value: &str) -> Literal {
    let mut renamed = String::new();
    let mut rest = value;
    while let Some(start) = rest.find('{') {
        let (before, argument) = rest.split_at(start + 1);
        renamed.push_str(before);
        rest = argument;
        if let Some(escaped) = rest.strip_prefix('{') {
            renamed.push('{');
            rest = escaped;
        } else if rest.starts_with("self}") || rest.starts_with("self:") {
            renamed.push_str(SELF);
            rest = &rest["self".len()..];
        }
    }
    renamed.push_str(rest);
    if renamed == value {
        return literal;
    }
    let mut replaced = Literal::string(&renamed);
    replaced.set_span(literal.span());
    replaced
}

#[cfg(test)]
mod tests;
