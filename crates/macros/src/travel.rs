//! Expansion of `at!`, `spawn_at!` and their relatives.
//!
//! `at!` expands its body twice: once as written, for the caller's own place, and once as a closure without captures
//! whose variables are the decoded ones. `spawn_at!` has the second only. Both copies have the same types; lints apply
//! to the first copy only.

use crate::call::{Call, FieldPath, Item};
use crate::captures::Captures;
use crate::flow::{self, Flow};
use crate::{ending, renaming, usage};
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

/// The code of `at!(call)`.
///
/// # Errors
/// The captures of the body cannot be seen.
pub fn at(call: &Call) -> syn::Result<TokenStream> {
    let TravelParts { site, captures, remote } = parts(call, returned)?;
    let Captures { rebindings, views, checks, value, pattern: _ } = captures;
    let place = place(call);
    let here = local(call);
    let quiet = allow_unreachable(flow::of(&call.body));
    Ok(quote! {{
        #site
        ::isles::__private::at(#place, async |__isles_place: ::isles::__private::Place| {
            #rebindings
            #[allow(warnings, clippy::all)]
            let (__isles_captures, __isles_remote) = {
                use ::isles::__private::Known as _;
                #views
                #checks
                let __isles_captures = #value;
                #remote
                (__isles_captures, __isles_remote)
            };
            if ::isles::__private::is_here(__isles_place) {
                let __isles_tried =
                    ::isles::__private::try_here(__IslesSite, __isles_captures, __isles_remote);
                #quiet
                let __isles_here = #here;
                ::isles::__private::at_here(__IslesSite, __isles_tried, __isles_here).await
            } else {
                ::isles::__private::at_there(__IslesSite, __isles_place, __isles_captures, __isles_remote).await
            }
        })
    }})
}

