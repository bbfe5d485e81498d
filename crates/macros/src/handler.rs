//! Checks of a handler, one by one, each with the place of its fault.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, ItemFn, ReturnType, Type};

/// Returns the function with its checks, which are compiled and never run.
pub(crate) fn checked(function: &ItemFn) -> TokenStream {
    match checks(function) {
        Ok(checks) => quote!(#function #checks),
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#function #error)
        }
    }
}

fn checks(function: &ItemFn) -> syn::Result<TokenStream> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let message = "a handler is an `async fn`";
        return Err(syn::Error::new(signature.fn_token.span, message));
    }
    if !signature.generics.params.is_empty() {
        let message = "handlers with type parameters cannot be checked: remove `#[handler]`";
        return Err(syn::Error::new(signature.generics.span(), message));
    }
    let types: Vec<&Type> = signature
        .inputs
        .iter()
        .map(type_of)
        .collect::<syn::Result<_>>()?;
    let Some((job, arguments)) = types.split_first() else {
        let message = "the first argument of a handler is the job";
        return Err(syn::Error::new(signature.ident.span(), message));
    };
    let ReturnType::Type(_, output) = &signature.output else {
        let message = "a handler returns `Result<Output, Error>`, with the output of its job";
        return Err(syn::Error::new(signature.ident.span(), message));
    };
    let name = &signature.ident;
    let is_job = quote_spanned!(job.span()=> check::is_job::<#job>(););
    let are_arguments = arguments
        .iter()
        .map(|argument| quote_spanned!(argument.span()=> check::is_argument::<#argument>();));
    let is_output = quote_spanned!(output.span()=> check::is_output::<#job, #output>(););
    let is_send = quote_spanned!(name.span()=> check::is_send(future););
    Ok(quote! {
        const _: () = {
            #[allow(dead_code, unreachable_code, clippy::all)]
            fn checks() {
                use ::meshwork::handler::check;
                #is_job
                #(#are_arguments)*
                #is_output
                let future = #name(#(check::value::<#types>()),*);
                #is_send
            }
        };
    })
}

fn type_of(argument: &FnArg) -> syn::Result<&Type> {
    match argument {
        FnArg::Typed(argument) => Ok(&argument.ty),
        FnArg::Receiver(it) => Err(syn::Error::new(
            it.span(),
            "a handler is no method: the first argument is the job",
        )),
    }
}
