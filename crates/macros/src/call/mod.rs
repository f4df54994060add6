//! The arguments of `at!` and `spawn_at!`: a place, perhaps a list of captures, a body.
//!
//! Parsing only; [`crate::usage`] finds the captures where there is no list. The one doubtful case is a
//! bracket after the comma: it is a list unless what follows the bracket can only continue an array expression.

use proc_macro2::{Span, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Ident, Member, Stmt, Token, bracketed, token};

/// Arguments in the parentheses of `at!` or `spawn_at!`.
pub struct Call {
    /// Place at which the body runs.
    pub place: Expr,
    /// Captures that travel, if the user lists them.
    pub list: Option<Vec<Item>>,
    /// Body that runs there.
    pub body: Expr,
}

/// One entry of an explicit list of captures.
pub enum Item {
    /// `name` or `name.field.field`, seen by the body under the same name.
    Path(FieldPath),
    /// `&name`, seen by the body as a reference.
    Reference(Ident),
    /// `name = expression`, evaluated before the body travels.
    Named(Ident, Box<Expr>),
}

/// A variable and the fields that lead from it: `self.graph.offsets`.
pub struct FieldPath {
    /// The variable, perhaps `self`.
    pub root: Ident,
    /// The fields, outermost first.
    pub members: Vec<Member>,
}

impl FieldPath {
    /// Parses an expression that consists of a variable and fields of it only.
    pub fn of(expr: &Expr) -> Option<FieldPath> {
        match expr {
            Expr::Path(path) if path.qself.is_none() => {
                path.path.get_ident().map(|root| FieldPath { root: root.clone(), members: Vec::new() })
            }
            Expr::Field(field) => {
                let mut path = FieldPath::of(&field.base)?;
                path.members.push(field.member.clone());
                Some(path)
            }
            Expr::Paren(inner) => FieldPath::of(&inner.expr),
            Expr::Group(inner) => FieldPath::of(&inner.expr),
            _ => None,
        }
    }
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            return Err(input.error("expected a place and a body: `(place, body)`"));
        }
        let place = input.parse()?;
        if input.is_empty() {
            return Err(syn::Error::new(Span::call_site(), "the body is missing: `(place, body)`"));
        }
        input.parse::<Token![,]>()?;
        let list = if list_follows(input) { Some(parse_list(input)?) } else { None };
        if input.is_empty() {
            return Err(input.error("the body is missing: `(place, body)`"));
        }
        let body = parse_body(input)?;
        Ok(Call { place, list, body })
    }
}

/// Parses the body; one of several expressions must have braces.
fn parse_body(input: ParseStream<'_>) -> syn::Result<Expr> {
    const BRACES: &str = "the body is one expression: put several statements into braces";
    if input.peek(Token![let]) {
        return Err(input.error(BRACES));
    }
    let body = input.parse()?;
    if input.peek(Token![;]) {
        return Err(input.error(BRACES));
    }
    input.parse::<Option<Token![,]>>()?;
    if !input.is_empty() {
        return Err(input.error("nothing may follow the body"));
    }
    Ok(without_braces(body))
}

/// Removes the braces of a single expression, because the compiler would warn about them in the expansion.
fn without_braces(body: Expr) -> Expr {
    match body {
        Expr::Block(block) if block.label.is_none() && block.attrs.is_empty() => {
            match block.block.stmts.as_slice() {
                [Stmt::Expr(only, None)] => only.clone(),
                _ => Expr::Block(block),
            }
        }
        body => body,
    }
}

/// Returns `true` if the next token is the bracket of a list: an expression begins after it. `*x`, `&x` and `-x` count
/// as that, because an array cannot stand to the left of such an operator. After a list an array has at least two
/// elements or none; `[x][0]` is an index.
fn list_follows(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    if !ahead.peek(token::Bracket) || ahead.parse::<TokenTree>().is_err() || ahead.is_empty() {
        return false;
    }
    if ahead.peek(Token![as]) {
        return false;
    }
    if ahead.peek(token::Bracket) {
        return !is_index(&ahead);
    }
    let changes = ahead.peek(Token![*=]) || ahead.peek(Token![&=]) || ahead.peek(Token![-=]);
    let is_prefix = ahead.peek(Token![*]) || ahead.peek(Token![&]) || ahead.peek(Token![-]);
    let negation = ahead.peek(Token![!]) && !ahead.peek(Token![!=]);
    let path = ahead.peek(Token![::]);
    ahead.cursor().punct().is_none() || is_prefix && !changes || negation || path
}

/// Returns `true` if the next bracket holds one expression, as an index does.
fn is_index(input: ParseStream<'_>) -> bool {
    let Ok(TokenTree::Group(bracket)) = input.fork().parse::<TokenTree>() else { return false };
    syn::parse2::<Expr>(bracket.stream()).is_ok()
}

/// Reads `[a.b, &c, d = e]`.
fn parse_list(input: ParseStream<'_>) -> syn::Result<Vec<Item>> {
    let content;
    bracketed!(content in input);
    Ok(Punctuated::<Item, Token![,]>::parse_terminated(&content)?.into_iter().collect())
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            return Ok(Item::Named(name, input.parse()?));
        }
        let expr: Expr = input.parse()?;
        if let Expr::Reference(reference) = &expr
            && reference.mutability.is_none()
            && let Some(path) = FieldPath::of(&reference.expr)
        {
            return referenced(path, &expr);
        }
        FieldPath::of(&expr).map(Item::Path).ok_or_else(|| {
            syn::Error::new(
                expr.span(),
                "a list of captures holds `name`, `name.field`, `&name` or `name = expression`",
            )
        })
    }
}

/// `&name`, which must be a plain variable.
fn referenced(path: FieldPath, expr: &Expr) -> syn::Result<Item> {
    if path.root == "self" && path.members.is_empty() {
        return Err(syn::Error::new(
            expr.span(),
            "write `self`: it travels as it is, as a value or as a reference",
        ));
    }
    match path.members.last() {
        None => Ok(Item::Reference(path.root)),
        Some(_) => Err(syn::Error::new(expr.span(), "give the reference a name: `name = &...`")),
    }
}

#[cfg(test)]
mod tests;
