//! Expansion of `#[isles::main]` and `#[isles::test]`.
//!
//! Both keep the function as written and call it from a plain function that starts the places.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{ItemFn, LitInt, Token, bracketed};

/// Default number of places of a test.
const TEST_PLACES: u32 = 4;

/// Most places of a test, a limit that all its machines share.
const PLACES_MAX: u32 = 256;

/// The machines of tests: the name in the attribute and the name in the runtime.
const MACHINES: [(&str, &str); 3] =
    [("threads", "Threads"), ("processes", "Processes"), ("loopback", "Loopback")];

/// Returns the expansion of `#[isles::main]`.
///
/// # Errors
/// The function is not an `async fn main()`.
pub fn main(arguments: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let MainArguments { init } = syn::parse2(arguments)?;
    if function.sig.ident != "main" {
        return Err(syn::Error::new_spanned(&function.sig.ident, "`#[isles::main]` belongs on `main`"));
    }
    check(function, "main")?;
    let visibility = &function.vis;
    let init = init.map(|init| quote_spanned!(init.span()=> ::isles::__private::init(#init);));
    Ok(quote! {
        #visibility fn main() -> ::std::process::ExitCode {
            #function
            #init
            ::isles::__private::main(main)
        }
    })
}

/// Returns the expansion of `#[isles::test]`.
///
/// # Errors
/// The function is not an `async fn` without parameters, or the arguments are not understood.
pub fn test(arguments: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let arguments: TestArguments = syn::parse2(arguments)?;
    check(function, "test")?;
    let name = &function.sig.ident;
    let (for_tests, mut function) = (for_tests(function), function.clone());
    function.attrs.retain(|attribute| !is_for_harness(attribute));
    let places = arguments.places;
    let tests = arguments.machines.iter().map(|machine| {
        let variant = variant(machine);
        let path = machine.to_string();
        quote! {
            #[::core::prelude::v1::test]
            #(#for_tests)*
            fn #machine() {
                ::isles::__private::test(
                    ::isles::__private::Machine::#variant,
                    #places,
                    ::core::concat!(::core::module_path!(), "::", #path),
                    super::#name,
                )
            }
        }
    });
    // The function and the module share their name: functions and modules have separate name spaces.
    Ok(quote! {
        #[cfg(test)]
        #function
        #[cfg(test)]
        mod #name {
            #(#tests)*
        }
    })
}

/// The attributes that belong on the functions that the test harness calls.
fn for_tests(function: &ItemFn) -> Vec<syn::Attribute> {
    let shared = |attribute: &&syn::Attribute| is_for_harness(attribute) || attribute.path().is_ident("cfg");
    function.attrs.iter().filter(shared).cloned().collect()
}

/// Returns `true` if the test harness reads the attribute, which then goes on the functions that it calls.
fn is_for_harness(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("ignore") || attribute.path().is_ident("should_panic")
}

/// Refuses functions that cannot start a run.
fn check(function: &ItemFn, attribute: &str) -> syn::Result<()> {
    let signature = &function.sig;
    let wrong =
        |span: Span, reason: &str| Err(syn::Error::new(span, format!("`#[isles::{attribute}]` {reason}")));
    if signature.asyncness.is_none() {
        return wrong(signature.fn_token.span, "needs an `async fn`");
    }
    if !signature.inputs.is_empty() {
        return wrong(signature.inputs.span(), "takes a function without parameters");
    }
    if !signature.generics.params.is_empty() {
        return wrong(signature.generics.span(), "takes a function without generic parameters");
    }
    if let syn::Safety::Unsafe(keyword) = signature.safety {
        return wrong(keyword.span, "takes a safe function");
    }
    Ok(())
}

/// `init = function`.
struct MainArguments {
    /// Function that runs first in each process.
    init: Option<syn::Path>,
}

impl Parse for MainArguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(MainArguments { init: None });
        }
        let name: Ident = input.parse()?;
        if name != "init" {
            return Err(syn::Error::new(name.span(), "expected `init = function`"));
        }
        input.parse::<Token![=]>()?;
        let init = Some(input.parse()?);
        input.parse::<Option<Token![,]>>()?;
        match input.is_empty() {
            true => Ok(MainArguments { init }),
            false => Err(input.error("nothing may follow the function")),
        }
    }
}

/// `places = 4, machines = [threads, processes, loopback]`.
struct TestArguments {
    places: u32,
    machines: Vec<Ident>,
}

impl Parse for TestArguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let machines = MACHINES.iter().map(|(name, _)| format_ident!("{name}")).collect();
        let mut arguments = TestArguments { places: TEST_PLACES, machines };
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match name.to_string().as_str() {
                "places" => arguments.places = parse_places(input)?,
                "machines" => arguments.machines = parse_machines(input)?,
                _ => return Err(syn::Error::new(name.span(), "expected `places = ..` or `machines = [..]`")),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn parse_places(input: ParseStream<'_>) -> syn::Result<u32> {
    let number: LitInt = input.parse()?;
    match number.base10_parse() {
        Ok(places) if (1..=PLACES_MAX).contains(&places) => Ok(places),
        _ => Err(syn::Error::new(number.span(), format!("a test needs 1 to {PLACES_MAX} places"))),
    }
}

fn parse_machines(input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    let content;
    let bracket = bracketed!(content in input);
    let machines: Vec<Ident> =
        Punctuated::<Ident, Token![,]>::parse_terminated(&content)?.into_iter().collect();
    if machines.is_empty() {
        return Err(syn::Error::new(bracket.span.join(), "at least one machine is needed"));
    }
    for machine in &machines {
        if !MACHINES.iter().any(|(name, _)| machine == name) {
            return Err(syn::Error::new(machine.span(), "expected `threads`, `processes` or `loopback`"));
        }
    }
    Ok(machines)
}

/// Returns the name of `machine` in the runtime.
fn variant(machine: &Ident) -> Ident {
    let (_, variant) = MACHINES.iter().find(|(name, _)| machine == name).expect("machines were checked");
    Ident::new(variant, machine.span())
}