/// The code of `everywhere!(arguments)`: one `at!` per place.
///
/// # Errors
/// As for [`at`]; the arguments are no body with or without a list.
pub fn everywhere(arguments: TokenStream) -> syn::Result<TokenStream> {
    let call = at(&syn::parse2(quote!(__isles_each, #arguments))?)?;
    Ok(quote!(::isles::__private::everywhere(|__isles_each: ::isles::__private::Place| #call)))
}

/// The code of `spawn_at!(call)`.
///
/// # Errors
/// The captures of the body cannot be seen.
pub fn spawn_at(call: &Call) -> syn::Result<TokenStream> {
    let TravelParts { site, captures, remote } = parts(call, ended)?;
    let Captures { rebindings, views, checks, value, pattern: _ } = captures;
    let place = place(call);
    Ok(quote! {{
        #site
        let __isles_place = #place;
        #rebindings
        {
            use ::isles::__private::Known as _;
            #views
            #checks
            let __isles_captures = #value;
            #remote
            ::isles::__private::spawn_at(__IslesSite, __isles_place, __isles_captures, __isles_remote)
        }
    }})
}

/// The code of `spawn_anywhere!(arguments)`: a `spawn_at!` of a body that reports its end.
///
/// # Errors
/// As for [`spawn_at`]; the arguments are no body with or without a list.
pub fn spawn_anywhere(arguments: TokenStream) -> syn::Result<TokenStream> {
    let mut call: Call = syn::parse2(quote!(__isles_chosen.place(), #arguments))?;
    if let Some(list) = &mut call.list {
        let root = Ident::new("__isles_chosen", proc_macro2::Span::call_site());
        list.push(Item::Path(FieldPath { root, members: Vec::new() }));
    }
    let body = &call.body;
    call.body = syn::parse_quote_spanned!(body.span()=> {
        let __isles_placed = __isles_chosen.begun();
        #body
    });
    let spawned = spawn_at(&call)?;
    Ok(quote! {{
        let __isles_chosen = ::isles::__private::ChosenPlace::choose();
        #spawned
    }})
}

/// The place expression; a type error is reported at its span.
fn place(call: &Call) -> TokenStream {
    let place = &call.place;
    quote_spanned!(place.span()=> ::isles::__private::place_of(#place))
}

/// Parts that both macros share.
struct TravelParts {
    /// The type that represents the call site.
    site: TokenStream,
    captures: Captures,
    /// The statements that make the closure `__isles_remote`.
    remote: TokenStream,
}

/// Builds the parts of a call; `ending` turns the value of the body into what the closure returns.
fn parts(call: &Call, ending: fn(&Expr, Flow) -> TokenStream) -> syn::Result<TravelParts> {
    let captures = match &call.list {
        Some(list) => Captures::listed(list),
        None => Captures::found(&usage::of(&call.body)?),
    };
    let body = renaming::without_self(&call.body);
    let ending = ending(&body, flow::of(&call.body));
    let pattern = &captures.pattern;
    // At the body's place, so that "captures a variable" points there and not at the whole call.
    let remote_name = Ident::new("__isles_remote", call.body.span());
    let check = quote_spanned! {call.body.span()=>
        ::isles::__private::closures_and_unlisted_variables_cannot_travel(#remote_name);
    };
    let quiet = allow_unreachable(flow::of(&call.body));
    let remote = quote! {
        #quiet
        let __isles_remote = ::isles::__private::signature(&__isles_captures, |__isles_decoded| async move {
            let mut __isles_decoded = __isles_decoded;
            let #pattern = ::isles::__private::Bind::bind(&mut __isles_decoded);
            #ending
        });
        #check
    };
    Ok(TravelParts { site: site(), captures, remote })
}

/// The type that represents the call site, with its counters.
fn site() -> TokenStream {
    quote! {
        #[derive(Clone, Copy)]
        struct __IslesSite;
        impl ::isles::__private::Site for __IslesSite {
            const LOCATION: &'static str =
                ::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!());
            fn cell() -> &'static ::isles::__private::SiteCell {
                static CELL: ::isles::__private::SiteCell =
                    ::isles::__private::SiteCell::new(<__IslesSite as ::isles::__private::Site>::LOCATION);
                &CELL
            }
        }
    }
}

/// Returns an expression with the value of `body`, for an `async` block whose output is a `Result`.
fn value(body: &Expr, flow: Flow) -> TokenStream {
    let error = quote!(::isles::__private::BodyError);
    let lifted = ending::with_converted_errors(body, flow);
    match flow {
        Flow { tries: true, ends_in_result: true, .. } => quote! {{
            let __isles_result: ::core::result::Result<_, #error> = async { #lifted }.await;
            __isles_result?
        }},
        Flow { tries: true, .. } => quote! {
            async { let __isles_value = #lifted; ::core::result::Result::Ok::<_, #error>(__isles_value) }.await?
        },
        Flow { returns: true, .. } => quote!(async { #body }.await),
        _ => quote!(#body),
    }
}

/// Suppresses the warning that generated code after a body that never ends is unreachable.
fn allow_unreachable(flow: Flow) -> TokenStream {
    if flow.diverges {
        quote!(#[allow(unreachable_code, clippy::diverging_sub_expression)])
    } else {
        TokenStream::new()
    }
}

/// `let __isles_value`, with a type if the body has no value.
fn binding(body: &Expr, flow: Flow) -> TokenStream {
    let value = value(body, flow);
    match flow.diverges {
        true => quote!(let __isles_value: () = #value;),
        false => quote!(let __isles_value = #value;),
    }
}

/// The body as written, for the caller's own place.
fn local(call: &Call) -> TokenStream {
    let binding = binding(&call.body, flow::of(&call.body));
    quote! {
        async {
            #binding
            ::core::result::Result::Ok::<_, ::isles::__private::Error>(__isles_value)
        }
    }
}

/// The end of an `at!` at the other place: the encoded value.
fn returned(body: &Expr, flow: Flow) -> TokenStream {
    let binding = binding(body, flow);
    let shipped = quote_spanned! {body.span()=>
        let __isles_value = __isles_value.__isles_known_value();
        let __isles_value = ::isles::__private::returning(
            ::isles::__private::ship_tag(&__isles_value).__isles_ship(__isles_value)
        );
    };
    quote! {
        #binding
        #shipped
        ::core::result::Result::Ok::<_, ::isles::__private::Error>(__isles_value)
    }
}

/// The end of a task: success, or an error for the enclosing finish.
fn ended(body: &Expr, flow: Flow) -> TokenStream {
    let value = value(body, flow);
    quote_spanned! {body.span()=>
        ::isles::__private::TaskOutcome::into_result(#value)
    }
}
