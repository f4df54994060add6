//! `select!`: waits for several futures and continues with the first that is ready.
//!
//! Only parsing and expansion: the runtime's `channel::select` chooses the future and drops the others. Invariant:
//! bodies are expanded at the call site, so `?`, `return` and `break` act on the function around it.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Pat, Token};

/// One branch: `pattern = future => body`.
pub(crate) struct Branch {
    pub pattern: Pat,
    pub future: Expr,
    pub body: Expr,
}

/// All branches, and the body for the case that none is ready now.
pub(crate) struct Select {
    pub branches: Vec<Branch>,
    pub default: Option<Expr>,
}

impl Parse for Select {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (mut branches, mut default) = (Vec::new(), None);
        refuse_biased(input)?;
        while !input.is_empty() {
            let is_default = input.peek(syn::Ident) && input.peek2(Token![=>]);
            let is_default = is_default && input.fork().parse::<syn::Ident>()? == "default";
            if is_default {
                let word: syn::Ident = input.parse()?;
                input.parse::<Token![=>]>()?;
                let body = parse_body(input)?;
                if default.replace(body).is_some() {
                    return Err(syn::Error::new(word.span(), "a `select!` has one `default`"));
                }
            } else if input.peek(Token![else]) {
                return Err(input.error(ELSE));
            } else {
                let pattern = Pat::parse_multi(input)?;
                input.parse::<Token![=]>()?;
                let future = input.parse()?;
                refuse_condition(input)?;
                input.parse::<Token![=>]>()?;
                branches.push(Branch { pattern, future, body: parse_body(input)? });
            }
        }
        if branches.is_empty() {
            return Err(input.error("a `select!` has branches `pattern = future => body`"));
        }
        Ok(Select { branches, default })
    }
}

/// Message for keywords of `tokio::select!` that this macro lacks.
const BIASED: &str = "`select!` has no `biased`: ready branches take turns; remove the word, and poll \
     the preferred branches first in a separate `select!` with `default`";
const ELSE: &str = "`select!` has no `else`: bind the whole output and `match` it in the body; to act if \
     no branch is ready now, use `default =>`";
const CONDITION: &str = "branches have no conditions: write a second `select!`, without this branch, for when the \
     condition is false";

/// Refuses `biased;` before the branches.
fn refuse_biased(input: ParseStream<'_>) -> syn::Result<()> {
    let is_biased = input.peek(syn::Ident) && input.peek2(Token![;]);
    match is_biased && input.fork().parse::<syn::Ident>()? == "biased" {
        true => Err(input.error(BIASED)),
        false => Ok(()),
    }
}

/// Refuses `, if condition` after the future of a branch.
fn refuse_condition(input: ParseStream<'_>) -> syn::Result<()> {
    let is_condition = input.peek(Token![if]) || input.peek(Token![,]) && input.peek2(Token![if]);
    if is_condition {
        input.parse::<Option<Token![,]>>()?;
        return Err(input.error(CONDITION));
    }
    Ok(())
}

/// Parses the body of a branch like an arm of `match`: the comma is optional after a block.
fn parse_body(input: ParseStream<'_>) -> syn::Result<Expr> {
    let body = Expr::parse_with_earlier_boundary_rule(input)?;
    let is_block = matches!(
        body,
        Expr::Block(_)
            | Expr::If(_)
            | Expr::Match(_)
            | Expr::Loop(_)
            | Expr::While(_)
            | Expr::ForLoop(_)
            | Expr::Unsafe(_)
            | Expr::Const(_)
            | Expr::TryBlock(_)
    );
    if input.parse::<Option<Token![,]>>()?.is_none() && !is_block && !input.is_empty() {
        return Err(input.error("expected `,` after the branch"));
    }
    Ok(body)
}

impl ToTokens for Select {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for Branch { pattern, future, body } in &self.branches {
            tokens.extend(quote!(#pattern = #future => #body,));
        }
        if let Some(body) = &self.default {
            tokens.extend(quote!(default => #body,));
        }
    }
}

impl Select {
    /// Returns the bodies of the branches, including the default.
    pub(crate) fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.branches.iter_mut().map(|branch| &mut branch.body).chain(&mut self.default)
    }
}

/// The code.
pub(crate) fn select(select: &Select) -> TokenStream {
    let Select { branches, default } = select;
    let count = branches.len();
    let waits = default.is_none();
    let variants: Vec<_> = (0..count).map(|number| format_ident!("Branch{number}")).collect();
    let pinned: Vec<_> = (0..count).map(|number| format_ident!("__isles_pinned_{number}")).collect();
    let locals: Vec<_> = (0..count).map(|number| format_ident!("__isles_branch_{number}")).collect();
    let numbers: Vec<usize> = (0..count).collect();
    let futures = branches.iter().map(|branch| &branch.future);
    let arms = branches
        .iter()
        .zip(&variants)
        .map(|(Branch { pattern, body, .. }, variant)| quote!(__Chosen::#variant(#pattern) => #body,));
    let otherwise = match default {
        Some(body) => quote!(__Chosen::Default => #body,),
        None => quote!(__Chosen::Default => ::core::unreachable!("a `select!` without `default` waits"),),
    };
    quote! {{
        enum __Chosen<#(#variants),*> { #(#variants(#variants),)* Default }
        let __isles_chosen = {
            #(let mut #pinned = ::core::pin::pin!(#futures);)*
            #(let mut #locals = ::isles::__private::select::Branch::new(#numbers, #pinned.as_mut());)*
            let __isles_selection = ::isles::__private::select::begin(#count, #waits).await;
            ::core::future::poll_fn(|__isles_context| loop {
                #[allow(unused_imports)]
                use ::isles::__private::select::PollBranch as _;
                use ::core::task::Poll;
                let (mut __isles_pending, __isles_was_chosen) = (false, __isles_selection.is_chosen());
                for __isles_number in 0..#count {
                    match __isles_selection.turn(__isles_number) {
                        #(::core::option::Option::Some(#numbers) => {
                            match #locals.poll_branch(__isles_context, &__isles_selection) {
                                Poll::Ready(::core::option::Option::Some(output)) => {
                                    return Poll::Ready(__Chosen::#variants(output));
                                }
                                Poll::Ready(::core::option::Option::None) => {}
                                Poll::Pending => __isles_pending = true,
                            }
                        })*
                        _ => {}
                    }
                    if __isles_was_chosen && !__isles_selection.is_chosen() {
                        break;
                    }
                }
                if __isles_selection.is_chosen() {
                    #(#locals.suspend(&__isles_selection);)*
                } else if __isles_was_chosen {
                    continue; // It was declined: the others have their turn.
                }
                return if __isles_pending { Poll::Pending } else { Poll::Ready(__Chosen::Default) };
            })
            .await
        };
        match __isles_chosen {
            #(#arms)*
            #otherwise
        }
    }}
}
