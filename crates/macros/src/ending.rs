//! Error conversion in a body that uses `?`, into a type that takes errors that `isles::Error` cannot.
//!
//! In such a body `?` converts into `BodyError`; a call inserted before it converts more types than `?` can, but not
//! inside macros. A result that a body returns without `?`, at its end or by `return`, is converted here in the same
//! way. Syntax only: closures, `async` blocks, items and macros other than `select!` have ends of their own.

use crate::flow::{self, Flow};
use crate::invocation;
use crate::select::Select;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Stmt, parse_quote};

/// Returns `body` with the errors that it returns itself converted; `flow` is its control flow.
pub fn with_converted_errors(body: &Expr, flow: Flow) -> Expr {
    let mut body = body.clone();
    if flow.ends_in_result {
        ends(&mut body);
    }
    Exits.visit_expr_mut(&mut body);
    body
}

/// Converts the last expressions of `expr`, one for each branch.
fn ends(expr: &mut Expr) {
    match expr {
        Expr::Block(block) => block_ends(&mut block.block),
        Expr::Unsafe(block) => block_ends(&mut block.block),
        Expr::If(branch) => {
            block_ends(&mut branch.then_branch);
            branch.else_branch.iter_mut().for_each(|(_, otherwise)| ends(otherwise));
        }
        Expr::Match(choice) => choice.arms.iter_mut().for_each(|arm| ends(&mut arm.body)),
        Expr::Paren(inner) => ends(&mut inner.expr),
        Expr::Group(inner) => ends(&mut inner.expr),
        Expr::Macro(call) => in_select(&mut call.mac, |select| select.bodies_mut().for_each(ends)),
        other => convert(other),
    }
}

fn block_ends(block: &mut syn::Block) {
    match block.stmts.last_mut() {
        Some(Stmt::Expr(last, None)) => ends(last),
        Some(Stmt::Macro(last)) if last.semi_token.is_none() => {
            in_select(&mut last.mac, |select| select.bodies_mut().for_each(ends));
        }
        _ => {}
    }
}

/// Changes the branches of `call`, if it is a `select!`.
fn in_select(call: &mut syn::Macro, change: impl FnOnce(&mut Select)) {
    if let Some(mut select) = invocation::select(call) {
        change(&mut select);
        call.tokens = select.into_token_stream();
    }
}

/// Converts the error of a result, unless the expression is `Ok(..)`, already converts, or never has a value.
fn convert(result: &mut Expr) {
    let is_value = matches!(
        result,
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Await(_) | Expr::Path(_) | Expr::Field(_) | Expr::Try(_)
    );
    if !is_value || flow::diverges(result) {
        return;
    }
    match result {
        Expr::Call(call) if is_plain(&call.func, "Ok") => {}
        Expr::Call(call) if is_plain(&call.func, "Err") => call.args.iter_mut().for_each(convert_error),
        other => {
            let result = quote_spanned!(other.span()=> ::isles::__private::body_result);
            *other = parse_quote!(#result(#other));
        }
    }
}

/// Returns `true` if a call constructs the variant `name` without type arguments: `Ok::<_, E>(..)` names its own error
/// type.
fn is_plain(function: &Expr, name: &str) -> bool {
    let has_type_arguments = matches!(function, Expr::Path(path)
        if path.path.segments.iter().any(|segment| !segment.arguments.is_none()));
    !has_type_arguments && flow::last_name(function).is_some_and(|last| last == name)
}

/// Converts the argument of `Err(..)`; `error.into()` converts itself.
fn convert_error(error: &mut Expr) {
    if !matches!(error, Expr::MethodCall(call) if call.method == "into" && call.args.is_empty()) {
        let from = quote_spanned!(error.span()=> ::isles::__private::body_error);
        *error = parse_quote!(#from(#error));
    }
}

/// Converts the operands of `return` and `?`.
struct Exits;

impl VisitMut for Exits {
    fn visit_expr_try_mut(&mut self, expr: &mut syn::ExprTry) {
        visit_mut::visit_expr_try_mut(self, expr);
        let inner = &expr.expr;
        let result = quote_spanned!(inner.span()=> ::isles::__private::body_result);
        *expr.expr = parse_quote!(#result(#inner));
    }

    fn visit_expr_return_mut(&mut self, expr: &mut syn::ExprReturn) {
        visit_mut::visit_expr_return_mut(self, expr);
        expr.expr.iter_mut().for_each(|result| ends(result));
    }

    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        in_select(call, |select| {
            select.branches.iter_mut().for_each(|branch| self.visit_expr_mut(&mut branch.future));
            select.bodies_mut().for_each(|body| self.visit_expr_mut(body));
        });
    }

    fn visit_expr_closure_mut(&mut self, _closure: &mut syn::ExprClosure) {}
    fn visit_expr_async_mut(&mut self, _block: &mut syn::ExprAsync) {}
    fn visit_item_mut(&mut self, _item: &mut syn::Item) {}
}
