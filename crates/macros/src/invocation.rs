//! The macros that a body calls, taken apart into what they evaluate.
//!
//! A macro is only tokens. The ones of the standard library are read by their own grammar, including names inside of
//! format strings; nested `at!`, `everywhere!`, `spawn_at!` and `select!` by theirs; any other macro as expressions
//! between commas. What cannot be read is an error that asks for an explicit list of captures: a guess would send the
//! wrong variables.

use crate::call::Call;
use crate::select::Select;
use crate::text;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Expr, ExprLit, Ident, Lit, Macro, Pat, Token};

/// Something that a macro evaluates.
pub enum Part {
    /// An expression.
    Expr(Expr),
    /// A variable named in a format string.
    Name(Ident),
    /// `matches!`: a value, a pattern that may bind names, a condition that may use them.
    Match(Expr, Box<Pat>, Option<Expr>),
    /// A nested `at!`, `everywhere!` or `spawn_at!`.
    Call(Box<Call>),
    /// A `select!`: futures, and what is done with the output of one, whose pattern may bind names.
    Select(Select),
}

/// Returns the parts that `call` evaluates, in order.
///
/// # Errors
/// The macro is not known, and its tokens are not expressions between commas.
pub fn parts(call: &Macro) -> syn::Result<Vec<Part>> {
    let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let tokens = call.tokens.clone();
    match name.as_str() {
        "at" | "spawn_at" => Ok(vec![Part::Call(Box::new(syn::parse2(tokens)?))]),
        // `everywhere!` has no place, so a place without variables is filled in.
        "everywhere" | "spawn_anywhere" => Ok(vec![Part::Call(Box::new(syn::parse2(quote!(0, #tokens))?))]),
        "select" => {
            Ok(vec![Part::Select(syn::parse2(tokens).map_err(|fault| own_fault(call, &name, fault))?)])
        }
        "stringify" | "line" | "column" | "file" | "module_path" | "cfg" | "env" | "option_env"
        | "include_str" | "include_bytes" | "concat" | "compile_error" => Ok(Vec::new()),
        "matches" => matching.parse2(tokens),
        "vec" if repeated(&tokens) => repetition.parse2(tokens),
        _ => {
            let arguments = arguments.parse2(tokens).map_err(|_| unreadable(call, &name))?;
            Ok(with_format(arguments, format_index(&name)))
        }
    }
}

/// The branches of `call`, if it is a `select!` that can be read.
pub fn select(call: &Macro) -> Option<Select> {
    let is_select = call.path.segments.last().is_some_and(|segment| segment.ident == "select");
    is_select.then(|| syn::parse2(call.tokens.clone()).ok()).flatten()
}

/// The error for a `select!` that cannot be read: the mistake in it, unless it is that of another crate.
fn own_fault(call: &Macro, name: &str, fault: syn::Error) -> syn::Error {
    let segments = &call.path.segments;
    let is_own = segments.len() == 1 || segments[0].ident == "isles";
    if is_own { fault } else { unreadable(call, name) }
}

/// The error for a macro that cannot be read.
fn unreadable(call: &Macro, name: &str) -> syn::Error {
    syn::Error::new_spanned(
        &call.path,
        format!(
            "the variables used by the macro `{name}!` are not visible from outside; list what travels: \
             `(place, [first, second] body)`"
        ),
    )
}

/// Returns the index of the argument of the macro `name` that is a format string.
fn format_index(name: &str) -> Option<usize> {
    Some(match name {
        "print" | "println" | "eprint" | "eprintln" | "format" | "format_args" | "panic" | "todo"
        | "unimplemented" | "unreachable" | "error" | "warn" | "info" | "debug" | "trace" | "bail"
        | "anyhow" => 0,
        "write" | "writeln" | "assert" | "debug_assert" | "ensure" => 1,
        "assert_eq" | "assert_ne" | "debug_assert_eq" | "debug_assert_ne" => 2,
        _ => return None,
    })
}

/// An argument between commas, perhaps with a name: `width = 5`.
struct Argument {
    name: Option<Ident>,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let named = input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = if named {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            Some(name)
        } else {
            None
        };
        Ok(Argument { name, value: input.parse()? })
    }
}

/// Reads arguments between commas.
fn arguments(input: ParseStream<'_>) -> syn::Result<Vec<Argument>> {
    Ok(input.parse_terminated(Argument::parse, Token![,])?.into_iter().collect())
}

/// The arguments, with the names in the format string at `index` that are no named arguments.
fn with_format(arguments: Vec<Argument>, index: Option<usize>) -> Vec<Part> {
    let literal = index.and_then(|index| arguments.get(index)).and_then(|argument| match &argument.value {
        Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => Some(literal),
        _ => None,
    });
    let names = literal.map(text::names).unwrap_or_default();
    let given: Vec<Ident> = arguments.iter().filter_map(|argument| argument.name.clone()).collect();
    let free = names.into_iter().filter(|name| !given.contains(name)).map(Part::Name);
    let values = arguments.into_iter().map(|argument| Part::Expr(argument.value));
    values.chain(free).collect()
}

/// Returns `true` if these are the tokens of `vec![value; count]`.
fn repeated(tokens: &TokenStream) -> bool {
    tokens
        .clone()
        .into_iter()
        .any(|token| matches!(token, proc_macro2::TokenTree::Punct(mark) if mark.as_char() == ';'))
}

/// Reads `value; count`.
fn repetition(input: ParseStream<'_>) -> syn::Result<Vec<Part>> {
    let value = input.parse()?;
    input.parse::<Token![;]>()?;
    Ok(vec![Part::Expr(value), Part::Expr(input.parse()?)])
}

/// Reads `value, pattern if condition`.
fn matching(input: ParseStream<'_>) -> syn::Result<Vec<Part>> {
    let value = input.parse()?;
    input.parse::<Token![,]>()?;
    let pattern = Pat::parse_multi_with_leading_vert(input)?;
    let condition = if input.parse::<Option<Token![if]>>()?.is_some() { Some(input.parse()?) } else { None };
    input.parse::<Option<Token![,]>>()?;
    Ok(vec![Part::Match(value, Box::new(pattern), condition)])
}
