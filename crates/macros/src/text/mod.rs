//! The variables that a format string names: `"{x} of {total:>width$}"`.
//!
//! It reads names only; whether the string is a good format string is for the compiler to say.

use proc_macro2::Span;
use syn::{Ident, LitStr};

/// The names in `literal`, in order, each placed at the literal.
pub fn names(literal: &LitStr) -> Vec<Ident> {
    let text = literal.value();
    let mut names = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find('{') {
        rest = &rest[start + 1..];
        if let Some(escaped) = rest.strip_prefix('{') {
            rest = escaped;
            continue;
        }
        let Some(end) = rest.find('}') else { break };
        argument_names(&rest[..end], literal.span(), &mut names);
        rest = &rest[end + 1..];
    }
    names
}

/// The names in one argument, `name:spec`.
fn argument_names(argument: &str, span: Span, names: &mut Vec<Ident>) {
    let (name, spec) = argument.split_once(':').unwrap_or((argument, ""));
    names.extend(identifier(name.trim(), span));
    // Width and precision are names that end in `$`; what stands before the name is no letter, or the flag `0`.
    for piece in spec.split_inclusive('$').filter_map(|piece| piece.strip_suffix('$')) {
        let letters = piece.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(piece, |end| {
            let next = end + piece[end..].chars().next().map_or(0, char::len_utf8);
            &piece[next..]
        });
        names.extend(identifier(letters.trim_start_matches(|c: char| c.is_ascii_digit()), span));
    }
}

/// `name` as an identifier; `None` for positions (`0`) and for nothing.
fn identifier(name: &str, span: Span) -> Option<Ident> {
    let mut ident: Ident = match name {
        "self" => Ident::new("self", span),
        _ => syn::parse_str(name).ok()?,
    };
    ident.set_span(span);
    Some(ident)
}

#[cfg(test)]
mod tests;
